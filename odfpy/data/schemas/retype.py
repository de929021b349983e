"""Conversion of arrays to a type that differs in layout or nullability only."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from odfpy.data.schemas.arrow import plain_array


def plain_batch(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the same rows in plain layout, with the schema's columns in the same order.

    Arrow's own cast rejects a null struct with a required member, even if the type is the same.
    """
    arrays = [retype(plain_array(column), field.type) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def retype(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the same values in another type that can represent them, including nullability of members."""
    if array.type.equals(wanted):
        return array
    if pa.types.is_null(wanted):
        return pa.nulls(len(array))
    mask = array.is_null() if array.null_count else None
    if pa.types.is_struct(wanted):
        parts = [retype(array.field(at), field.type) for at, field in enumerate(wanted.fields)]
        return pa.StructArray.from_arrays(parts, fields=list(wanted.fields), mask=mask)
    if pa.types.is_map(wanted):
        offsets, keys, values = _compact(array, array.keys, array.items)
        typed = retype(keys, wanted.key_type), retype(values, wanted.item_type)
        return pa.MapArray.from_arrays(offsets, *typed, type=wanted, mask=mask)
    if pa.types.is_fixed_size_list(wanted):
        size = wanted.list_size
        if pa.types.is_fixed_size_list(array.type):
            items = array.values.slice(array.offset * size, len(array) * size)
        else:
            items = array.fill_null([None] * size).flatten()
        return pa.FixedSizeListArray.from_arrays(retype(items, wanted.value_type), type=wanted, mask=mask)
    if pa.types.is_list(wanted):
        offsets, items = _compact(array, array.values)
        return pa.ListArray.from_arrays(offsets, retype(items, wanted.value_type), type=wanted, mask=mask)
    return array.cast(wanted)


def _compact(array: pa.Array, *children: pa.Array) -> tuple[pa.Array, ...]:
    """Return offsets from 0, and the part of each child that the array uses."""
    offsets = np.asarray(array.offsets)
    start, end = int(offsets[0]), int(offsets[-1])
    return pa.array(offsets - start), *(child.slice(start, end - start) for child in children)


def floored(times: pa.Array | pa.ChunkedArray, unit: str) -> pa.Array | pa.ChunkedArray:
    """Return timestamps rounded down to a unit, of the same type.

    Arrow would round in local time, in which an hour occurs twice in autumn.

    Args:
        times: timestamps, with or without time zone.
        unit: `millisecond` or `microsecond`.
    """
    import pyarrow.compute as pc

    naive = times.cast(pa.timestamp(times.type.unit))
    return pc.floor_temporal(naive, unit=unit).cast(times.type)
