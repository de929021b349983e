"""File statistics stored in a table's metadata, and bounds in the protocol's form ("Per-file Statistics")."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final

_MAX_LENGTH: Final = 256  # characters of a bound; writers may truncate longer ones
_MILLISECOND: Final = dt.timedelta(milliseconds=1)


def table_statistics(
    rows: int | None,
    nulls: Mapping[str, Any] | None,
    least: Mapping[str, Any] | None,
    greatest: Mapping[str, Any] | None,
) -> dict[str, Any] | None:
    """Return the statistics of a file from a table's metadata; None if these are insufficient.

    Args:
        rows: number of rows in the file.
        nulls: number of nulls by column.
        least: lower bound by column.
        greatest: upper bound by column; those of timestamps are truncated to milliseconds.
    """
    if rows is None:
        return None
    found: dict[str, Any] = {"numRecords": rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    found["nullCount"] = {name: count for name, count in (nulls or {}).items() if isinstance(count, int)}
    for name, low in (least or {}).items():
        high = (greatest or {}).get(name)
        if low is None or high is None:
            continue
        try:
            least_text, greatest_text = bounds(low, high + _MILLISECOND if isinstance(high, dt.datetime) else high)
        except OverflowError:  # beyond the year 9999
            continue
        if least_text is not None:
            found["minValues"][name], found["maxValues"][name] = least_text, greatest_text
    return found


def bounds(low: Any, high: Any) -> tuple[Any, Any]:
    """Return both bounds in the protocol's form, None if they are unknown.

    Raises:
        OverflowError: the upper bound, rounded up to milliseconds, is beyond the year 9999.
    """
    if isinstance(low, (bool, float)):
        return None, None
    if isinstance(low, int):
        return low, high
    if isinstance(low, str):
        return (low, high) if max(len(low), len(high)) <= _MAX_LENGTH else (None, None)
    if isinstance(low, dt.datetime):
        return _instant(low), _instant(high + (_MILLISECOND if high.microsecond % 1000 else dt.timedelta()))
    if isinstance(low, dt.date):
        return low.isoformat(), high.isoformat()
    return None, None


def _instant(time: dt.datetime) -> str:
    text = time.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text}Z" if time.tzinfo is not None else text
