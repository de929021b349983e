"""Monotone functions of a time: a watermark passes through functions that never decrease, and through no others.

If a function decreases somewhere, rows come behind the watermark that it gave. Adding months does: a month after
January 30th 13:30 and a month after January 31st 12:20 are both on February 29th, the later time first. Dates, and
times that are all at midnight, keep their order when months are added to them.

Each listed function has a generator in a test, which searches for a counterexample. Both the incremental engine and the
batch that verifies it use this module (ADR 0027).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from typing import Final

from odfpy.engine.spark.plan.catalyst import Catalyst, Node, children, columns_read, expression_name
from odfpy.engine.spark.plan.time_values import evaluated_at, is_time

_Look = Callable[[Catalyst, Node], bool]

_IN_MONTHS: Final = ("MONTH", "QUARTER", "YEAR")
"""Units of `timestampadd` without a fixed length; all others have one, since times are in UTC."""

_DAY: Final = 86_400_000_000
_DAYS: Final = ("DAY", "DAYOFYEAR", "WEEK", *_IN_MONTHS)
_WHOLE_DAYS: Final = ("DAY", "DD", "WEEK", "MON", "MONTH", "MM", "QUARTER", "YEAR", "YYYY", "YY")
"""Units of `date_trunc` whose results are at midnight."""

_SAMPLES: Final = (-62_135_596_800_000_000, 0, 253_402_300_799_999_000)
"""The first and the last possible time of a dataset, in the years 1 and 9999, and one in between."""


def never_decreases(catalyst: Catalyst, expression: Node, known: Container[str] | None = None) -> bool:
    """Return whether an expression is a time that never decreases when the only time that it reads grows.

    Args:
        catalyst: the session.
        expression: an expression over one column; with other expressions, the result is False.
        known: names of the expressions that it may consist of; `NEVER_DECREASING` if not given.
    """
    read = columns_read(expression)
    if len(read) != 1 or not _keeps_order(catalyst, expression, NEVER_DECREASING if known is None else known):
        return False
    if expression_name(expression) == "AttributeReference":
        return True
    # An amount that is NULL, a unit that does not exist, a sum that overflows: nothing is known about such times.
    results = evaluated_at(catalyst, expression, read[0], _SAMPLES)
    values = [value for value in results or () if value is not None]
    return len(values) == len(_SAMPLES) and values == sorted(values)


def never_exceeds(expression: Node) -> bool:
    """Return whether a never decreasing expression is at most the time that it reads: the time itself, or truncated."""
    name = expression_name(expression)
    if name == "AttributeReference":
        return True
    return name in _CUT_OFF and all(never_exceeds(child) for child in _reading(expression))


def shift_of(catalyst: Catalyst, expression: Node, reads: Node) -> int | None:
    """Return by how many microseconds an expression is later than the time that it reads, or None when that varies.

    Args:
        catalyst: access to Catalyst.
        expression: the expression.
        reads: the column of the time that the expression reads.
    """
    if not _shifts(catalyst, expression):
        return None
    results = evaluated_at(catalyst, expression, reads, _SAMPLES)
    shifts = {
        None if value is None else value - sample for value, sample in zip(results or (None,), _SAMPLES, strict=False)
    }
    return shifts.pop() if len(shifts) == 1 else None


# --- Forms ------------------------------------------------------------------------------------------------------------


def _reading(expression: Node) -> list[Node]:
    """Return the arguments of an expression that read columns."""
    return [child for child in children(expression) if not child.references().isEmpty()]


def _keeps_order(catalyst: Catalyst, expression: Node, known: Container[str]) -> bool:
    """Return whether an expression, with every part of it that reads the time, has an order-preserving form."""
    name = expression_name(expression)
    if name not in known or not is_time(expression) or not NEVER_DECREASING[name](catalyst, expression):
        return False
    reading = _reading(expression)
    constant = (child for child in children(expression) if child.references().isEmpty())
    return all(child.foldable() for child in constant) and all(
        _keeps_order(catalyst, child, known) for child in reading
    )


def _always(_: Catalyst, __: Node) -> bool:
    return True


def _by_unit(catalyst: Catalyst, added: Node) -> bool:
    _, time = children(added)
    return added.unit().upper() not in _IN_MONTHS or _at_midnight(catalyst, time)


def _by_interval(catalyst: Catalyst, added: Node) -> bool:
    time, interval = children(added)
    return not _has_months(catalyst, interval) or _at_midnight(catalyst, time)


def _by_months(catalyst: Catalyst, added: Node) -> bool:
    return _at_midnight(catalyst, children(added)[0])


NEVER_DECREASING: Final[Mapping[str, _Look]] = {
    **dict.fromkeys(("AttributeReference", "Cast", "DatetimeSub", "LastDay", "ParseToDate"), _always),
    **dict.fromkeys(("TruncDate", "TruncTimestamp"), _always),
    **dict.fromkeys(("AddMonths", "DateAdd", "DateAddInterval", "DateAddYMInterval", "DateSub"), _always),
    "TimestampAdd": _by_unit,
    "TimestampAddInterval": _by_interval,
    "TimestampAddYMInterval": _by_months,
}
"""Expressions that never decrease when the one time that they read grows, and in which of their forms: `DateAdd` and
the like have a DATE and give one, `DatetimeSub` consists of what stands for it, `Cast` is one between times."""

_CUT_OFF: Final = frozenset(("Cast", "ParseToDate", "TruncDate", "TruncTimestamp"))


def _shifts(catalyst: Catalyst, expression: Node) -> bool:
    """Return whether an expression shifts all times by the same duration; False for dates."""
    name, time = expression_name(expression), expression.dataType().typeName()
    match name:
        case "AttributeReference":
            return bool(time in ("timestamp", "timestamp_ntz"))
        case "Cast":
            same = time == "timestamp" and children(expression)[0].dataType().typeName() == time
        case "TimestampAdd":
            same = expression.unit().upper() not in _IN_MONTHS
        case "TimestampAddInterval":
            same = not _has_months(catalyst, children(expression)[1])
        case _:
            same = name == "DatetimeSub"
    constant = (child for child in children(expression) if child.references().isEmpty())
    return (
        same
        and all(child.foldable() for child in constant)
        and all(_shifts(catalyst, child) for child in _reading(expression))
    )


# --- Midnight ---------------------------------------------------------------------------------------------------------


def _at_midnight(catalyst: Catalyst, time: Node) -> bool:
    """Return whether all values of a time are dates, or at midnight."""
    if time.dataType().typeName() == "date":
        return True
    below = children(time)
    match expression_name(time):
        case "Cast" | "DatetimeSub" | "TimestampAddYMInterval":
            return _at_midnight(catalyst, below[0])
        case "TimestampAdd":
            return time.unit().upper() in _DAYS and _at_midnight(catalyst, below[1])
        case "TimestampAddInterval":
            return _is_of_days(catalyst, below[1]) and _at_midnight(catalyst, below[0])
        case "TruncTimestamp":
            unit = catalyst.constant(below[0]) if below[0].foldable() else None
            return unit is not None and str(unit).upper() in _WHOLE_DAYS
    return False


def _is_of_days(catalyst: Catalyst, interval: Node) -> bool:
    """Return whether an interval is a constant of months and whole days."""
    if interval.dataType().typeName() == "interval":
        constant = _constant_interval(catalyst, interval)
        return constant is not None and bool(constant.extractAsDuration().isZero())
    micros = catalyst.constant(interval) if interval.foldable() else None
    return micros is not None and micros % _DAY == 0


def _has_months(catalyst: Catalyst, interval: Node) -> bool:
    """Return whether an interval has months, or may have some."""
    if interval.dataType().typeName() != "interval":
        return False  # an interval of days and time
    constant = _constant_interval(catalyst, interval)
    return constant is None or constant.extractAsPeriod().toTotalMonths() != 0


def _constant_interval(catalyst: Catalyst, interval: Node) -> Node | None:
    """Return a constant of months, days and microseconds, None for anything else."""
    is_known = interval.dataType().typeName() == "interval" and interval.foldable()
    return catalyst.constant(interval) if is_known else None
