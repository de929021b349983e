"""Conversion of Arrow types to types of Delta tables (Delta Sharing protocol, "Schema Object")."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from odfpy.errors import SchemaError

_PLAIN: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "byte",
    pa.int16(): "short",
    pa.int32(): "integer",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
}
_WIDENED: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
    pa.null(): pa.string(),
}
_VIEWS: dict[pa.DataType, pa.DataType] = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
INSTANT = pa.timestamp("us", tz="UTC")
_NAMED = {name: kind for kind, name in _PLAIN.items()} | {"timestamp": INSTANT, "timestamp_ntz": pa.timestamp("us")}


def shared_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns in types that Delta tables support.

    Raises:
        SchemaError: a column has a type without a wider supported one; the message names it.
    """
    return pa.schema([_shared_field(field) for field in schema])


def schema_string(schema: pa.Schema) -> str:
    """Return a `shared_schema` as JSON, in the form of the protocol's `schemaString`."""
    return json.dumps(_struct(schema), separators=(",", ":"), ensure_ascii=False)


def arrow_schema(text: str) -> pa.Schema:
    """Parse a `schema_string`.

    Raises:
        SchemaError: the text is invalid.
    """
    try:
        return pa.schema(_fields(json.loads(text)))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise SchemaError(f"Not a schema of a shared table: {error!r}") from error


def as_shared(batch: pa.RecordBatch, schema: pa.Schema, *, is_exact: bool = False) -> pa.RecordBatch:
    """Convert rows to the columns and types of clients; missing columns are null.

    Args:
        batch: the rows.
        schema: a `shared_schema`.
        is_exact: whether nanoseconds are an error, instead of being truncated.

    Raises:
        SchemaError: a value does not fit.
    """
    columns = [shared_column(batch, field, is_exact=is_exact) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def shared_column(batch: pa.RecordBatch, field: pa.Field, *, is_exact: bool = False) -> pa.Array:
    """Return one column of `as_shared`.

    Args:
        batch: the rows.
        field: the column.
        is_exact: as in `as_shared`.

    Raises:
        SchemaError: a value does not fit; the message does not contain it.
    """
    at = batch.schema.get_field_index(field.name)
    if at < 0:
        return pa.nulls(batch.num_rows, field.type)
    values = batch.column(at)
    if values.type == field.type:
        return values
    try:
        return values.cast(options=pc.CastOptions(field.type, allow_time_truncate=not is_exact))
    except pa.ArrowInvalid:
        raise SchemaError(
            f"A value of the column {field.name!r} ({values.type}) does not fit the type {field.type} that clients get",
            hint="Grant other columns, or cast it in a derivative dataset.",
        ) from None


def fits_as_it_is(stored: pa.Schema, shared: pa.Schema) -> bool:
    """Return whether a Parquet file with these columns can be served unchanged.

    Args:
        stored: columns of the file.
        shared: columns that clients expect; the file may lack some, and have others.
    """
    for field in stored:
        at = shared.get_field_index(field.name)
        if at >= 0 and not _reads_as(field.type, shared.field(at).type):
            return False
    return True


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert text and bytes to layouts that can be filtered (pyarrow cannot filter views)."""
    if not any(field.type in _VIEWS for field in batch.schema):
        return batch
    columns = [column.cast(_VIEWS.get(column.type, column.type)) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _reads_as(stored: pa.DataType, shared: pa.DataType) -> bool:
    if pa.types.is_timestamp(stored) and pa.types.is_timestamp(shared):
        return stored.unit in ("ms", "us") and (stored.tz is None) == (shared.tz is None)
    if pa.types.is_nested(stored):
        return bool(stored.equals(shared))
    stored = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(stored, stored)
    return bool(stored == shared)


def _shared_field(field: pa.Field) -> pa.Field:
    # Files of older versions may lack columns, and hidden cells are null: every column is nullable.
    return pa.field(field.name, _shared_type(field.type, field.name), nullable=True)


def _shared_type(kind: pa.DataType, path: str) -> pa.DataType:
    kind = _WIDENED.get(kind, kind)
    if kind in _PLAIN or pa.types.is_decimal128(kind):
        return kind
    if pa.types.is_dictionary(kind):
        return _shared_type(kind.value_type, path)
    if pa.types.is_timestamp(kind):
        return INSTANT if kind.tz is not None else pa.timestamp("us")
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([_shared_field(kind.field(number)) for number in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_shared_type(kind.key_type, f"{path}.key"), _shared_type(kind.item_type, f"{path}.value"))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(pa.field("element", _shared_type(kind.value_type, f"{path}.element")))
    raise SchemaError(
        f"The column {path!r} has the type {kind}, which tables of Delta Sharing do not have",
        hint="Grant other columns, or cast it in a derivative dataset.",
    )


def _struct(fields: Any) -> dict[str, Any]:
    columns = [
        {"name": field.name, "type": _type(field.type), "nullable": field.nullable, "metadata": {}} for field in fields
    ]
    return {"type": "struct", "fields": columns}


def _type(kind: pa.DataType) -> Any:
    if kind in _PLAIN:
        return _PLAIN[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is not None else "timestamp_ntz"
    if pa.types.is_struct(kind):
        return _struct([kind.field(number) for number in range(kind.num_fields)])
    if pa.types.is_map(kind):
        item = {"keyType": _type(kind.key_type), "valueType": _type(kind.item_type)}
        return {"type": "map", **item, "valueContainsNull": True}
    return {"type": "array", "elementType": _type(kind.value_type), "containsNull": True}


def _fields(struct: Any) -> list[pa.Field]:
    return [
        pa.field(field["name"], _arrow_type(field["type"]), nullable=field["nullable"]) for field in struct["fields"]
    ]


def _arrow_type(kind: Any) -> pa.DataType:
    if isinstance(kind, str):
        decimal = re.fullmatch(r"decimal\(([0-9]{1,2}),([0-9]{1,2})\)", kind)
        return _NAMED[kind] if decimal is None else pa.decimal128(int(decimal[1]), int(decimal[2]))
    if kind["type"] == "struct":
        return pa.struct(_fields(kind))
    if kind["type"] == "map":
        return pa.map_(_arrow_type(kind["keyType"]), _arrow_type(kind["valueType"]))
    return pa.list_(pa.field("element", _arrow_type(kind["elementType"])))
