"""Expressions as JSON, as exchanged between relays. They contain no SQL, so untrusted SQL never has to be parsed.

    ["column", "discount"]
    ["constant", "decimal128(2, 2)", "0.05"]
    ["cast", "double", ["column", "quantity"]]
    ["and", ["le", ["column", "shipdate"], ["constant", "date32[day]", "1998-09-02"]], ...]

Types of calls follow from those of their arguments, which the receiver knows better than the sender.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from odfpy.federation.sql.casting import cast
from odfpy.federation.sql.columns import Columns
from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import MAX_DEPTH, MAX_NODES, Column, Constant, Expression
from odfpy.federation.sql.operators import OPERATORS, call
from odfpy.federation.sql.types import MAX_DIGITS, UNKNOWN, kind_of, plain, type_from_json, type_to_json

MAX_NAME_LENGTH: Final = 1_000
MAX_TEXT_LENGTH: Final = 64 << 10


def to_json(node: Expression) -> list[Any]:
    """Encode an expression as JSON.

    Args:
        node: the expression.
    """
    if isinstance(node, Column):
        return ["column", node.name]
    if isinstance(node, Constant):
        return ["constant", type_to_json(node.dtype), _value_to_json(node.value)]
    arguments = [to_json(argument) for argument in node.arguments]
    return ["cast", type_to_json(node.dtype), *arguments] if node.operator == "cast" else [node.operator, *arguments]


def from_json(json: Any, columns: Columns) -> Expression:
    """Decode an expression from JSON.

    Args:
        json: result of `json.loads`.
        columns: looks up a column by name.

    Raises:
        InvalidFragment: it is not in the grammar, or too large.
    """
    return _Reader(columns).read(json, 1)


def name_from_json(json: Any) -> str:
    """Decode a name from JSON.

    Raises:
        InvalidFragment: it is invalid.
    """
    if not isinstance(json, str) or not 0 < len(json) <= MAX_NAME_LENGTH:
        raise InvalidFragment(f"Malformed fragment: expected a name of 1 to {MAX_NAME_LENGTH} characters")
    return _text(json)


class _Reader:
    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._nodes = 0

    def read(self, json: Any, depth: int) -> Expression:
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            raise InvalidFragment(f"An expression has more than {MAX_NODES:,} parts, or {MAX_DEPTH} levels")
        match json:
            case ["column", name]:
                return self._columns(name_from_json(name))
            case ["constant", dtype, value]:
                return _constant(plain(type_from_json(dtype)), value)
            case ["cast", dtype, value]:
                return cast(self.read(value, depth + 1), plain(type_from_json(dtype)))
            case [str(operator), *arguments] if operator in OPERATORS:
                return call(operator, *(self.read(argument, depth + 1) for argument in arguments))
        raise InvalidFragment("Malformed fragment: expected an expression")


def _value_to_json(value: Any) -> Any:
    match value:
        case None | bool() | str():
            return value
        case int():
            return str(value)
        case float():
            return repr(value)
        case Decimal():
            return f"{value:f}"
        case datetime() | date():
            return value.isoformat()
    raise InvalidFragment(f"There are no constants of type {type(value).__name__}")


def _constant(dtype: pa.DataType, value: Any) -> Constant:
    kind = kind_of(dtype)
    if value is None:
        return Constant(None, dtype)
    if kind == "bool" and isinstance(value, bool):
        return Constant(value, dtype)
    if kind not in _VALUES or not isinstance(value, str) or len(value) > MAX_TEXT_LENGTH or dtype == UNKNOWN:
        raise InvalidFragment(f"Malformed fragment: invalid constant of type {dtype}")
    try:
        return Constant(_VALUES[kind](value, dtype), dtype)
    except (ValueError, ArithmeticError) as error:
        raise InvalidFragment(f"Malformed fragment: invalid constant of type {dtype}") from error


def _text(value: str, _: Any = None) -> str:
    if "\0" in value:
        raise InvalidFragment("Malformed fragment: a string contains a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidFragment("Malformed fragment: invalid characters in a string") from error
    return value


def _int(value: str, dtype: pa.DataType) -> int:
    number = int(value) if len(value) <= 20 else 1 << 64
    pa.scalar(number, dtype)  # raises if it does not fit
    return number


def _decimal(value: str, dtype: pa.DataType) -> Decimal:
    if len(value) > 2 * MAX_DIGITS:
        raise ValueError(value)
    number = Decimal(value)
    pa.scalar(number, dtype)
    return number


def _float(value: str, _: pa.DataType) -> float:
    return float(value)


def _date(value: str, _: pa.DataType) -> date:
    return date.fromisoformat(value)


def _time(value: str, dtype: pa.DataType) -> datetime:
    time = datetime.fromisoformat(value)
    if (time.tzinfo is None) != (dtype.tz is None):
        raise ValueError(value)
    return time


_VALUES: Final[dict[str, Callable[[str, pa.DataType], Any]]] = {
    "int": _int,
    "decimal": _decimal,
    "float": _float,
    "text": _text,
    "date": _date,
    "time": _time,
}
