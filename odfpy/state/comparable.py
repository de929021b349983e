"""Conversion of values to types that duckdb can compare, whatever their type in the dataset.

duckdb has no half floats, no fixed-length types and no decimals beyond 38 digits. Columns that are only compared are
converted one to one: equal values stay equal, and different values stay different.
"""

from __future__ import annotations

import pyarrow as pa

from odfpy.data.schemas.arrow import has_within


def comparable_type(arrow: pa.DataType) -> pa.DataType:
    """Return a type of duckdb that can represent all values of a type, which must be in its plain layout."""
    for is_kind, comparable in _SUBSTITUTES:
        if is_kind(arrow):
            return comparable
    if pa.types.is_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return pa.list_(_comparable_field(arrow.value_field))
    if pa.types.is_struct(arrow):
        return pa.struct([_comparable_field(field) for field in arrow.fields])
    return arrow


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values of a column in the comparable type."""
    wanted = comparable_type(column.type)
    return column if column.type == wanted else column.cast(wanted)


def has_wide_decimal(arrow: pa.DataType) -> bool:
    """Return whether a type contains decimals that duckdb does not read from Parquet exactly."""
    return has_within(arrow, pa.types.is_decimal256)


def has_floats(arrow: pa.DataType) -> bool:
    """Return whether a type contains floats: Parquet's statistics ignore NaN, and duckdb relies on them."""
    return has_within(arrow, pa.types.is_floating)


def _comparable_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, comparable_type(field.type), nullable=field.nullable)


_SUBSTITUTES = (
    (pa.types.is_float16, pa.float32()),
    (pa.types.is_fixed_size_binary, pa.binary()),
    (pa.types.is_decimal256, pa.string()),
)
