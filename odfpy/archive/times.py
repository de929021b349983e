"""Times of archived files: milliseconds since the epoch in UTC, parsed from user input."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Final, TypeAlias

from odfpy.data.timestamp import Timestamp
from odfpy.errors import InvalidValue

Time: TypeAlias = "int | float | str | datetime"
"""A number (see `parse_time`), a text of nearly any form, or a `datetime`; UTC by default."""

DAY: Final = 24 * 3600 * 1000
"""Milliseconds per day."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_YEAR: Final = re.compile(r"(19|20)[0-9]{2}")
_MAX_SECONDS: Final = 100_000_000_000
"""Larger numbers are milliseconds, others are seconds: the limit is year 5138 as seconds, 1973 as milliseconds."""

FIRST: Final = Timestamp.parse("0001-01-01").millis
LAST: Final = Timestamp.parse("9999-12-31T23:59:59.999Z").millis
"""The first and the last valid millisecond."""


def parse_time(value: Time) -> int:
    """Parse a time; return milliseconds since the epoch.

    Args:
        value: a number of seconds, or of milliseconds if it is above 100 000 000 000, also as text unless it might be a
            year; a date or a time in nearly any form (`2024-03-01`, `2024-03-01T12:00:00.5+02:00`,
            `Fri Mar 1 12:00:00 UTC 2024`); UTC by default. `now` is the current time.

    Raises:
        InvalidValue: the value is not a time.
    """
    if isinstance(value, datetime):
        return _of_datetime(value)
    if isinstance(value, bool):
        raise _no_time(value)
    if isinstance(value, (int, float)):
        return _of_number(value)
    text = value.strip()
    if text == "now":
        return Timestamp.now().millis
    if _YEAR.fullmatch(text):  # as seconds it would be in the first hour of 1970, which would go unnoticed
        raise _no_time(value)
    try:
        return _of_number(float(text))
    except ValueError:
        return _of_text(text)


def iso(millis: int | None) -> str | None:
    """Format a time with milliseconds, such as `2024-03-01T12:00:00.000Z`; None stays None.

    Times outside of the years 1 to 9999 are formatted as numbers.
    """
    if millis is None:
        return None
    if not FIRST <= millis <= LAST:
        return str(millis)
    return (_EPOCH + timedelta(milliseconds=millis)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _of_number(value: float) -> int:
    if not FIRST <= value <= LAST:  # also NaN; larger numbers overflow below
        raise _no_time(value)
    millis = int(value) if value > _MAX_SECONDS else round(value * 1000)
    if not FIRST <= millis <= LAST:
        raise _no_time(value)
    return millis


def _of_text(text: str) -> int:
    try:
        return Timestamp.parse(text).millis
    except InvalidValue:
        from dateutil.parser import ParserError, parse  # most times are read above, and the import takes a moment

        try:
            # Missing parts are taken from the default: if another default gives another time, the text is not a date.
            times = {parse(text, default=default, tzinfos=_zone) for default in _DEFAULTS}
        except (ParserError, OverflowError, ValueError, TypeError):
            raise _no_time(text) from None
    if len(times) > 1:
        raise _no_time(text)
    return _of_datetime(times.pop())


_DEFAULTS: Final = (datetime(1970, 1, 1, tzinfo=timezone.utc), datetime(1971, 2, 2, tzinfo=timezone.utc))


def _zone(name: str | None, offset: int | None) -> timezone:
    """Return the time zone of a text. Reject the machine's own names of zones: elsewhere they mean something else."""
    if offset is None and name is not None and name.upper() not in ("UTC", "GMT", "Z"):
        raise ValueError(name)
    return timezone(timedelta(seconds=offset or 0))


def _of_datetime(value: datetime) -> int:
    aware = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
    return (aware - _EPOCH) // timedelta(milliseconds=1)


def _no_time(value: object) -> InvalidValue:
    return InvalidValue(
        f"Not a time: {str(value)[:80]!r}",
        hint="Write 2024-03-01, 2024-03-01T12:00:00Z, seconds or milliseconds since 1970, or `now`.",
    )
