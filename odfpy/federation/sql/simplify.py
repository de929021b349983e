"""Simplification of expressions, mostly of what chained mappings produce."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from odfpy.federation.sql.casting import cast
from odfpy.federation.sql.expressions import Call, Constant, Expression, rebuilt
from odfpy.federation.sql.operators import FALSE, TRUE, call
from odfpy.federation.sql.types import DOUBLE

_LINEAR: Final = frozenset(("add", "sub", "mul", "div", "neg"))
_MAX_DIGITS: Final = 60


def simplified(expression: Expression) -> Expression:
    """Simplify an expression: `AND`, `OR` and `CASE` of constants, and doubles of the form `a * x + b`.

    `({v} + 1) * .05` of `{v} / .05 - 1` is `{v}`, computed with exact fractions: the result is closer to the intended
    value than that of each step with its own rounding.

    Args:
        expression: any expression.
    """
    return rebuilt(expression, lambda column: column, _simpler)


def _simpler(node: Call, arguments: Sequence[Expression]) -> Expression:
    if node.operator == "cast":
        return cast(arguments[0], node.dtype)
    if node.operator in ("and", "or"):
        return _boolean(node.operator, arguments)
    simpler = call(node.operator, *arguments)
    if isinstance(simpler, Call) and simpler.operator in _LINEAR and simpler.dtype == DOUBLE:
        return _linear(simpler)
    if simpler.operator == "not" and isinstance(simpler, Call) and _is_boolean(simpler.arguments[0]):  # type: ignore[union-attr]
        return FALSE if simpler.arguments[0] == TRUE else TRUE
    return simpler


def _is_boolean(node: Expression) -> bool:
    return node in (TRUE, FALSE)


def _boolean(operator: str, arguments: Sequence[Expression]) -> Expression:
    decides, is_idle = (FALSE, TRUE) if operator == "and" else (TRUE, FALSE)
    left: dict[Expression, None] = {}
    for argument in arguments:
        if argument == decides:
            return decides
        if argument != is_idle:
            left[argument] = None
    if not left:
        return is_idle
    return next(iter(left)) if len(left) == 1 else call(operator, *left)


# --- a * x + b -------------------------------------------------------------------------------------------------------


def _linear(node: Call) -> Expression:
    """Combine several linear steps into `a * x + b`, if there are several."""
    steps, factor, offset, value = _taken_apart(node)
    if steps < 2 or value is None or factor == 0:
        return node
    product = _times(value, abs(factor))
    number = _constant(abs(offset))
    if product is None or number is None:
        return node
    if not offset:
        return call("neg", product) if factor < 0 else product
    if factor < 0:
        return call("sub", number if offset > 0 else call("neg", number), product)
    return call("add" if offset > 0 else "sub", product, number)


def _times(value: Expression, factor: Fraction) -> Expression | None:
    """Return a multiple of a value; None if that takes constants that no person would write."""
    if factor == 1:
        return value
    if factor.numerator == 1:
        divisor = _constant(1 / factor)
        return None if divisor is None else call("div", value, divisor)
    number = _constant(factor)
    return None if number is None else call("mul", value, number)


def _taken_apart(node: Expression) -> tuple[int, Fraction, Fraction, Expression | None]:
    """Decompose a double into number of steps, factor, offset and inner value; the value is None for a constant."""
    if isinstance(node, Constant):
        exact = _fraction(node)
        if exact is not None:
            return 0, Fraction(0), exact, None
    if isinstance(node, Call) and node.operator in _LINEAR and node.dtype == DOUBLE:
        parts = [_taken_apart(argument) for argument in node.arguments]
        combined = _combined(node.operator, parts)
        if combined is not None:
            return combined
    return 0, Fraction(1), Fraction(0), node


_Parts = tuple[int, Fraction, Fraction, "Expression | None"]


def _combined(operator: str, parts: Sequence[_Parts]) -> _Parts | None:
    first, last = parts[0], parts[-1]
    steps = sum(part[0] for part in parts) + 1
    if operator == "neg":
        return steps, -first[1], -first[2], first[3]
    if first[3] is not None and last[3] is not None:
        return None
    value = first[3] if last[3] is None else last[3]
    if operator in ("add", "sub"):
        sign = 1 if operator == "add" else -1
        return steps, first[1] + sign * last[1], first[2] + sign * last[2], value
    if operator == "mul":
        inner, number = (first, last[2]) if last[3] is None else (last, first[2])
        return steps, inner[1] * number, inner[2] * number, value
    if last[3] is None and last[2] != 0:
        return steps, first[1] / last[2], first[2] / last[2], value
    return None


def _fraction(node: Constant) -> Fraction | None:
    """Return the number that a constant was written as: 0.05, not the double closest to it."""
    if not isinstance(node.value, int | float) or isinstance(node.value, bool):
        return None
    try:
        return Fraction(repr(node.value))
    except (ValueError, OverflowError):
        return None


def _constant(number: Fraction) -> Constant | None:
    """Return a double for a number, None if it is not a constant that a person could have written."""
    try:
        double = float(number)
    except OverflowError:
        return None
    if len(str(number.numerator)) + len(str(number.denominator)) > _MAX_DIGITS or (double == 0) != (number == 0):
        return None
    return Constant(double, DOUBLE)
