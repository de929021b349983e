"""Catalog metadata for tools: catalogs, schemas, tables, keys, types; with the columns of the standard.

There is one catalog and one schema, both called `odf`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pyarrow as pa

from odfpy.serving.flight.like import Like
from odfpy.serving.flight.messages import name_of
from odfpy.serving.flight.names import CATALOG, DB_SCHEMA, DEFAULT_DIALECT
from odfpy.serving.flight.sql_info import sql_info
from odfpy.serving.flight.tables import Tables
from odfpy.serving.flight.types import type_info

TABLE: Final = "TABLE"


def _schema(text: str) -> pa.Schema:
    """Parse columns with names and types; `!` means not nullable."""
    types = {"text": pa.string(), "int32": pa.int32(), "uint8": pa.uint8(), "bytes": pa.binary()}
    fields = (word.partition(":") for word in text.split())
    return pa.schema([pa.field(name, types[kind.rstrip("!")], not kind.endswith("!")) for name, _, kind in fields])


_TABLES: Final = _schema("catalog_name:text db_schema_name:text table_name:text! table_type:text!")
_FOREIGN_KEYS: Final = _schema(
    "pk_catalog_name:text pk_db_schema_name:text pk_table_name:text! pk_column_name:text!"
    " fk_catalog_name:text fk_db_schema_name:text fk_table_name:text! fk_column_name:text!"
    " key_sequence:int32! fk_key_name:text pk_key_name:text update_rule:uint8! delete_rule:uint8!"
)
_SCHEMAS: Final = {
    "CommandGetCatalogs": _schema("catalog_name:text!"),
    "CommandGetDbSchemas": _schema("catalog_name:text db_schema_name:text!"),
    "CommandGetTables": _TABLES,
    "CommandGetTableTypes": _schema("table_type:text!"),
    "CommandGetPrimaryKeys": _schema(
        "catalog_name:text db_schema_name:text table_name:text! column_name:text! key_name:text key_sequence:int32!"
    ),
    "CommandGetExportedKeys": _FOREIGN_KEYS,
    "CommandGetImportedKeys": _FOREIGN_KEYS,
    "CommandGetCrossReference": _FOREIGN_KEYS,
}


def is_metadata(command: Any) -> bool:
    """Return whether a command requests metadata."""
    return name_of(command) in _SCHEMAS or name_of(command) in _WHOLE


def metadata_schema(command: Any) -> pa.Schema:
    """Return the columns of the result of a command."""
    name = name_of(command)
    if name in _WHOLE:
        return _WHOLE[name](command, DEFAULT_DIALECT).schema
    schema = _SCHEMAS[name]
    if name == "CommandGetTables" and command.include_schema:
        schema = schema.append(pa.field("table_schema", pa.binary(), nullable=False))
    return schema


def metadata(command: Any, tables: Tables, dialect: str) -> pa.Table:
    """Return the result of a command.

    Args:
        command: a message.
        tables: the tables that the caller may see.
        dialect: SQL dialect of the connection.
    """
    name = name_of(command)
    if name in _WHOLE:
        return _WHOLE[name](command, dialect)
    rows = _ROWS[name](command, tables) if name in _ROWS else iter(())
    schema = metadata_schema(command)
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


_WHOLE: Final[dict[str, Callable[[Any, str], pa.Table]]] = {
    "CommandGetSqlInfo": lambda command, dialect: sql_info(set(command.info), dialect),
    "CommandGetXdbcTypeInfo": lambda command, _: type_info(
        command.data_type if command.HasField("data_type") else None
    ),
}


def _catalogs(command: Any, tables: Tables) -> Iterator[tuple[Any, ...]]:
    del command, tables
    yield (CATALOG,)


def _db_schemas(command: Any, tables: Tables) -> Iterator[tuple[Any, ...]]:
    del tables
    if _is_here(command, "catalog", "db_schema_filter_pattern"):
        yield CATALOG, DB_SCHEMA


def _tables(command: Any, tables: Tables) -> Iterator[tuple[Any, ...]]:
    if not _is_here(command, "catalog", "db_schema_filter_pattern"):
        return
    if command.table_types and TABLE not in command.table_types:
        return
    for name in tables.names():
        if not _fits(command, "table_name_filter_pattern", name):
            continue
        if not command.include_schema:
            yield CATALOG, DB_SCHEMA, name, TABLE
            continue
        schema = tables.schema(name)
        yield CATALOG, DB_SCHEMA, name, TABLE, (schema or pa.schema([])).serialize().to_pybytes()


def _table_types(command: Any, tables: Tables) -> Iterator[tuple[Any, ...]]:
    del command, tables
    yield (TABLE,)


def _primary_keys(command: Any, tables: Tables) -> Iterator[tuple[Any, ...]]:
    if not _is_in(command, "catalog", CATALOG) or not _is_in(command, "db_schema", DB_SCHEMA):
        return
    if command.table in tables.names():
        for number, column in enumerate(tables.primary_key(command.table), start=1):
            yield CATALOG, DB_SCHEMA, command.table, column, f"{command.table}_key", number


_ROWS: Final[dict[str, Callable[[Any, Tables], Iterator[tuple[Any, ...]]]]] = {
    "CommandGetCatalogs": _catalogs,
    "CommandGetDbSchemas": _db_schemas,
    "CommandGetTables": _tables,
    "CommandGetTableTypes": _table_types,
    "CommandGetPrimaryKeys": _primary_keys,
}


def _is_here(command: Any, catalog: str, pattern: str) -> bool:
    return _is_in(command, catalog, CATALOG) and _fits(command, pattern, DB_SCHEMA)


def _is_in(command: Any, field: str, name: str) -> bool:
    """Return whether a command's filter is empty or equals a name."""
    return not command.HasField(field) or getattr(command, field) == name


def _fits(command: Any, field: str, name: str) -> bool:
    """Return whether a name matches the pattern of a command."""
    return not command.HasField(field) or Like(getattr(command, field)).fits(name)
