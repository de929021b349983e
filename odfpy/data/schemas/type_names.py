"""Names of types in other systems, with the corresponding types here."""

from __future__ import annotations

import re
from typing import Final

_LENGTH: Final = re.compile(r"\s*[(<].*", re.DOTALL)
_DECIMAL: Final = re.compile(r"(?:decimal|numeric|number|dec)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")

_TEXT = (
    "text", "varchar", "varchar2", "nvarchar", "char", "nchar", "character", "character varying", "str", "utf8", "clob",
    "json", "jsonb", "uuid", "enum", "object",
)  # fmt: skip
_MOMENT = (
    "datetime", "datetime2", "datetime64", "smalldatetime", "timestamptz", "timestamp with time zone", "timestamp_ltz",
    "timestampltz", "timestamp without time zone", "timestamp_ntz", "timestampntz", "instant",
)  # fmt: skip
_BYTES = ("blob", "bytea", "bytes", "varbinary", "bytestring")
_WHOLE_OR_NOT = "for whole numbers, {0} for what is measured, {1} for money"

_ODF: Final[dict[str, str]] = {
    **dict.fromkeys(_TEXT, "String"),
    **dict.fromkeys(_MOMENT, "Timestamp"),
    **dict.fromkeys(_BYTES, "Binary"),
    **dict.fromkeys(("bigint", "long", "bigserial", "int64_t"), "Int64"),
    **dict.fromkeys(("int", "integer", "serial", "mediumint"), "Int32, or Int64 for numbers beyond two billion"),
    **dict.fromkeys(("smallint", "short"), "Int16"),
    **dict.fromkeys(("tinyint", "byte"), "Int8"),
    **dict.fromkeys(("double", "double precision"), "Float64"),
    **dict.fromkeys(("float", "real"), "Float64, or Float32 for seven digits"),
    **dict.fromkeys(("number", "numeric", "dec", "money"), "Int64 " + _WHOLE_OR_NOT.format(
        "Float64", "{kind: Decimal, precision: 18, scale: 2}")),
    **dict.fromkeys(("boolean", "logical"), "Bool"),
    **dict.fromkeys(("array", "list"), "{kind: List, itemType: String}, or of another type"),
    **dict.fromkeys(("row", "record", "struct"), "{kind: Struct, fields: [...]}"),
    "map": "{kind: Map, keyType: String, valueType: String}, or of other types",
}  # fmt: skip

_DDL: Final[dict[str, str]] = {
    **dict.fromkeys(_TEXT, "STRING"),
    **dict.fromkeys(_MOMENT, "TIMESTAMP"),
    **dict.fromkeys(_BYTES, "BINARY"),
    **dict.fromkeys(("number", "numeric", "decimal", "money"), "BIGINT " + _WHOLE_OR_NOT.format(
        "DOUBLE", "DECIMAL(18, 2)")),
    **dict.fromkeys(("bigserial", "serial"), "BIGINT"),
    "float64": "DOUBLE",
    "float32": "FLOAT",
    "logical": "BOOLEAN",
    "time": "STRING",
    "array": "ARRAY<STRING>, or of another type",
    "list": "ARRAY<STRING>, or of another type",
}  # fmt: skip


def odf_type_for(name: str) -> str | None:
    """Return the type in the notation of `schema` for a name from another system; None if the name is unknown."""
    text = name.strip().lower()
    exact = _DECIMAL.fullmatch(text)
    if exact is not None:
        return f"{{kind: Decimal, precision: {exact[1]}, scale: {exact[2] or 0}}}"
    return _ODF.get(_LENGTH.sub("", text))


def ddl_type_for(name: str) -> str | None:
    """Return the type in the notation of `ddlSchema` for a name from another system; None if the name is unknown."""
    return _DDL.get(_LENGTH.sub("", name.strip().lower()))
