"""Dates that a query calculates from constants, so that every source compares with the same day."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, datetime, timedelta
from typing import Any, Final

_INTERVAL: Final = re.compile(r"([+-]?\d{1,6})(?:\s+(\w+))?", re.ASCII)
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAYS: Final = {"DAY": 1, "WEEK": 7}


def moved_date(start: Any, interval: Any, sign: int) -> date | datetime | None:
    """A constant date or time, and an interval of whole days or months later; None where that is something else.

    Args:
        start: the date or time.
        interval: a tree of sqlglot.
        sign: 1 for later, -1 for earlier.
    """
    if not isinstance(start, date) or interval.this is None:
        return None
    found = _INTERVAL.fullmatch(str(interval.this.name).strip())
    if found is None:
        return None
    unit = interval.args.get("unit")
    if (found[2] is None) == (unit is None):
        return None
    name = (found[2] or unit.name).upper().rstrip("S")
    number = sign * int(found[1])
    try:
        if name in _DAYS:
            return start + timedelta(days=number * _DAYS[name])
        if name in _MONTHS:
            years, month = divmod(start.month - 1 + number * _MONTHS[name], 12)
            year = start.year + years
            return start.replace(year=year, month=month + 1, day=min(start.day, monthrange(year, month + 1)[1]))
    except (ValueError, OverflowError):
        return None
    return None
