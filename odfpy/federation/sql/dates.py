"""Dates computed from constants in a query, so that every source compares with the same day."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, datetime, timedelta
from typing import Any, Final

_INTERVAL: Final = re.compile(r"([+-]?\d{1,6})(?:\s+(\w+))?", re.ASCII)
_MONTHS: Final = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAYS: Final = {"DAY": 1, "WEEK": 7}


def moved_date(start: Any, interval: Any, sign: int) -> date | datetime | None:
    """Return a constant date or time plus an interval of whole days or months; None for anything else.

    Args:
        start: the date or time.
        interval: a sqlglot tree.
        sign: 1 to add, -1 to subtract.
    """
    if not isinstance(start, date) or interval.this is None:
        return None
    match = _INTERVAL.fullmatch(str(interval.this.name).strip())
    if match is None:
        return None
    unit = interval.args.get("unit")
    if (match[2] is None) == (unit is None):
        return None
    name = (match[2] or unit.name).upper().rstrip("S")
    number = sign * int(match[1])
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
