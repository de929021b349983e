"""Positions of axis labels: round numbers, and moments at which a day, month or year begins in UTC.

A label is the exact value of its position. So positions are chosen first, and formatted afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta, timezone
from math import ceil, floor, inf, log10
from typing import Final, TypeAlias

Ticks: TypeAlias = Sequence[tuple[float, str]]
"""Positions in ascending order, with their labels."""

_MAX_COUNT: Final = 8
_BETWEEN: Final = 2
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_SECOND: Final = 1_000_000
_DAY: Final = 86_400 * _SECOND
_MONDAY: Final = 4 * _DAY
"""The first Monday after 1970-01-01."""

_CLOCK: Final = tuple(
    _SECOND * count
    for unit, counts in ((1, (1, 2, 5, 10, 15, 30)), (60, (1, 2, 5, 10, 15, 30)), (3600, (1, 2, 3, 6, 12)))
    for count in (unit * number for number in counts)
)
_DAYS: Final = (1, 2, 7, 14)
_MIN_SPAN: Final = 1e-300
"""Minimum span with ticks; the steps of smaller spans could not be represented as floats."""
_MONTHS: Final = (1, 2, 3, 6, *(12 * years * ten for ten in (1, 10, 100, 1000) for years in (1, 2, 5)))


def number_ticks(first: float, last: float, room: int, *, whole: bool = False) -> Ticks:
    """Return round numbers between two bounds, both inclusive.

    Args:
        first: the lower bound.
        last: the upper bound; if both are equal, it is the only tick.
        room: number of characters available.
        whole: whether ticks must be integers.
    """
    first, last = float(first), float(last)
    span = last - first
    if span <= 0 or span / max(abs(first), abs(last)) < 1e-9:  # there are no round floats so close to each other
        return [(first, number_text(first))]
    ends = [(first, number_text(first)), (last, number_text(last))]
    if not _MIN_SPAN < span < inf:
        return ends
    power = floor(log10(span / _MAX_COUNT))
    for exponent in range(power, power + 3):
        for factor in (1, 2, 5):
            step = factor * 10.0**exponent
            low, high = ceil(first / step - 1e-9), floor(last / step + 1e-9)
            if high - low >= _MAX_COUNT or (whole and step < 1):
                continue
            places = [number * step for number in range(low, high + 1)]
            found = [(place, number_text(round(place, max(0, 1 - exponent)))) for place in places]
            if _fits(found, room) and len(found) > 1:
                return found
    return ends


def _fits(ticks: Ticks, room: int) -> bool:
    return len(ticks) <= _MAX_COUNT and sum(len(label) + _BETWEEN for _, label in ticks) <= room + _BETWEEN


def number_text(number: float) -> str:
    """Format a number for people: integers with all digits, others rounded."""
    number = float(number) or 0.0  # also replaces -0.0
    return f"{number:.0f}" if number.is_integer() and abs(number) < 1e15 else f"{number:.10g}"


def time_ticks(first: float, last: float, room: int, *, whole: bool = False) -> Ticks:
    """Return moments between two bounds, both inclusive, at which a calendar unit begins.

    Args:
        first: seconds since 1970.
        last: seconds since 1970; if both are equal, it is the only tick.
        room: number of characters available.
        whole: whether ticks must be whole days.
    """
    low, high = round(first * _SECOND), round(last * _SECOND)
    try:
        begin, end = _moment(low), _moment(high)
    except OverflowError:  # outside of the years of the calendar
        return number_ticks(first, last, room)
    if low == high:
        return [(first, _in_full(begin))]
    for places, form in _candidates(low, high, whole=whole):
        found = [(place / _SECOND, _moment(place).strftime(form)) for place in places]
        if _fits(found, room) and len(found) > 1:
            return found
    return [(first, _in_full(begin)), (last, _in_full(end))]


def one_day(first: float, last: float) -> str | None:
    """Return the common day of all moments, which labels omit; None if there are several days."""
    try:
        begin, end = (_moment(round(at * _SECOND)).date() for at in (first, last))
    except OverflowError:
        return None
    return str(begin) if begin == end and first != last else None


def _candidates(low: int, high: int, *, whole: bool) -> Iterator[tuple[Sequence[int], str]]:
    """Yield positions in microseconds and their format, the densest first, up to the maximum number shown."""
    begin, end = _moment(low), _moment(high)
    date = "" if begin.date() == end.date() else "%Y-%m-%d "
    for step in () if whole else _CLOCK:
        if (high - low) // step <= _MAX_COUNT:
            form = "%H:%M" if step % (60 * _SECOND) == 0 else "%H:%M:%S"
            yield range(-(-low // step) * step, high + 1, step), date + form
    for days in _DAYS:
        step, first = days * _DAY, _MONDAY if days % 7 == 0 else -(-low // _DAY) * _DAY
        if (high - low) // step <= _MAX_COUNT:
            yield range(low + (first - low) % step, high + 1, step), "%Y-%m-%d"
    for months in _MONTHS:
        if ((end.year - begin.year) * 12 + end.month - begin.month) // months <= _MAX_COUNT:
            yield list(_month_starts(begin, end, months)), "%Y" if months % 12 == 0 else "%Y-%m"


def _month_starts(begin: datetime, end: datetime, months: int) -> Iterator[int]:
    """Yield the first days of months, every `months` months since the beginning of the calendar, in microseconds."""
    number = -(-(begin.year * 12 + begin.month - 1) // months) * months
    while (year := number // 12) <= end.year:
        start = datetime(max(year, 1), number % 12 + 1, 1, tzinfo=timezone.utc)
        if begin <= start <= end:
            yield (start - _EPOCH) // timedelta(microseconds=1)
        number += months


def _moment(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _in_full(moment: datetime) -> str:
    """Format a moment, with its time of day only as far as needed."""
    if moment.hour == moment.minute == moment.second == moment.microsecond == 0:
        return f"{moment:%Y-%m-%d}"
    text = moment.isoformat(sep=" ", timespec="seconds" if not moment.microsecond else "microseconds")
    return text.removesuffix("+00:00")
