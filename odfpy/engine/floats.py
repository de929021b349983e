"""Normal form of floating point numbers that are equal but differ in their bits, and so in logical hashes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def normalize_floats(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Replace `-0.0` by `0.0`, and every NaN by the same one, also within lists and structs."""
    columns = [_normalize(column) if _has_floats(column.type) else column for column in rows.columns]
    return pa.record_batch(columns, schema=rows.schema)


def _has_floats(arrow: pa.DataType) -> bool:
    if pa.types.is_struct(arrow):
        return any(_has_floats(field.type) for field in arrow.fields)
    if pa.types.is_list(arrow):
        return _has_floats(arrow.value_type)
    return bool(pa.types.is_floating(arrow))


def _normalize(array: pa.Array) -> pa.Array:
    if not _has_floats(array.type):
        return array
    mask = array.is_null()
    if pa.types.is_struct(array.type):
        children = [_normalize(array.field(at)) for at in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=array.type.fields, mask=mask)
    if pa.types.is_list(array.type):
        # `flatten` omits what is below null lists and outside of a slice, so offsets are recomputed.
        offsets = np.zeros(len(array) + 1, np.int32)
        np.cumsum(pc.fill_null(pc.list_value_length(array), 0).to_numpy(), out=offsets[1:])
        return pa.ListArray.from_arrays(pa.array(offsets), _normalize(array.flatten()), type=array.type, mask=mask)
    positive = pc.add(array, pa.scalar(0.0, array.type))  # -0.0 + 0.0 is 0.0
    return pc.if_else(pc.is_nan(positive), pa.scalar(float("nan"), array.type), positive)
