"""Arrays of one type as those of another that differs in how it is laid out, or in what may be null."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from odfpy.data.schemas.arrow import plain_array


def plain_batch(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the same rows in plain layout, with the columns of a schema, which come in that order.

    Arrow's own cast refuses a null structure with a member that may not be null, even to the type that it has.
    """
    arrays = [retype(plain_array(column), field.type) for column, field in zip(rows.columns, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def retype(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the same values in a type that holds them all, down to whether members may be null."""
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
    """Return offsets from 0, and of the children only what the array uses."""
    offsets = np.asarray(array.offsets)
    start, end = int(offsets[0]), int(offsets[-1])
    return pa.array(offsets - start), *(child.slice(start, end - start) for child in children)


def floored(times: pa.Array | pa.ChunkedArray, unit: str) -> pa.Array | pa.ChunkedArray:
    """Return timestamps cut downwards, of the same type.

    Arrow would do so in the time of their zone, where an hour comes twice in autumn.

    Args:
        times: timestamps, with a zone or without.
        unit: `millisecond` or `microsecond`.
    """
    import pyarrow.compute as pc

    naive = times.cast(pa.timestamp(times.type.unit))
    return pc.floor_temporal(naive, unit=unit).cast(times.type)
