"""Values in a form that duckdb can compare, whatever their type in the dataset.

duckdb has no half floats, no fixed lengths and no decimals beyond 38 digits. Columns that are only compared are put
into a type that it has, one to one, so that equal stays equal and different stays different.
"""

from __future__ import annotations

import pyarrow as pa

from odfpy.data.schemas.arrow import has_within


def comparable_type(arrow: pa.DataType) -> pa.DataType:
    """A type of duckdb with room for all values of a type, which must be in its plain layout."""
    for is_kind, comparable in _SUBSTITUTES:
        if is_kind(arrow):
            return comparable
    if pa.types.is_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return pa.list_(_comparable_field(arrow.value_field))
    if pa.types.is_struct(arrow):
        return pa.struct([_comparable_field(field) for field in arrow.fields])
    return arrow


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values of a column in the comparable type."""
    wanted = comparable_type(column.type)
    return column if column.type == wanted else column.cast(wanted)


def has_wide_decimal(arrow: pa.DataType) -> bool:
    """Return whether there are decimals in it that duckdb does not read from Parquet exactly."""
    return has_within(arrow, pa.types.is_decimal256)


def has_floats(arrow: pa.DataType) -> bool:
    """Return whether there are floats in it: Parquet's statistics leave NaN out, and duckdb believes them."""
    return has_within(arrow, pa.types.is_floating)


def _comparable_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, comparable_type(field.type), nullable=field.nullable)


_SUBSTITUTES = (
    (pa.types.is_float16, pa.float32()),
    (pa.types.is_fixed_size_binary, pa.binary()),
    (pa.types.is_decimal256, pa.string()),
)
