"""SQL dialects of sources' engines: each writes expressions so that they mean what `operators` defines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import pyarrow as pa

from odfpy.errors import UsageError, did_you_mean
from odfpy.federation.sql.expressions import Call, Constant, Expression, walk
from odfpy.federation.sql.types import DOUBLE, INT, MAX_DIGITS, kind_of
from odfpy.federation.sql.writing import Writer


class SqlWriter(Writer):
    """A writer of standard SQL; base class of the writers of engines."""

    name = "sql"
    types: ClassVar[Mapping[str, str]] = {
        "bool": "BOOLEAN", "int8": "SMALLINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT",
        "uint8": "SMALLINT", "uint16": "INTEGER", "uint32": "BIGINT", "uint64": "DECIMAL(20, 0)",
        "float": "REAL", "double": "DOUBLE PRECISION", "string": "VARCHAR", "date32[day]": "DATE",
        "timestamp[s]": "TIMESTAMP", "timestamp[ms]": "TIMESTAMP", "timestamp[us]": "TIMESTAMP",
        "timestamp[ns]": "TIMESTAMP", "timestamp[us, tz=UTC]": "TIMESTAMP WITH TIME ZONE",
    }  # fmt: skip

    def cast(self, value: Expression, dtype: pa.DataType) -> str:
        old, new = (kind_of(dtype_side) == "time" and dtype_side.tz is not None for dtype_side in (value.dtype, dtype))
        if new and not old and kind_of(value.dtype) in ("time", "date"):
            return self._in_utc(self._as(self.write(value), pa.timestamp("us")))
        if old and not new and kind_of(dtype) in ("time", "date"):
            return self._as(f"({self.write(value)} AT TIME ZONE 'UTC')", dtype)
        return super().cast(value, dtype)

    def _in_utc(self, text: str) -> str:
        """Interpret a timestamp without time zone as UTC."""
        return f"({text} AT TIME ZONE 'UTC')"

    def number_cut_off(self, value: Expression, dtype: pa.DataType) -> str:
        text = self.write(value)
        return self._as(f"CASE WHEN {text} < 0 THEN CEIL({text}) ELSE FLOOR({text}) END", dtype)

    def _like(self, value: Expression, pattern: Expression) -> str:
        escaped = isinstance(pattern, Constant) and "\\" in str(pattern.value)
        return f"({self.write(value)} LIKE {self.write(pattern)}{self._escape if escaped else ''})"

    _escape: ClassVar[str] = " ESCAPE '\\'"

    def _sum(self, value: Expression) -> str:
        """Return the sum; sums of exact numbers have the maximum number of digits."""
        kind, text = kind_of(value.dtype), self.write(value)
        if kind == "float":
            return f"sum({text})"
        exact = pa.decimal128(MAX_DIGITS, value.dtype.scale if kind == "decimal" else 0)
        return self._as(f"sum({text if kind == 'decimal' else self._as(text, exact)})", exact)

    def _year(self, value: Expression) -> str:
        return self._as(super()._year(value), INT)

    def _month(self, value: Expression) -> str:
        return self._as(super()._month(value), INT)

    def _day(self, value: Expression) -> str:
        return self._as(super()._day(value), INT)

    def _substring(self, *parts: Expression) -> str:
        value, start, *length = map(self.write, parts)
        end = f" FOR {length[0]}" if length else ""
        return f"SUBSTRING({value} FROM {start}{end})"

    def _md5(self, value: Expression) -> str:
        return f"lower(md5({self.write(value)}))"


class DuckdbWriter(SqlWriter):
    """A writer of DuckDB's SQL."""

    name = "duckdb"
    types = Writer.types

    def number_cut_off(self, value: Expression, dtype: pa.DataType) -> str:
        return self._as(f"trunc({self.write(value)})", dtype)

    def _char_length(self, value: Expression) -> str:
        return f"length({self.write(value)})"

    def _md5(self, value: Expression) -> str:
        return f"md5({self.write(value)})"


class DatafusionWriter(SqlWriter):
    """A writer of DataFusion's SQL, in which a computed NaN may be less than all other values."""

    name = "datafusion"
    types: ClassVar[Mapping[str, str]] = {
        **Writer.types,
        "uint8": "TINYINT UNSIGNED", "uint16": "SMALLINT UNSIGNED", "uint32": "INT UNSIGNED",
        "uint64": "BIGINT UNSIGNED",
    }  # fmt: skip
    _escape = ""

    def _as(self, text: str, dtype: pa.DataType) -> str:
        if kind_of(dtype) == "time":
            unit = {"s": "Second", "ms": "Millisecond", "us": "Microsecond", "ns": "Nanosecond"}[dtype.unit]
            zone = "None" if dtype.tz is None else f'Some("{dtype.tz}")'
            return f"arrow_cast({text}, 'Timestamp({unit}, {zone})')"
        return super()._as(text, dtype)

    def number_cut_off(self, value: Expression, dtype: pa.DataType) -> str:
        return self._as(self.write(value), dtype)

    def _md5(self, value: Expression) -> str:
        return f"md5({self.write(value)})"

    def comparable(self, value: Expression) -> str:
        text = self.write(value)
        is_calculated = kind_of(value.dtype) == "float" and any(
            isinstance(node, Call) and node.operator != "cast" for node in walk(value)
        )
        return f"nanvl({text}, CAST('NaN' AS DOUBLE))" if is_calculated else text

    def _min(self, value: Expression) -> str:
        return f"min({self.comparable(value)})"

    def _max(self, value: Expression) -> str:
        return f"max({self.comparable(value)})"


class PostgresWriter(SqlWriter):
    """A writer of PostgreSQL's SQL, in which the order of texts depends on the database, and division by zero fails."""

    name = "postgres"
    types: ClassVar[Mapping[str, str]] = {**SqlWriter.types, "string": "TEXT", "timestamp[us, tz=UTC]": "TIMESTAMPTZ"}
    decimal = "NUMERIC"

    def number_cut_off(self, value: Expression, dtype: pa.DataType) -> str:
        return self._as(f"trunc({self.write(value)})", dtype)

    def comparable(self, value: Expression) -> str:
        text = super().comparable(value)
        return f'({text} COLLATE "C")' if kind_of(value.dtype) == "text" and not isinstance(value, Constant) else text

    def _min(self, value: Expression) -> str:
        return f"min({self.comparable(value)})"

    def _max(self, value: Expression) -> str:
        return f"max({self.comparable(value)})"

    def _md5(self, value: Expression) -> str:
        return f"md5(convert_to({self.write(value)}, 'UTF8'))"

    def _div(self, left: Expression, right: Expression) -> str:
        dividend, divisor = self.write(left), self.write(right)
        if isinstance(right, Constant) and right.value:
            return f"({dividend} / {divisor})"
        double = self.type_name(DOUBLE)
        cases = (
            f"WHEN {dividend} = 0 OR {dividend} = 'NaN' THEN 'NaN' WHEN {dividend} > 0 THEN 'Infinity' ELSE '-Infinity'"
        )
        by_zero = f"CASE WHEN {dividend} IS NULL THEN NULL {cases} END"
        return f"CASE WHEN {divisor} = 0 THEN CAST({by_zero} AS {double}) ELSE {dividend} / {divisor} END"


class TrinoWriter(SqlWriter):
    """A writer of Trino's SQL."""

    name = "trino"
    types: ClassVar[Mapping[str, str]] = {
        **SqlWriter.types,
        "int8": "TINYINT", "double": "DOUBLE", "timestamp[s]": "TIMESTAMP(0)", "timestamp[ms]": "TIMESTAMP(3)",
        "timestamp[us]": "TIMESTAMP(6)", "timestamp[ns]": "TIMESTAMP(9)",
        "timestamp[us, tz=UTC]": "TIMESTAMP(6) WITH TIME ZONE",
    }  # fmt: skip

    def _in_utc(self, text: str) -> str:
        return f"with_timezone({text}, 'UTC')"

    def number_cut_off(self, value: Expression, dtype: pa.DataType) -> str:
        return self._as(f"truncate({self.write(value)})", dtype)

    def _char_length(self, value: Expression) -> str:
        return f"length({self.write(value)})"

    def _md5(self, value: Expression) -> str:
        return f"lower(to_hex(md5(to_utf8({self.write(value)}))))"


WRITERS: Final[Mapping[str, Writer]] = {
    one.name: one for one in (SqlWriter(), DuckdbWriter(), DatafusionWriter(), PostgresWriter(), TrinoWriter())
}


def writer_of(dialect: str) -> Writer:
    """Return the writer for the engine of a source.

    Args:
        dialect: name of the engine; `sql` for unknown engines.

    Raises:
        UsageError: unknown engine; the message suggests a similar name.
    """
    if dialect not in WRITERS:
        known = f"There are {', '.join(sorted(WRITERS))}."
        raise UsageError(f"No SQL is called {dialect!r}", hint=did_you_mean(dialect, WRITERS, otherwise=known))
    return WRITERS[dialect]
