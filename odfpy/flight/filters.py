"""Filters: conditions on columns, all of which must be true for requested rows.

In options of Spark they are encoded as JSON: `[["amount", ">", {"decimal": "1.50"}], ["name", "in", ["a", "b"]]]`.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from odfpy.errors import InvalidValue

_COMPARISONS: Final = ("=", "!=", "<", "<=", ">", ">=")
_OF_TEXT: Final = ("starts with", "ends with", "contains")
_OF_NULL: Final = ("is null", "is not null")
OPERATORS: Final = (*_COMPARISONS, "in", *_OF_TEXT, *_OF_NULL)
"""The supported operators."""

Scalar = bool | int | float | Decimal | str | bytes | date | datetime | time
"""Values that a column can be compared with."""


@dataclass(frozen=True)
class Filter:
    """A condition on a column, with SQL semantics: false for null, except for `is null`.

    Attributes:
        column: name of the column.
        operator: one of `OPERATORS`.
        value: right operand: a tuple of values for `in`, None for `is null` and `is not null`.
    """

    column: str
    operator: str
    value: Scalar | tuple[Scalar, ...] | None = None

    def __post_init__(self) -> None:
        if self.operator not in OPERATORS:
            raise InvalidValue(f"There is no operator {self.operator!r}", hint=f"One of: {', '.join(OPERATORS)}.")
        if not self._fits():
            raise InvalidValue(
                f"The value {self.value!r} does not fit the operator {self.operator!r} on {self.column!r}",
                hint="`in` takes a list, `is null` takes nothing, those of text take text; others take one value.",
            )

    def _fits(self) -> bool:
        if self.operator in _OF_NULL:
            return self.value is None
        if self.operator == "in":
            return isinstance(self.value, tuple) and all(_is_scalar(item) for item in self.value)
        if self.operator in _OF_TEXT:
            return isinstance(self.value, str)
        return _is_scalar(self.value)


def filters_of(conditions: Iterable[Filter | Sequence[Any]]) -> tuple[Filter, ...]:
    """Create filters from tuples `(column, operator, value)`.

    Args:
        conditions: conditions that must all be true.

    Raises:
        InvalidValue: the operator is unknown, or does not fit the value.
    """
    return tuple(condition if isinstance(condition, Filter) else _filter_of(condition) for condition in conditions)


def filters_to_json(conditions: Iterable[Filter | Sequence[Any]]) -> str:
    """Encode filters for the option `filters`.

    Args:
        conditions: as in `filters_of`.
    """
    return json.dumps(
        [[condition.column, condition.operator, _plain(condition.value)] for condition in filters_of(conditions)]
    )


def filters_from_json(text: str) -> tuple[Filter, ...]:
    """Decode the option `filters`.

    Raises:
        InvalidValue: the text is not such a list.
    """
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidValue(f"The filters are not JSON: {error}", hint=_FORM) from error
    if not isinstance(found, list):
        raise InvalidValue("The filters are not a list", hint=_FORM)
    return tuple(_filter_of(condition, _from_plain) for condition in found)


_FORM: Final = 'Write [["amount", ">", 10], ["name", "in", ["a", "b"]]].'


def _filter_of(condition: Any, value_of: Callable[[Any], Any] = lambda value: value) -> Filter:
    if not isinstance(condition, list | tuple) or not 2 <= len(condition) <= 3 or not isinstance(condition[0], str):
        raise InvalidValue(f"Not a condition: {condition!r}", hint=_FORM)
    column, operator, *rest = condition
    value = rest[0] if rest else None
    if isinstance(value, list | tuple):
        value = tuple(value_of(item) for item in value)
    elif value is not None:
        value = value_of(value)
    return Filter(column, str(operator).lower(), value)


def _is_scalar(value: object) -> bool:
    return isinstance(value, bool | int | float | Decimal | str | bytes | date | time)


_WORDS: Final[Mapping[str, Callable[[str], Scalar]]] = {
    "decimal": Decimal,
    "binary": lambda text: base64.b64decode(text, validate=True),
    "timestamp": lambda text: datetime.fromisoformat(text.replace("Z", "+00:00")),
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "float": float,
}


def _plain(value: Any) -> Any:
    """Return a value as JSON; types without a JSON equivalent become an object with one entry."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, bytes):
        return {"binary": base64.b64encode(value).decode()}
    if isinstance(value, datetime):
        return {"timestamp": value.isoformat()}
    if isinstance(value, date | time):
        return {"date" if isinstance(value, date) else "time": value.isoformat()}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    return value


def _from_plain(value: Any) -> Scalar:
    if not isinstance(value, dict):
        return value  # type: ignore[no-any-return]  # `Filter` looks at it
    if len(value) != 1 or (word := next(iter(value))) not in _WORDS:
        raise InvalidValue(f"Not a value: {value!r}", hint=f"Write one of {', '.join(_WORDS)} as {{WORD: TEXT}}.")
    try:
        return _WORDS[word](str(value[word]))
    except (ValueError, InvalidOperation) as error:
        raise InvalidValue(
            f"Not a {word}: {value[word]!r}", hint="Dates and times are written as in ISO 8601."
        ) from error
