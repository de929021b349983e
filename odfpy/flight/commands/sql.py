"""Requests to Flight SQL servers: requests as SQL, and SQL as a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import pyarrow.flight as fl

from odfpy.errors import InvalidValue, UsageError
from odfpy.flight.commands.protobuf import data, number, number_of, packed, text, unpacked
from odfpy.flight.commands.protocol import Commands
from odfpy.flight.filters import Filter, Scalar
from odfpy.flight.request import Request

_SQL_OF: Final = {"!=": "<>", "is null": "IS NULL", "is not null": "IS NOT NULL"}
_PATTERNS: Final = {"starts with": "{}%", "ends with": "%{}", "contains": "%{}%"}
_ESCAPE: Final = "\\"
_WILD: Final = str.maketrans({"%": r"\%", "_": r"\_", "\\": r"\\"})
_CREATE: Final = 1
_APPEND, _REPLACE = 2, 3
_RECORD_COUNT: Final = 1


@dataclass(frozen=True)
class FlightSql(Commands):
    """Flight SQL: `CommandStatementQuery` to read, `CommandStatementIngest` to write.

    Attributes:
        quote: quote character of names: `"` as in the standard, or a backtick. Servers with backticks are assumed to
            treat a backslash in texts as an escape, like Spark, MySQL and others.
    """

    quote: str = '"'

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Commands:
        """Implement `Commands`: the option `arrow-flight.identifier-quote`."""
        return cls(options.get("arrow-flight.identifier-quote", '"'))

    def command(self, request: Request) -> bytes:
        """Implement `Commands`."""
        return packed("CommandStatementQuery", text(1, self.sql(request)))

    def sql(self, request: Request) -> str:
        """Return the query for a request. All names and values are quoted.

        Raises:
            InvalidValue: a name or value cannot be expressed in SQL.
        """
        columns = ", ".join(map(self.name, request.columns)) or "*"
        parts = [f"SELECT {columns} FROM {self.relation(request)}"]  # noqa: S608  it is quoted
        if request.filters:
            parts.append("WHERE " + " AND ".join(map(self.condition, request.filters)))
        if request.limit is not None:
            parts.append(f"LIMIT {request.limit}")
        if request.query is not None and len(parts) == 1 and columns == "*":
            return request.query
        return " ".join(parts)

    def relation(self, request: Request) -> str:
        """Return the relation after FROM: the table's name, or the query in parentheses."""
        if request.table is None:
            return f"({request.query}) AS {self.name('t')}"
        return ".".join(
            self.name(part) for part in (request.catalog, request.schema, request.table) if part is not None
        )

    def name(self, text: str) -> str:
        """Quote a name.

        Raises:
            InvalidValue: the text contains a character that names cannot have.
        """
        return _quoted(text, self.quote)

    def condition(self, condition: Filter) -> str:
        """Return a condition in SQL."""
        column = self.name(condition.column)
        value = condition.value
        if value is None:
            return f"{column} {_SQL_OF[condition.operator]}"
        if isinstance(value, tuple):
            values = ", ".join(map(self.constant, value))
            return f"{column} IN ({values})" if values else "1 = 0"
        if condition.operator in _PATTERNS:
            escaped = str(value).translate(_WILD)
            pattern = self.constant(_PATTERNS[condition.operator].format(escaped))
            return f"{column} LIKE {pattern}" + (f" ESCAPE {self.constant(_ESCAPE)}" if escaped != value else "")
        return f"{column} {_SQL_OF.get(condition.operator, condition.operator)} {self.constant(value)}"

    def constant(self, value: Scalar) -> str:
        """Return a literal in SQL.

        Raises:
            InvalidValue: SQL has no such literal.
        """
        match value:
            case bool():
                return "TRUE" if value else "FALSE"
            case int():
                return str(value)
            case float():
                return f"CAST('{value!r}' AS DOUBLE)" if not isfinite(value) else f"CAST({value!r} AS DOUBLE)"
            case Decimal():
                return _decimal(value)
            case str() if self.quote == "`":
                return _escaped(value)
            case str():
                return _quoted(value, "'")
            case bytes():
                return f"X'{value.hex()}'"
            case datetime() if value.tzinfo is None:
                return f"TIMESTAMP '{value.isoformat(' ')}'"
            case datetime():
                return f"CAST('{value.astimezone(timezone.utc).isoformat()}' AS TIMESTAMP WITH TIME ZONE)"
            case date():
                return f"DATE '{value.isoformat()}'"
            case time():
                return f"TIME '{value.isoformat()}'"

    def write_descriptor(self, request: Request, *, replace: bool, transaction: bytes | None) -> Any:
        """Implement `Commands`: the table is created if it does not exist."""
        if request.table is None:
            raise UsageError("Rows are written to a table, not to a query", hint="Give `table`.")
        body = (
            data(1, number(1, _CREATE) + number(2, _REPLACE if replace else _APPEND))
            + text(2, request.table)
            + text(3, request.schema)
            + text(4, request.catalog)
            + data(6, transaction)
        )
        return fl.FlightDescriptor.for_command(packed("CommandStatementIngest", body))

    def greatest(self, request: Request, column: str) -> Request:
        """Implement `Commands`."""
        name = self.name(column)
        return Request(query=f"SELECT MAX({name}) AS {name} FROM {self.relation(request)}")  # noqa: S608  it is quoted

    def rows_written(self, result: bytes) -> int | None:
        """Implement `Commands`: `DoPutUpdateResult`; -1 means that the server does not know."""
        count = number_of(unpacked(result), _RECORD_COUNT)
        return count if count is None or count >= 0 else None


def _quoted(text: str, quote: str) -> str:
    _check(text)
    return quote + text.replace(quote, quote * 2) + quote


def _escaped(text: str) -> str:
    """Escape a text for servers with backslash escapes; for some of them, doubled quotes end one literal and begin
    another.
    """
    _check(text)
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _check(text: str) -> None:
    if "\0" in text:
        raise InvalidValue(f"{text!r} has the character NUL, which SQL cannot have in names and texts")


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise InvalidValue(f"SQL has no decimal {value}", hint="Give a number, or a float.")
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits) + max(int(exponent), 0), scale, 1)
    return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"
