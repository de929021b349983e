"""Answers as JSON, in the three layouts of the reference implementation's node."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from odfpy.data.rows.plain_values import plain_columns_of, require_distinct

if TYPE_CHECKING:
    import pyarrow as pa


class DataFormat(Enum):
    """A layout of an answer's rows in JSON."""

    ARRAY_OF_STRUCTURES = "JsonAoS"
    STRUCTURE_OF_ARRAYS = "JsonSoA"
    ARRAY_OF_ARRAYS = "JsonAoA"


def laid_out(table: pa.Table, layout: DataFormat) -> Any:
    """Return the rows of a table as a JSON tree: a list of objects, an object of lists, or a list of lists.

    Decimals, times and bytes are text, whatever their range and resolution. In a list of lists, structs are lists,
    too.

    Raises:
        SchemaError: two columns have the same name, and the layout has names.
    """
    columns = plain_columns_of(table)
    if layout is DataFormat.ARRAY_OF_ARRAYS:
        kinds = table.schema.types
        return [[_as_list(cell, kind) for cell, kind in zip(row, kinds, strict=True)] for row in _rows(table, columns)]
    names = table.column_names
    require_distinct(names, f"ask for {DataFormat.ARRAY_OF_ARRAYS.value}")
    if layout is DataFormat.STRUCTURE_OF_ARRAYS:
        return dict(zip(names, columns, strict=True))
    return [dict(zip(names, row, strict=True)) for row in _rows(table, columns)]


def _rows(table: pa.Table, columns: list[list[Any]]) -> Any:
    return zip(*columns, strict=True) if columns else [()] * table.num_rows


def _as_list(value: Any, kind: pa.DataType) -> Any:
    """Return a cell with structs converted to lists of their members."""
    import pyarrow as pa

    if value is None or not pa.types.is_nested(kind):
        return value
    if pa.types.is_struct(kind):
        return [_as_list(value[part.name], part.type) for part in kind]
    if pa.types.is_map(kind):
        if isinstance(value, dict):
            return {key: _as_list(part, kind.item_type) for key, part in value.items()}
        return [
            {"key": _as_list(e["key"], kind.key_type), "value": _as_list(e["value"], kind.item_type)} for e in value
        ]
    return [_as_list(item, kind.value_type) for item in value]
