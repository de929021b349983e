"""GetSqlInfo: the capabilities of the server, by the numbers of the standard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa

from odfpy import __version__
from odfpy.serving.flight.errors import WrongMessage

_UNION: Final = {
    "string_value": pa.string(),
    "bool_value": pa.bool_(),
    "bigint_value": pa.int64(),
    "int32_bitmask": pa.int32(),
    "string_list": pa.list_(pa.string()),
    "int32_to_int32_list_map": pa.map_(pa.int32(), pa.list_(pa.int32())),
}
SQL_INFO_SCHEMA: Final = pa.schema(
    [
        pa.field("info_name", pa.uint32(), nullable=False),
        pa.field("value", pa.dense_union([pa.field(*child) for child in _UNION.items()]), nullable=False),
    ]
)
_CASE, _QUOTE, _NULLS = 503, 504, 507
_OF_DIALECT: Final = {"datafusion": (3, '"', 0), "spark": (1, "`", 1)}
"""Case of unquoted names (3: lower case, 1: insensitive); the quote character; whether nulls sort high or low."""

_NO_LIMIT: Final = 0
_TEXTS: Final = {
    0: "odfpy",
    1: __version__,
    2: pa.__version__,
    6: "",  # Substrait is not supported
    7: "",
    513: "\\",  # escapes wildcards in patterns of names
    514: "",
    529: "schema",
    530: "procedure",
    531: "catalog",
}
_BOOLEANS: Final = {
    3: True,  # read only
    4: True,  # SQL
    5: False,  # Substrait
    9: True,  # cancelling
    10: False,  # bulk ingestion
    11: False,
    500: False,  # CREATE and DROP of catalogs, of schemas, of tables
    501: False,
    502: False,
    506: True,  # all tables can be selected from
    515: True,  # aliases of columns
    516: True,  # null concatenated is null
    518: True,  # aliases of tables
    519: False,  # which must differ from the names of tables
    520: True,  # expressions in ORDER BY
    521: True,  # ORDER BY columns that are not selected
    523: True,  # LIKE ... ESCAPE
    524: True,  # columns without nulls
    527: False,  # integrity enhancement facility
    532: True,  # catalogs precede schemas
    536: False,  # SELECT FOR UPDATE
    537: False,  # stored procedures
    539: True,  # correlated subqueries
    556: False,
    563: False,  # transactions
    565: False,
    566: False,
    572: False,  # batch updates
    573: False,  # savepoints
    574: False,  # named parameters
    575: False,
    576: False,
}
_LONGS: Final = {
    **{number: _NO_LIMIT for number in range(541, 562) if number != 556},
    562: 0,  # transactions: none (int32 in the standard, but the JDBC driver requires int64)
}
_NUMBERS: Final = {
    8: 0,  # no transactions
    100: 0,  # prepared statements have no time-out, in milliseconds
    101: 0,
    505: 1,  # quoted names are case-sensitive (missing in the standard's enumeration; JDBC interprets it so)
    522: 0b11,  # GROUP BY
    525: 0b111,  # grammar: extended
    526: 0b001,  # SQL-92: entry level
    528: 0b110,  # outer joins: all (as bits, as the JDBC driver reads them)
    533: 0,  # schemas and catalogs are not named in procedures, indexes and privileges
    534: 0,
    535: 0,  # positioned commands
    538: 0b1111,  # subqueries
    540: 0b11,  # UNION, UNION ALL
    564: 0b1,
    567: 0b10,  # result sets: forward only
    568: 0,
    569: 0b10,  # and read only
    570: 0,
    571: 0,
}
_LISTS: Final = {
    508: "ANTI EXPLAIN ILIKE LATERAL QUALIFY SEMI TABLESAMPLE TIMESTAMP UNNEST VERSION",
    509: "abs acos asin atan atan2 ceil cos cot degrees exp floor ln log log10 pi power radians random round sign sin"
    " sqrt tan trunc",
    510: "ascii btrim chr concat concat_ws initcap left length lower lpad ltrim octet_length overlay position"
    " regexp_like regexp_match regexp_replace repeat replace reverse right rpad rtrim split_part strpos substr to_hex"
    " translate trim upper",
    511: "odf_as_at odf_as_at_of odf_as_of odf_changelog odf_current",
    512: "current_date current_timestamp date_bin date_part date_trunc extract from_unixtime now to_timestamp",
}
"""Keywords beyond SQL-92, and numeric, string, system and time functions."""

_NUMBERS_AND_TEXT: Final = (0, 5, 6, 7, 13, 14, 19)
_CONVERSIONS: Final[Mapping[int, Mapping[int, Sequence[int]]]] = {
    517: {**dict.fromkeys(_NUMBERS_AND_TEXT, _NUMBERS_AND_TEXT), 4: (16, 19), 16: (4, 19)}  # and dates, times
}


def sql_info(wanted: set[int], dialect: str) -> pa.Table:
    """Return the capabilities of the server.

    Args:
        wanted: requested numbers; all if empty.
        dialect: SQL dialect of the connection.

    Raises:
        WrongMessage: there is no such number.
    """
    case, quote, nulls = _OF_DIALECT[dialect]
    texts, enumerated = _TEXTS | {_QUOTE: quote}, _NUMBERS | {_CASE: case, _NULLS: nulls}
    lists = {number: text.split() for number, text in _LISTS.items()}
    kinds: tuple[Mapping[int, object], ...] = (texts, _BOOLEANS, _LONGS, enumerated, lists, _CONVERSIONS)
    known = {number: (child, values[number]) for child, values in enumerate(kinds) for number in values}
    missing = wanted - known.keys()
    if missing:
        raise WrongMessage(f"GetSqlInfo knows nothing of {', '.join(map(str, sorted(missing)[:10]))}")
    numbers = sorted(wanted or known)
    values: list[list[object]] = [[] for _ in kinds]
    places = []
    for number in numbers:
        child, value = known[number]
        places.append((child, len(values[child])))
        values[child].append(list(value.items()) if isinstance(value, Mapping) else value)
    union = pa.UnionArray.from_dense(
        pa.array([child for child, _ in places], pa.int8()),
        pa.array([offset for _, offset in places], pa.int32()),
        [pa.array(column, kind) for column, kind in zip(values, _UNION.values(), strict=True)],
        list(_UNION),
    )
    return pa.Table.from_arrays([pa.array(numbers, pa.uint32()), union], schema=SQL_INFO_SCHEMA)
