"""In which Arrow types Spark hands back the columns of a dataset; known without Spark."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

_MAX_PRECISION: Final = 38
_SAME: Final = (
    pa.bool_,
    pa.int8,
    pa.int16,
    pa.int32,
    pa.int64,
    pa.float32,
    pa.float64,
    pa.string,
    pa.binary,
    pa.date32,
)
_OTHER: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    **{one(): one() for one in _SAME},
}


def handed_type(arrow: pa.DataType) -> pa.DataType | None:
    """Return the type in which Spark returns a column of a dataset; None if it cannot read it, and for maps.

    A test compares this with `odfpy.engine.spark.plan.types`.
    """
    if pa.types.is_timestamp(arrow):
        return pa.timestamp("us", "UTC" if arrow.tz else None)
    if pa.types.is_decimal(arrow) and arrow.precision <= _MAX_PRECISION:
        return pa.decimal128(arrow.precision, arrow.scale)
    if pa.types.is_fixed_size_binary(arrow):
        return pa.binary()
    if pa.types.is_list(arrow):
        item = handed_type(arrow.value_type)
        return None if item is None else pa.list_(pa.field("element", item))
    if pa.types.is_struct(arrow):
        inner = [(field.name, handed_type(field.type)) for field in arrow.fields]
        return pa.struct(inner) if all(kind is not None for _, kind in inner) else None
    return _OTHER.get(arrow)
