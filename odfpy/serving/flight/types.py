"""GetXdbcTypeInfo: the types of columns, by their numbers in ODBC and JDBC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class _Type:
    """A type.

    Attributes:
        name: name in SQL.
        number: number in `XdbcDataType`.
        size: maximum digits, characters or bytes; None where not applicable.
        quotes: quotes around a literal.
        radix: radix of the size of a number, None for other types.
        scale: maximum scale of an exact number.
        generic: the number of the class of types, where it differs.
        subcode: number within that class.
    """

    name: str
    number: int
    size: int | None = None
    quotes: tuple[str, str] | None = None
    radix: int | None = None
    scale: int | None = None
    generic: int | None = None
    subcode: int | None = None


_TYPES: Final = (
    _Type("BOOLEAN", -7, 1),
    _Type("TINYINT", -6, 3, radix=10, scale=0),
    _Type("BIGINT", -5, 19, radix=10, scale=0),
    _Type("BINARY", -3, 2**31 - 1, ("X'", "'")),
    _Type("DECIMAL", 3, 38, radix=10, scale=38),
    _Type("INTEGER", 4, 10, radix=10, scale=0),
    _Type("SMALLINT", 5, 5, radix=10, scale=0),
    _Type("FLOAT", 7, 24, radix=2),
    _Type("DOUBLE", 8, 53, radix=2),
    _Type("VARCHAR", 12, 2**31 - 1, ("'", "'")),
    _Type("DATE", 91, 10, ("DATE '", "'"), generic=9, subcode=1),
    _Type("TIMESTAMP", 93, 29, ("TIMESTAMP '", "'"), generic=9, subcode=3),
)
_SCHEMA: Final = pa.schema(
    [
        pa.field("type_name", pa.string(), nullable=False),
        pa.field("data_type", pa.int32(), nullable=False),
        pa.field("column_size", pa.int32()),
        pa.field("literal_prefix", pa.string()),
        pa.field("literal_suffix", pa.string()),
        pa.field("create_params", pa.list_(pa.field("item", pa.string(), nullable=False))),
        pa.field("nullable", pa.int32(), nullable=False),
        pa.field("case_sensitive", pa.bool_(), nullable=False),
        pa.field("searchable", pa.int32(), nullable=False),
        pa.field("unsigned_attribute", pa.bool_()),
        pa.field("fixed_prec_scale", pa.bool_(), nullable=False),
        pa.field("auto_increment", pa.bool_()),
        pa.field("local_type_name", pa.string()),
        pa.field("minimum_scale", pa.int32()),
        pa.field("maximum_scale", pa.int32()),
        pa.field("sql_data_type", pa.int32(), nullable=False),
        pa.field("datetime_subcode", pa.int32()),
        pa.field("num_prec_radix", pa.int32()),
        pa.field("interval_precision", pa.int32()),
    ]
)
_NULLABLE: Final = 1
_SEARCHABLE: Final = 3
_SEARCHABLE_BUT_LIKE: Final = 2


def type_info(number: int | None) -> pa.Table:
    """Return all types, or those of one number."""
    return pa.Table.from_pylist([_row(sql_type) for sql_type in _TYPES if number in (None, sql_type.number)], _SCHEMA)


def _row(sql_type: _Type) -> dict[str, Any]:
    is_text, is_number = sql_type.name == "VARCHAR", sql_type.radix is not None
    return {
        "type_name": sql_type.name,
        "data_type": sql_type.number,
        "column_size": sql_type.size,
        "literal_prefix": sql_type.quotes and sql_type.quotes[0],
        "literal_suffix": sql_type.quotes and sql_type.quotes[1],
        "nullable": _NULLABLE,
        "case_sensitive": is_text,
        "searchable": _SEARCHABLE if is_text else _SEARCHABLE_BUT_LIKE,
        "unsigned_attribute": False if is_number else None,
        "fixed_prec_scale": False,
        "auto_increment": False if is_number else None,
        "local_type_name": sql_type.name,
        "minimum_scale": None if sql_type.scale is None else 0,
        "maximum_scale": sql_type.scale,
        "sql_data_type": sql_type.generic or sql_type.number,
        "datetime_subcode": sql_type.subcode,
        "num_prec_radix": sql_type.radix,
    }
