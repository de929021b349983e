"""The two SQL dialects of queries: parsing, quoting and constants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final

from odfpy.engine.sql.projection import DATAFUSION, SPARK, Grammar
from odfpy.errors import EngineNotFound, UsageError, did_you_mean

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokenizer_core import Token

_DECIMAL_DIGITS: Final = 38


_BIGGER: Final = 1 << 63
"""From this value on, some engines treat integers as doubles."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """A SQL dialect and its engine.

    Attributes:
        name: name of the engine.
        sqlglot: the closest dialect of sqlglot.
        grammar: notation of names and constants.
    """

    name: str
    sqlglot: str
    grammar: Grammar

    def quoted(self, name: str) -> str:
        """Return a name, quoted as in the dialect."""
        return self.grammar.name(name)

    def tokens(self, text: str) -> Sequence[Token]:
        """Return the tokens of a text.

        Raises:
            TokenError: of sqlglot, for example because of an unclosed quote.
        """
        from sqlglot import tokenize

        return tokenize(text, dialect=self.sqlglot)

    def tree(self, text: str) -> exp.Expr | None:
        """Return the syntax tree; None if sqlglot does not parse the text, which may still be valid."""
        from sqlglot import parse
        from sqlglot.errors import SqlglotError

        try:
            trees = parse(text, dialect=self.sqlglot)
        except (SqlglotError, RecursionError):
            return None
        return trees[0] if len(trees) == 1 else None

    def literal(self, value: Any) -> str:
        """Return a value as a constant of the dialect.

        Raises:
            UsageError: the dialect has no constants of the value's type.
        """
        from sqlglot import exp

        match value:
            case None:
                return "NULL"
            case bool():
                return "TRUE" if value else "FALSE"
            case int() if value == -_BIGGER:
                return f"CAST('{value}' AS BIGINT)"
            case int() if not -_BIGGER < value < _BIGGER:
                return _exact(Decimal(value))
            case int():
                return f"({value})" if value < 0 else str(value)
            case Integral():
                return self.literal(int(value))
            case Decimal() if value.is_finite():
                return _exact(value)
            case float() | Decimal():
                return f"CAST('{value}' AS DOUBLE)"
            case str():
                return exp.Literal.string(value).sql(dialect=self.sqlglot)
            case bytes():
                return f"X'{value.hex()}'"
            case datetime() if value != value:  # noqa: PLR0124  pandas' missing time
                return "NULL"
            case datetime():
                return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
            case date():
                return f"DATE '{value.isoformat()}'"
        raise UsageError(
            f"A parameter of type {type(value).__name__} cannot be written in SQL",
            hint="Parameters are numbers, texts, bytes, times, dates, true, false and null.",
        )


DIALECTS: Final = {
    "spark": Dialect("spark", "spark", SPARK),
    "datafusion": Dialect("datafusion", "postgres", DATAFUSION),
}


def dialect_named(name: str) -> Dialect:
    """Return the dialect of an engine; case is ignored.

    Raises:
        EngineNotFound: the engine is unknown; the hint suggests one.
        UsageError: the name is not text.
    """
    if not isinstance(name, str):
        raise UsageError(f"The name of an engine must be a string, not {name!r:.100}")
    if name.lower() not in DIALECTS:
        known = f"Engines of this release: {', '.join(sorted(DIALECTS))}."
        raise EngineNotFound(f"No engine is called {name!r}", hint=did_you_mean(name, DIALECTS, otherwise=known))
    return DIALECTS[name.lower()]


def _exact(value: Decimal) -> str:
    """Return a decimal number in a notation that no engine reads as a double.

    Raises:
        UsageError: the number has too many digits.
    """
    _, digits, exponent = value.as_tuple()
    scale = max(0, -int(exponent))
    precision = max(len(digits) + max(0, int(exponent)), scale, 1)
    if precision > _DECIMAL_DIGITS:
        raise UsageError(f"A decimal parameter has {_DECIMAL_DIGITS} digits at most, not {precision}")
    return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"


def with_parameters(text: str, dialect: Dialect, values: Sequence[Any]) -> str:
    """Replace each `?` in a query by a constant, in order.

    Args:
        text: the query.
        dialect: the dialect of the query.
        values: the constants.

    Raises:
        UsageError: there are more or fewer values than parameters.
    """
    places = parameter_places(text, dialect)
    if len(places) != len(values):
        raise UsageError(
            f"The query has {len(places)} parameter{'' if len(places) == 1 else 's'}, but {len(values)} were given",
            hint="Give one value for each `?`.",
        )
    for place, value in zip(reversed(places), reversed(values), strict=True):
        text = text[:place] + dialect.literal(value) + text[place + 1 :]
    return text


def parameter_places(text: str, dialect: Dialect) -> list[int]:
    """Return the positions of `?` parameters."""
    from sqlglot.errors import TokenError

    if "?" not in text:
        return []
    try:
        tokens = dialect.tokens(text)
    except TokenError:
        return []
    return [token.start for token in tokens if token.token_type.name == "PLACEHOLDER" and token.text == "?"]
