"""Casts in fragments: which exist, which are lossless, and the common type of several values."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timezone
from decimal import Decimal, InvalidOperation, localcontext
from functools import reduce
from typing import Any, Final

import pyarrow as pa

from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import Call, Constant, Expression
from odfpy.federation.sql.types import DIGITS, DOUBLE, MAX_DIGITS, UNKNOWN, kind_of, plain

_NUMBERS: Final = ("int", "decimal", "float")
_UNITS: Final = ("s", "ms", "us", "ns")
_TO: Final = {
    "bool": {"bool", "text"},
    "int": {*_NUMBERS, "text"},
    "decimal": {*_NUMBERS, "text"},
    "float": {*_NUMBERS, "text"},
    "text": {*_NUMBERS, "text", "date", "time", "bool"},
    "date": {"date", "time", "text"},
    "time": {"date", "time", "text"},
}
"""Kinds of types that each kind can become."""


def cast(value: Expression, dtype: pa.DataType) -> Expression:
    """Cast a value to a type: unchanged if it has that type, folded if it is a constant, otherwise a cast expression.

    Args:
        value: the value.
        dtype: the target type.

    Raises:
        InvalidFragment: this cast is not supported.
    """
    wanted = plain(dtype)
    if value.dtype == wanted:
        return value
    if wanted == UNKNOWN:
        raise InvalidFragment("There is no cast to a type that is not known")
    if isinstance(value, Constant):
        if value.value is None:
            return Constant(None, wanted)
        constant = _constant(value, wanted)
        if constant is not None:
            return constant
    if isinstance(value, Call) and value.operator == "cast":
        inner = value.arguments[0]
        if is_lossless(inner.dtype, value.dtype) and _is_plain_chain(inner.dtype, value.dtype, wanted):
            return cast(inner, wanted)
    kind, target = kind_of(value.dtype), kind_of(wanted)
    both_opaque = kind == target == "opaque"
    if kind != "unknown" and not both_opaque and target not in _TO.get(kind, ()):
        raise InvalidFragment(f"{value.dtype} cannot become {wanted}")
    return Call("cast", (value,), wanted)


def _is_plain_chain(first: pa.DataType, middle: pa.DataType, last: pa.DataType) -> bool:
    """Return whether the middle of two nested casts can be omitted."""
    if last == first:
        return True
    kinds = {kind_of(first), kind_of(middle), kind_of(last)}
    return "text" not in kinds and (len(kinds) == 1 or kinds <= {"int", "decimal"} or is_lossless(first, last))


def is_lossless(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether every value of a type has an equal in another type, so that a cast can neither fail nor round.

    Args:
        old: a plain type.
        new: another one.
    """
    if old == new:
        return True
    match kind_of(old), kind_of(new):
        case "int", "int":
            signed = pa.types.is_signed_integer
            room = new.bit_width - (not signed(old) and signed(new))
            return bool((signed(new) or not signed(old)) and old.bit_width <= room)
        case "int", "decimal":
            return bool(DIGITS[old.bit_width] <= new.precision - new.scale)
        case "int", "float":
            return bool(old.bit_width <= (32 if new == DOUBLE else 16))
        case "decimal", "decimal":
            return bool(old.scale <= new.scale and old.precision - old.scale <= new.precision - new.scale)
        case "float", "float":
            return bool(new == DOUBLE)
        case "date", "time":
            return new.tz is None and new.unit in ("s", "ms")
        case "time", "time":
            return old.tz == new.tz and (old.unit, new.unit) in (("s", "ms"), ("s", "us"), ("ms", "us"))
        case _:
            return False


def unified(values: Sequence[Expression], *, numbers_as_they_are: bool = False) -> list[Expression]:
    """Cast several values to their common type.

    Args:
        values: at least one value.
        numbers_as_they_are: leave integers and decimals, which are compared exactly, unchanged.

    Raises:
        InvalidFragment: there is no common type.
    """
    dtype = common_type(values)
    if dtype == UNKNOWN:
        return list(values)
    exact = ("int", "decimal")
    if numbers_as_they_are and kind_of(dtype) in exact:
        return [cast(value, dtype) if kind_of(value.dtype) == "unknown" else value for value in values]
    return [cast(value, dtype) for value in values]


def common_type(values: Sequence[Expression]) -> pa.DataType:
    """Return the common type of several values; unknown if the type of one is.

    Raises:
        InvalidFragment: there is no common type.
    """
    known = [
        value
        for value in values
        if not (isinstance(value, Constant) and value.value is None and value.dtype == UNKNOWN)
    ]
    if any(expression.dtype == UNKNOWN for expression in known):
        return UNKNOWN
    if not known:
        return UNKNOWN
    typed = [
        expression
        for expression in known
        if not isinstance(expression, Constant) or kind_of(expression.dtype) != "text"
    ]
    if typed and all(kind_of(expression.dtype) in ("date", "time", *_NUMBERS) for expression in typed):
        known = typed  # string constants take the type that they are compared with
    times = [
        expression.dtype
        for expression in known
        if kind_of(expression.dtype) == "time" and not isinstance(expression, Constant)
    ]
    if times and all(kind_of(expression.dtype) == "time" for expression in known):
        # So do constant timestamps: a column that is compared with one keeps its type.
        known = [
            expression
            for expression in known
            if not (isinstance(expression, Constant) and _fits_unit(expression, times[0]))
        ]
    return reduce(_common, [expression.dtype for expression in known])


def _common(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if left == right:
        return left
    kinds = {kind_of(left), kind_of(right)}
    if kinds == {"int"}:
        return _common_int(left, right)
    if kinds <= set(_NUMBERS):
        if "float" in kinds:
            return DOUBLE
        first, second = (_decimal(dtype) for dtype in (left, right))
        scale = max(first.scale, second.scale)
        digits = max(first.precision - first.scale, second.precision - second.scale)
        return pa.decimal128(min(MAX_DIGITS, digits + scale), scale)
    if kinds == {"date", "time"}:
        dtype = left if kind_of(left) == "time" else right
        if dtype.tz is None:
            return dtype
    elif kinds == {"time"} and left.tz == right.tz:
        return pa.timestamp(max(left.unit, right.unit, key=_UNITS.index), left.tz)
    raise InvalidFragment(f"{left} and {right} have no type in common")


def _common_int(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    for wide, narrow in ((left, right), (right, left)):
        if is_lossless(narrow, wide):
            return wide
    if pa.uint64() in (left, right):
        raise InvalidFragment(f"{left} and {right} have no type in common")
    return pa.int64()


def _decimal(dtype: pa.DataType) -> pa.DataType:
    return pa.decimal128(DIGITS[dtype.bit_width], 0) if kind_of(dtype) == "int" else dtype


# --- Constants -------------------------------------------------------------------------------------------------------


def _constant(constant: Constant, dtype: pa.DataType) -> Constant | None:
    """Return the constant as another type, None where only an engine can evaluate the cast."""
    value: Any = constant.value
    match kind_of(constant.dtype), kind_of(dtype):
        case "int" | "decimal", "float":
            return Constant(float(value), DOUBLE) if dtype == DOUBLE else None
        case "int", "int":
            return Constant(value, dtype) if _fits(value, dtype) else None
        case "int" | "decimal", "decimal":
            return _as_decimal(Decimal(value), dtype)
        case "float", "float" if dtype == DOUBLE:
            return Constant(value, dtype)
        case "text", "float" | "decimal" | "int":
            return _number(value, dtype)
        case "text", "date":
            return Constant(_date(value), dtype)
        case "text", "time":
            return Constant(_time(value, dtype), dtype)
        case "date", "time" if dtype.tz is None:
            return Constant(datetime.combine(value, datetime.min.time()), dtype)
        case "time", "time" if _fits_unit(constant, dtype):
            return Constant(value, dtype)
    return None


def _fits(value: int, dtype: pa.DataType) -> bool:
    if pa.types.is_signed_integer(dtype):
        return bool(-(1 << dtype.bit_width - 1) <= value < 1 << dtype.bit_width - 1)
    return bool(0 <= value < 1 << dtype.bit_width)


def _fits_unit(constant: Constant, dtype: Any) -> bool:
    """Return whether a constant timestamp can be represented in another unit, too."""
    part = {"s": 1_000_000, "ms": 1_000}.get(dtype.unit, 1)
    return bool(constant.dtype.tz == dtype.tz) and (constant.value is None or constant.value.microsecond % part == 0)


def _as_decimal(value: Decimal, dtype: pa.DataType) -> Constant | None:
    """Return the decimal, None if it has too many digits for its type."""
    if not value.is_finite():
        return None
    with localcontext() as context:
        context.prec = 2 * MAX_DIGITS
        exponent = Decimal(1).scaleb(-dtype.scale)
        try:
            exact = value.quantize(exponent)
        except InvalidOperation:
            return None
        if exact != value or len(exact.as_tuple().digits) > max(dtype.precision, 1):
            return None
    return Constant(exact, dtype)


def _number(text: str, dtype: pa.DataType) -> Constant | None:
    if len(text) > 400 or "_" in text or text != text.strip() or not text.isascii():
        return None
    try:
        if kind_of(dtype) == "float":
            return Constant(float(text), dtype) if dtype == DOUBLE else None
        if kind_of(dtype) == "int":
            number = int(text) if text.lstrip("-").isdigit() else None
            return Constant(number, dtype) if number is not None and _fits(number, dtype) else None
        return _as_decimal(Decimal(text), dtype)
    except (ValueError, InvalidOperation):
        return None


def _date(text: str) -> date:
    try:
        if len(text) != len("2000-01-01"):
            raise ValueError(text)  # noqa: TRY301
        return date.fromisoformat(text)
    except ValueError as error:
        raise InvalidFragment(f"Not a date: {text!r}", hint="Write it as '2024-03-01'.") from error


def _time(text: str, dtype: pa.DataType) -> datetime:
    try:
        if "W" in text.upper() or not text[:4].isdigit():
            raise ValueError(text)  # noqa: TRY301
        time = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise InvalidFragment(f"Not a time: {text!r}", hint="Write it as '2024-03-01 12:00:00'.") from error
    if dtype.tz is None:
        if time.tzinfo is not None:
            raise InvalidFragment(f"A time without a zone is compared with one that has one: {text!r}")
        return time
    return time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time.astimezone(timezone.utc)
