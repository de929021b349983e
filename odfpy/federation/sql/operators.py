r"""Operators and functions of fragments: their arguments, result types and semantics, identical in every source.

- Integers are computed with 64 bits, decimals exactly, everything else as doubles. Overflow is an error.
- `/` divides as doubles, even integers.
- NaN equals NaN and is greater than all other values; -0.0 equals 0.0. Text is compared by code points.
- In LIKE patterns, `\` escapes the next `%`, `_` or `\`. Conditions use SQL's three-valued logic.
- A number that is cast to an integer is truncated.
- `md5` is that of a text in UTF-8, as 32 lowercase hexadecimal digits. Only sketches use it: users cannot call it in
  their queries.

Arguments of several types are first cast to one type, visibly in the tree. With a column of another relay, whose type
is unknown here, the type of the result is unknown, too; the relay that has the column parses the text again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa

from odfpy.federation.sql.casting import cast, common_type, is_lossless, unified
from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import Call, Constant, Expression, has_aggregate, rebuilt
from odfpy.federation.sql.types import BOOL, DIGITS, DOUBLE, INT, MAX_DIGITS, TEXT, UNKNOWN, kind_of

NULL: Final = Constant(None, UNKNOWN)
TRUE: Final = Constant(True, BOOL)
FALSE: Final = Constant(False, BOOL)

_MAX_WILDCARDS: Final = 100
"""Engines make regular expressions of patterns: of one with thousands they compile for half a minute."""


def call(operator: str, *arguments: Expression) -> Expression:
    """Apply an operator or function to arguments, with its type.

    Args:
        operator: name of the operator, one of `OPERATORS`.
        arguments: arguments in order.

    Raises:
        InvalidFragment: it does not accept these arguments.
    """
    return OPERATORS[operator](operator, arguments)


def retyped(expression: Expression, column: Callable[[str], Expression]) -> Expression:
    """Replace or retype the columns of a tree; the types of all calls are derived anew.

    Args:
        expression: the tree.
        column: returns the replacement of a column, by its name.

    Raises:
        InvalidFragment: an operator does not accept the new types.
    """
    return rebuilt(expression, lambda node: column(node.name), called_again)


def called_again(node: Call, arguments: Sequence[Expression]) -> Expression:
    """Apply the same operator to other arguments; its type is derived from theirs."""
    return cast(arguments[0], node.dtype) if node.operator == "cast" else call(node.operator, *arguments)


def all_of(conditions: Sequence[Expression]) -> Expression | None:
    """Return the conjunction of conditions; None if there are none."""
    return None if not conditions else conditions[0] if len(conditions) == 1 else call("and", *conditions)


def can_fail(node: Expression) -> bool:
    """Return whether the outermost operator of an expression can fail for some values.

    Args:
        node: any expression.
    """
    if not isinstance(node, Call):
        return False
    if node.operator == "cast":
        return not is_lossless(node.arguments[0].dtype, node.dtype)
    return node.operator in _FAILING


_FAILING: Final = frozenset(("add", "sub", "mul", "div", "neg", "abs", "md5"))
"""A database may hold texts that cannot become UTF-8, which `md5` is of."""


# --- Arguments and results of the operators --------------------------------------------------------------------------


def _boolean(operator: str, arguments: Sequence[Expression]) -> Expression:
    if operator == "not":
        _has_number(operator, arguments, 1)
    flat: list[Expression] = []
    for argument in arguments:
        nested = isinstance(argument, Call) and argument.operator == operator != "not"
        flat.extend(
            argument.arguments
            if nested and isinstance(argument, Call)
            else [cast(argument, BOOL) if argument == NULL else argument]
        )
    if not flat or any(kind_of(operand.dtype) not in ("bool", "unknown") for operand in flat):
        raise InvalidFragment(f"{operator.upper()} is of conditions")
    return Call(operator, tuple(flat), BOOL)


def _comparison(operator: str, arguments: Sequence[Expression]) -> Expression:
    if len(arguments) < 2 or (operator == "between" and len(arguments) != 3):
        raise InvalidFragment("A comparison has two sides")
    if operator not in ("in", "between"):
        _has_number(operator, arguments, 2)
    if operator == "in" and not all(isinstance(argument, Constant) for argument in arguments[1:]):
        raise InvalidFragment("IN has a list of constants")
    compared = unified(arguments, numbers_as_they_are=True)
    kinds = {kind_of(operand.dtype) for operand in compared}
    if "opaque" in kinds:
        raise InvalidFragment("Lists, structures and binary values cannot be compared")
    if operator not in ("eq", "ne", "in") and "bool" in kinds:
        raise InvalidFragment("Conditions have no order")
    return Call(operator, tuple(compared), BOOL)


def _is_null(operator: str, arguments: Sequence[Expression]) -> Expression:
    _has_number(operator, arguments, 1)
    return Call(operator, tuple(arguments), BOOL)


def _like(operator: str, arguments: Sequence[Expression]) -> Expression:
    _has_number(operator, arguments, 2)
    value, pattern = arguments
    if kind_of(value.dtype) not in ("text", "unknown"):
        raise InvalidFragment("LIKE is of text")
    if not isinstance(pattern, Constant) or not isinstance(pattern.value, str):
        raise InvalidFragment("The pattern of LIKE is a constant")
    escaped = pattern.value.replace("\\\\", "").replace("\\%", "").replace("\\_", "")
    if "\\" in escaped:
        raise InvalidFragment("In a pattern, `\\` stands before %, _ or another one")
    if escaped.count("%") > _MAX_WILDCARDS:
        raise InvalidFragment(f"A pattern has at most {_MAX_WILDCARDS} %")
    return Call(operator, (value, pattern), BOOL)


def _arithmetic(operator: str, arguments: Sequence[Expression]) -> Expression:
    _has_number(operator, arguments, 1 if operator in ("neg", "abs") else 2)
    kinds = {kind_of(argument.dtype) for argument in arguments if argument != NULL}
    if not kinds <= {"int", "decimal", "float", "unknown"}:
        raise InvalidFragment("Only numbers are calculated with")
    if "unknown" in kinds:
        return Call(operator, tuple(arguments), UNKNOWN)
    if operator == "div" or "float" in kinds or not kinds:
        dtype: pa.DataType = DOUBLE
    elif "decimal" in kinds:
        return _exact(operator, [_as_decimal(argument) for argument in arguments])
    else:
        dtype = INT
        if any(argument.dtype == pa.uint64() for argument in arguments):
            raise InvalidFragment("Unsigned numbers of 64 bits are not calculated with")
    values = [cast(argument, dtype) for argument in arguments]
    return _folded(operator, values, dtype) or Call(operator, tuple(values), dtype)


def _folded(operator: str, values: Sequence[Expression], dtype: pa.DataType) -> Constant | None:
    """Evaluate a calculation with constants; None where that is left to an engine."""
    numbers = [value.value for value in values if isinstance(value, Constant) and value.value is not None]
    if len(numbers) < len(values) or operator not in _CALCULATED:
        return None
    result = _CALCULATED[operator](*numbers)
    if kind_of(dtype) == "int" and not -(1 << 63) <= result < 1 << 63:
        return None
    return Constant(result, dtype)


_CALCULATED: Final[dict[str, Callable[..., Any]]] = {
    "add": lambda one, other: one + other,
    "sub": lambda one, other: one - other,
    "mul": lambda one, other: one * other,
    "neg": lambda one: -one,
}


def _as_decimal(expression: Expression) -> Expression:
    if kind_of(expression.dtype) == "decimal":
        return expression
    if isinstance(expression, Constant) and expression.value is not None:
        return cast(expression, pa.decimal128(max(1, len(str(abs(expression.value)))), 0))
    return cast(expression, pa.decimal128(DIGITS[expression.dtype.bit_width] if expression != NULL else 1, 0))


def _exact(operator: str, arguments: Sequence[Expression]) -> Expression:
    first, last = arguments[0].dtype, arguments[-1].dtype
    if len(arguments) == 1:
        return Call(operator, tuple(arguments), first)
    if operator == "mul":
        scale, precision = first.scale + last.scale, first.precision + last.precision + 1
    else:
        scale = max(first.scale, last.scale)
        precision = max(first.precision - first.scale, last.precision - last.scale) + scale + 1
    if scale > MAX_DIGITS:
        raise InvalidFragment("A decimal number has too many digits")
    return Call(operator, tuple(arguments), pa.decimal128(min(precision, MAX_DIGITS), scale))


def _choice(operator: str, arguments: Sequence[Expression]) -> Expression:
    """Split the arguments of `case` into conditions, values and ELSE; those of `coalesce` and `nullif` are values."""
    if operator == "case":
        if len(arguments) < 3 or len(arguments) % 2 == 0:
            raise InvalidFragment("CASE has conditions with values, and a value else")
        conditions, values = list(arguments[:-1:2]), [*arguments[1:-1:2], arguments[-1]]
        if any(kind_of(condition.dtype) not in ("bool", "unknown") for condition in conditions):
            raise InvalidFragment("CASE WHEN is of conditions")
    else:
        conditions, values = [], list(arguments)
        if operator == "nullif":
            _has_number(operator, arguments, 2)
    if not values:
        raise InvalidFragment(f"{operator} has no arguments")
    values = list(unified(values))
    dtype = common_type(values)
    if kind_of(dtype) == "opaque" and (operator == "nullif" or any(value.dtype != dtype for value in values)):
        raise InvalidFragment(f"{operator} cannot have lists, structures or binary values")
    if not conditions:
        return Call(operator, tuple(values), dtype)
    pairs = [part for pair in zip(conditions, values[:-1], strict=True) for part in pair]
    return Call(operator, (*pairs, values[-1]), dtype)


def _of_text(operator: str, arguments: Sequence[Expression]) -> Expression:
    arguments = [cast(argument, TEXT) if argument == NULL else argument for argument in arguments]
    texts = arguments[:1] if operator == "substring" else arguments
    if not texts or any(kind_of(text.dtype) not in ("text", "unknown") for text in texts):
        raise InvalidFragment(f"{operator} is of text")
    if operator == "concat":
        if len(arguments) < 2:
            raise InvalidFragment("|| has two sides")
    elif operator == "substring":
        numbers = [
            argument.value
            for argument in arguments[1:]
            if isinstance(argument, Constant) and type(argument.value) is int
        ]
        most = 1 << 31
        right = len(numbers) == len(arguments) - 1 and len(numbers) in (1, 2)
        if not right or numbers[0] < 1 or not all(0 <= number < most for number in numbers):
            raise InvalidFragment("substring has a first place from 1 on, and a length, as constants")
    else:
        _has_number(operator, arguments, 1)
    return Call(operator, tuple(arguments), INT if operator == "char_length" else TEXT)


def _of_date(operator: str, arguments: Sequence[Expression]) -> Expression:
    _has_number(operator, arguments, 1)
    [value] = arguments
    zoned = kind_of(value.dtype) == "time" and value.dtype.tz is not None
    if kind_of(value.dtype) not in ("date", "time", "unknown") or zoned:
        raise InvalidFragment(f"{operator} is of dates, and of times without a zone")
    return Call(operator, (value,), INT)


def _aggregate(operator: str, arguments: Sequence[Expression]) -> Expression:
    _has_number(operator, arguments, 0 if operator == "count_all" else 1)
    if any(has_aggregate(argument) for argument in arguments):
        raise InvalidFragment("An aggregate has no other one inside")
    if operator in ("count_all", "count"):
        return Call(operator, tuple(arguments), INT)
    [value] = arguments
    kind = kind_of(value.dtype)
    if operator in ("min", "max"):
        if kind in ("bool", "opaque"):
            raise InvalidFragment(f"{operator} is of what has an order")
        return Call(operator, (value,), value.dtype)
    if kind == "unknown":
        return Call(operator, (value,), UNKNOWN)
    if kind not in ("int", "decimal", "float"):
        raise InvalidFragment("sum is of numbers")
    if kind == "float":
        return Call(operator, (cast(value, DOUBLE),), DOUBLE)
    # Partial sums may be larger than the total: they have the maximum number of digits.
    return Call(operator, (value,), pa.decimal128(MAX_DIGITS, value.dtype.scale if kind == "decimal" else 0))


def _has_number(operator: str, arguments: Sequence[Expression], number: int) -> None:
    if len(arguments) != number:
        raise InvalidFragment(f"{operator} has {number} argument{'' if number == 1 else 's'}, not {len(arguments)}")


OPERATORS: Final[dict[str, Callable[[str, Sequence[Expression]], Expression]]] = {
    **dict.fromkeys(("and", "or", "not"), _boolean),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "in", "between"), _comparison),
    "is_null": _is_null,
    "like": _like,
    **dict.fromkeys(("add", "sub", "mul", "div", "neg", "abs"), _arithmetic),
    **dict.fromkeys(("case", "coalesce", "nullif"), _choice),
    **dict.fromkeys(("lower", "upper", "concat", "char_length", "substring", "md5"), _of_text),
    **dict.fromkeys(("year", "month", "day"), _of_date),
    **dict.fromkeys(("count_all", "count", "sum", "min", "max"), _aggregate),
}
