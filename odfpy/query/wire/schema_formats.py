"""The schema of an answer in the formats of the reference implementation's node.

They describe logical types only, not layouts such as views and 64-bit offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from odfpy.codec.tree import to_tree
from odfpy.codec.yaml import dump
from odfpy.data.schemas.arrow import from_arrow, to_arrow

if TYPE_CHECKING:
    import pyarrow as pa


class SchemaFormat(Enum):
    """A notation for schemas."""

    ARROW_JSON = "ArrowJson"
    ODF_JSON = "OdfJson"
    ODF_YAML = "OdfYaml"
    PARQUET = "Parquet"
    PARQUET_JSON = "ParquetJson"


def write_schema(schema: pa.Schema, form: SchemaFormat) -> Any:
    """Return an Arrow schema as a JSON tree; YAML and Parquet's own notation are text.

    Raises:
        SchemaError: a column has a type that datasets cannot have; the message names it.
    """
    logical = from_arrow(schema)
    match form:
        case SchemaFormat.ODF_JSON:
            return to_tree(logical)
        case SchemaFormat.ODF_YAML:
            return dump(to_tree(logical))
        case SchemaFormat.ARROW_JSON:
            return {"fields": [_arrow_field(field) for field in to_arrow(logical)], "metadata": {}}
        case SchemaFormat.PARQUET:
            return "\n".join(["message arrow_schema {", *_lines(_parquet(to_arrow(logical)), "  "), "}", ""])
        case SchemaFormat.PARQUET_JSON:
            fields = [_parquet_json(node) for node in _parquet(to_arrow(logical))]
            return {"name": "arrow_schema", "type": "struct", "fields": fields}


# --- Arrow's ----------------------------------------------------------------------------------------------------------

_ARROW_NAMES = {
    "null": "Null",
    "bool": "Boolean",
    "halffloat": "Float16",
    "float": "Float32",
    "double": "Float64",
    "string": "Utf8",
    "binary": "Binary",
    "date32[day]": "Date32",
}
_UNITS = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}


def _arrow_field(field: pa.Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "data_type": _arrow_type(field.type),
        "nullable": field.nullable,
        "dict_id": 0,
        "dict_is_ordered": False,
        "metadata": {},
    }


def _arrow_type(kind: pa.DataType) -> Any:
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return {"Timestamp": [_UNITS[kind.unit], kind.tz]}
    if pa.types.is_time(kind):
        return {f"Time{kind.bit_width}": _UNITS[kind.unit]}
    if pa.types.is_duration(kind):
        return {"Duration": _UNITS[kind.unit]}
    if pa.types.is_decimal(kind):
        return {f"Decimal{kind.bit_width}": [kind.precision, kind.scale]}
    if pa.types.is_struct(kind):
        return {"Struct": [_arrow_field(part) for part in kind]}
    if pa.types.is_map(kind):
        entries = pa.field("entries", pa.struct([kind.key_field, kind.item_field]), nullable=False)
        return {"Map": [_arrow_field(entries), kind.keys_sorted]}
    if pa.types.is_fixed_size_list(kind):
        return {"FixedSizeList": [_arrow_field(kind.value_field), kind.list_size]}
    if pa.types.is_list(kind):
        return {"List": _arrow_field(kind.value_field)}
    if pa.types.is_fixed_size_binary(kind):
        return {"FixedSizeBinary": kind.byte_width}
    name = str(kind)
    return _ARROW_NAMES.get(name) or name.replace("uint", "UInt").replace("int", "Int")


# --- Parquet's --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Node:
    """A column of Parquet, or a group of them."""

    name: str
    repetition: str
    physical: str = "group"
    length: int | None = None
    logical: str | None = None
    children: tuple[_Node, ...] = ()


def _parquet(fields: Any) -> tuple[_Node, ...]:
    return tuple(_node(field) for field in fields)


def _node(field: pa.Field) -> _Node:
    import pyarrow as pa

    repetition = "OPTIONAL" if field.nullable else "REQUIRED"
    kind = field.type
    if pa.types.is_struct(kind):
        return _Node(field.name, repetition, children=_parquet(kind))
    if pa.types.is_map(kind):
        entries = _Node("entries", "REPEATED", children=_parquet([kind.key_field, kind.item_field]))
        return _Node(field.name, repetition, logical="MAP", children=(entries,))
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        items = _Node("list", "REPEATED", children=_parquet([kind.value_field]))
        return _Node(field.name, repetition, logical="LIST", children=(items,))
    physical, length, logical = _primitive(kind)
    return _Node(field.name, repetition, physical, length, logical)


_PRIMITIVES: dict[str, tuple[str, str | None]] = {
    "null": ("INT32", "UNKNOWN"),
    "bool": ("BOOLEAN", None),
    "int8": ("INT32", "INTEGER(8,true)"),
    "int16": ("INT32", "INTEGER(16,true)"),
    "int32": ("INT32", None),
    "int64": ("INT64", None),
    "uint8": ("INT32", "INTEGER(8,false)"),
    "uint16": ("INT32", "INTEGER(16,false)"),
    "uint32": ("INT32", "INTEGER(32,false)"),
    "uint64": ("INT64", "INTEGER(64,false)"),
    "float": ("FLOAT", None),
    "double": ("DOUBLE", None),
    "string": ("BYTE_ARRAY", "STRING"),
    "binary": ("BYTE_ARRAY", None),
    "date32[day]": ("INT32", "DATE"),
    "time32[ms]": ("INT32", "TIME(MILLIS,false)"),
    "time32[s]": ("INT32", None),
    "time64[us]": ("INT64", "TIME(MICROS,false)"),
    "time64[ns]": ("INT64", "TIME(NANOS,false)"),
}
_PARQUET_UNITS = {"ms": "MILLIS", "us": "MICROS", "ns": "NANOS"}
_FIXED = "FIXED_LEN_BYTE_ARRAY"
_MAX_DIGITS = {"INT32": 9, "INT64": 18}


def _primitive(kind: pa.DataType) -> tuple[str, int | None, str | None]:
    """Return the physical type, its length if that is fixed, and the logical type."""
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        unit = _PARQUET_UNITS.get(kind.unit)  # Parquet has no seconds
        return "INT64", None, f"TIMESTAMP({unit},{'true' if kind.tz else 'false'})" if unit else None
    if pa.types.is_duration(kind):
        return "INT64", None, None
    if pa.types.is_decimal(kind):
        logical = f"DECIMAL({kind.precision},{kind.scale})"
        for physical, digits in _MAX_DIGITS.items():
            if kind.precision <= digits:
                return physical, None, logical
        return _FIXED, ((10**kind.precision).bit_length() + 8) // 8, logical
    if pa.types.is_float16(kind):
        return _FIXED, 2, "FLOAT16"
    if pa.types.is_fixed_size_binary(kind):
        return _FIXED, kind.byte_width, None
    physical, logical_or_none = _PRIMITIVES[str(kind)]
    return physical, None, logical_or_none


def _lines(nodes: tuple[_Node, ...], indent: str) -> Iterator[str]:
    for node in nodes:
        length = f" ({node.length})" if node.length else ""
        logical = f" ({node.logical})" if node.logical else ""
        start = f"{indent}{node.repetition} {node.physical}{length} {node.name}{logical}"
        if node.physical == "group":
            yield f"{start} {{"
            yield from _lines(node.children, indent + "  ")
            yield f"{indent}}}"
        else:
            yield f"{start};"


def _parquet_json(node: _Node) -> dict[str, Any]:
    tree: dict[str, Any] = {"name": node.name, "repetition": node.repetition}
    if node.physical == "group":
        return tree | {"type": "struct", "fields": [_parquet_json(child) for child in node.children]}
    tree["type"] = f"{node.physical}({node.length})" if node.length else node.physical
    return tree | ({"logicalType": node.logical} if node.logical else {})
