"""Schemas in the older form `ddlSchema`: SQL column definitions (ODF specification, "ReadStep").

Each line is one definition, `name TYPE [NOT NULL]`. Columns without NOT NULL are optional. Most lines are a name and a
simple type, which are parsed here. The SQL parser is only imported for other lines: that takes longer than a small
ingest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final

from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.schema import DataField, DataSchema, DataType, TimeUnit
from odfpy.data.schemas.type_names import ddl_type_for
from odfpy.errors import SchemaError

if TYPE_CHECKING:
    from sqlglot import exp

_SIMPLE: dict[str, DataType] = {
    "BOOLEAN": odf.Bool(),
    "TINYINT": odf.Int8(),
    "SMALLINT": odf.Int16(),
    "INT": odf.Int32(),
    "BIGINT": odf.Int64(),
    "UTINYINT": odf.UInt8(),
    "USMALLINT": odf.UInt16(),
    "UINT": odf.UInt32(),
    "UBIGINT": odf.UInt64(),
    "UNSIGNED": odf.UInt32(),
    "UINT8": odf.UInt8(),
    "UINT16": odf.UInt16(),
    "UINT32": odf.UInt32(),
    "UINT64": odf.UInt64(),
    "FLOAT": odf.Float32(),
    "DOUBLE": odf.Float64(),
    "DATE": odf.Date(),
    "TIMESTAMP": odf.Timestamp(TimeUnit.MILLISECOND, "UTC"),
    "TIMESTAMPTZ": odf.Timestamp(TimeUnit.MILLISECOND, "UTC"),
    "TEXT": odf.String(),
    "VARCHAR": odf.String(),
    "CHAR": odf.String(),
    "BINARY": odf.Binary(),
    "VARBINARY": odf.Binary(),
}
_PLAIN: Final = re.compile(
    r"""
    [ \t]* (?: (?P<name>[a-z_]\w*) | (?P<quote>["`]) (?P<quoted>[^"`\\\x00-\x1f]+) (?P=quote) )
    [ \t]+ (?P<type>[a-z]+[0-9]*) (?: [ ]?\( (?P<precision>[0-9]{1,2}) (?: ,[ ]? (?P<scale>[0-9]{1,2}) )? \) )?
    (?P<required>[ \t]+not[ \t]+null)? [ \t]*
    """,
    re.IGNORECASE | re.ASCII | re.VERBOSE,
)
_PLAIN_TYPES: Final = {"STRING": odf.String(), **_SIMPLE}
_DECIMAL: Final = frozenset(("DECIMAL", "NUMERIC"))
_MAX_DIGITS: Final = 76
_OF_SQL: Final = frozenset(
    [
        "any",
        "case",
        "connect_by_root",
        "constraint",
        "current_catalog",
        "current_date",
        "current_time",
        "current_timestamp",
        "current_user",
        "exclude",
        "false",
        "like",
        "localtime",
        "localtimestamp",
        "not",
        "null",
        "select",
        "session_user",
        "table",
        "true",
        "unique",
        "with",
    ]
)
"""Words that the SQL parser does not accept as names of columns; a test compares them with the parser."""

_KNOWN = (
    "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT (each also UNSIGNED), FLOAT, DOUBLE, DECIMAL(p, s), DATE, TIMESTAMP, "
    "STRING, VARCHAR, BINARY, ARRAY<...>"
)
_FORM = "Write `name TYPE` or `name TYPE NOT NULL`, and names that SQL takes for itself in quotes."


def parse_ddl(lines: Sequence[str]) -> DataSchema:
    """Parse column definitions, and return their schema.

    `TIMESTAMP` of any precision is in milliseconds and UTC, as slices store it; the length of a `VARCHAR` is not
    part of its type.

    Raises:
        SchemaError: a definition does not parse, has an unknown type or a repeated name; the message has the line.
    """
    fields: dict[str, DataField] = {}
    for number, line in enumerate(lines, start=1):
        for field in _parse_line(line, f"line {number} of ddlSchema, {line!r}"):
            if field.name in fields:
                raise SchemaError(f"Column {field.name!r} is defined twice, again in line {number} of ddlSchema")
            fields[field.name] = field
    return DataSchema(tuple(fields.values()))


def _parse_line(line: str, where: str) -> list[DataField]:
    plain = plain_field(line)
    return _parse_sql(line, where) if plain is None else [plain]


def plain_field(line: str) -> DataField | None:
    """Return the column of a line that is a name and a simple type; None for any other line, including invalid ones."""
    found = _PLAIN.fullmatch(line)
    if found is None or (found["name"] and found["name"].lower() in _OF_SQL):
        return None
    data_type = _plain_type(found["type"].upper(), [part for part in found.group("precision", "scale") if part])
    if data_type is None:
        return None
    return DataField(found["name"] or found["quoted"], data_type if found["required"] else odf.Option(data_type))


def _plain_type(name: str, arguments: list[str]) -> DataType | None:
    if not arguments:
        return _PLAIN_TYPES.get(name)
    return _decimal(arguments) if name in _DECIMAL else None


def _decimal(arguments: list[str]) -> DataType | None:
    """Return the type with precision and scale; None if the numbers are invalid."""
    precision, scale = int(arguments[0]), int(arguments[1]) if len(arguments) > 1 else 0
    return odf.Decimal(precision, scale) if 1 <= precision <= _MAX_DIGITS and scale <= precision else None


def _parse_sql(line: str, where: str) -> list[DataField]:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    not_a_definition = SchemaError(f"Not a column definition: {where}", hint=_FORM)
    try:
        statements = sqlglot.parse(f"CREATE TABLE t ({line}\n)", dialect=_dialect())
    except (SqlglotError, RecursionError) as error:
        raise not_a_definition from error
    table = statements[0].this if len(statements) == 1 and isinstance(statements[0], exp.Create) else None
    columns = table.expressions if isinstance(table, exp.Schema) else []
    if not columns or not all(isinstance(column, exp.ColumnDef) for column in columns):
        raise not_a_definition
    return [_field(column, where) for column in columns]


def _field(column: exp.ColumnDef, where: str) -> DataField:
    from sqlglot import exp

    if not isinstance(column.this, exp.Identifier):
        raise SchemaError(f"Not a name of a column: {where}", hint=_FORM)
    if column.kind is None:
        raise SchemaError(f"Column {column.name!r} has no type: {where}", hint=f"Known types: {_KNOWN}.")
    required = False
    for constraint in column.constraints:
        kind = constraint.args.get("kind")  # not all constraints have a kind
        if not isinstance(kind, exp.NotNullColumnConstraint):
            raise SchemaError(f"Only NOT NULL may follow the type: {where}", hint=_FORM)
        required = not kind.args.get("allow_null")
    data_type = _type(column.kind, where)
    return DataField(column.name, data_type if required else odf.Option(data_type))


def _type(kind: exp.DataType, where: str) -> DataType:
    name = written = kind.this.name
    if name == "USERDEFINED":  # a type that the parser does not know
        written = kind.sql()
        name = written.upper()
    arguments = [argument.name for argument in kind.expressions]
    if name in _SIMPLE:
        return _SIMPLE[name]
    if name == "DECIMAL" and arguments and all(argument.isdigit() for argument in arguments):
        data_type = _decimal(arguments)
        if data_type is not None:
            return data_type
    if name == "ARRAY" and len(kind.expressions) == 1 and kind.args.get("nested"):
        return odf.List(odf.Option(_type(kind.expressions[0], where)))
    meant = ddl_type_for(written)
    hint = f"Known types: {_KNOWN}."
    raise SchemaError(f"Unsupported type {kind.sql()}: {where}", hint=f"Write {meant}. {hint}" if meant else hint)


@cache
def _dialect() -> Any:
    """Return the dialect of standard SQL with names in double quotes or backquotes."""
    from sqlglot import tokens
    from sqlglot.dialects.dialect import Dialect

    class Tokenizer(tokens.Tokenizer):
        IDENTIFIERS: ClassVar = ['"', "`"]

    return type("DdlDialect", (Dialect,), {"Tokenizer": Tokenizer})()
