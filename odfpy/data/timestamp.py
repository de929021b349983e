"""Timestamps with nanosecond resolution.

Blocks contain nanoseconds, which `datetime` would silently drop, and so change the block's hash
(ODF specification, "MetadataBlock"). A `Timestamp` is a number of nanoseconds since 1970-01-01T00:00:00Z.
"""

from __future__ import annotations

import re
import time
from calendar import isleap
from datetime import date, datetime, timedelta, timezone
from typing import TypeAlias

from odfpy.errors import InvalidValue
from odfpy.values import dataclass

NANOS_PER_SECOND = 1_000_000_000
NANOS_PER_MILLI = 1_000_000
SECONDS_PER_DAY = 86_400
NANOS_PER_UNIT = {"s": NANOS_PER_SECOND, "ms": NANOS_PER_MILLI, "us": 1_000, "ns": 1}
"""Nanoseconds by unit of Arrow's timestamps."""
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()

_RFC3339 = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[Tt ](\d\d):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?\s*([Zz]|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?",
    re.ASCII,
)


@dataclass(frozen=True, order=True, slots=True)
class Timestamp:
    """An instant in UTC between the years 1 and 9999.

    Attributes:
        nanos: nanoseconds since the Unix epoch; negative before it.
    """

    nanos: int

    def __post_init__(self) -> None:
        if not _MIN_NANOS <= self.nanos <= _MAX_NANOS:
            raise InvalidValue(f"Time out of range: {self.nanos} ns since 1970 is not between the years 1 and 9999")

    @classmethod
    def now(cls) -> Timestamp:
        """Return the current time of the system clock; only the coordinator calls it, once per commit."""
        return cls(time.time_ns())

    @classmethod
    def of(cls, time: Instant) -> Timestamp:
        """Return a `Timestamp` for a time of any accepted type.

        Raises:
            InvalidValue: the time is invalid.
        """
        match time:
            case Timestamp():
                return time
            case str():
                return cls.parse(time)
            case date():  # pandas' timestamps have nanoseconds, which only `isoformat` includes
                return cls.parse(time.isoformat())
        raise InvalidValue(
            f"Not a time: a value of type {type(time).__name__}",
            hint="Times are strings such as '2024-03-01T12:00:00Z', or of the types datetime and date.",
        )

    @classmethod
    def parse(cls, text: str) -> Timestamp:
        """Parse RFC 3339 (`2024-03-01T12:00:00.123456789Z`) or a date; a time without a zone is in UTC.

        Raises:
            InvalidValue: the text is not such a time.
        """
        match = _RFC3339.fullmatch(text.strip())
        if match is None:
            raise InvalidValue(
                f"Not a time: {text!r}", hint="Write times as 2024-03-01T12:00:00Z or dates as 2024-03-01."
            )
        year, month, day, hour, minute, second, fraction, zone = match.groups()
        try:
            days = date(int(year), int(month), int(day)).toordinal() - _EPOCH_ORDINAL
        except ValueError as error:
            raise InvalidValue(f"Not a time: {text!r} ({error})") from error
        if int(hour or 0) > 23:
            raise InvalidValue(f"Not a time: {text!r} (hour must be in 0..23)")
        seconds = days * SECONDS_PER_DAY + int(hour or 0) * 3600 + int(minute or 0) * 60 + int(second or 0)
        nanos = int((fraction or "").ljust(9, "0"))
        return cls((seconds - _zone_seconds(zone)) * NANOS_PER_SECOND + nanos)

    @classmethod
    def from_millis(cls, millis: int) -> Timestamp:
        """Return the timestamp of milliseconds since 1970, the unit of every timestamp column in a slice."""
        return cls(millis * NANOS_PER_MILLI)

    @classmethod
    def nearest(cls, nanos: int) -> Timestamp:
        """Return the timestamp nearest to nanoseconds since 1970, clamped to the range of years."""
        return cls(min(max(nanos, _MIN_NANOS), _MAX_NANOS))

    @classmethod
    def from_datetime(cls, value: datetime) -> Timestamp:
        """Return the timestamp of a `datetime`; without a time zone it is in UTC."""
        aware = value if value.tzinfo else value.replace(tzinfo=timezone.utc)
        delta = aware - datetime(1970, 1, 1, tzinfo=timezone.utc)
        return cls((delta // timedelta(microseconds=1)) * 1000)

    @classmethod
    def from_ordinal(cls, year: int, day_of_year: int, seconds: int, nanos: int) -> Timestamp:
        """Return the timestamp of its wire form: year, day of the year (1 to 366), seconds since midnight, nanoseconds.

        Args:
            year: the year.
            day_of_year: 1 to 366.
            seconds: seconds since midnight, UTC.
            nanos: nanoseconds of the second.
        """
        if not date.min.year <= year <= date.max.year:
            raise InvalidValue(f"Time out of range: year {year}")
        in_year = 366 if isleap(year) else 365
        valid = 1 <= day_of_year <= in_year and 0 <= seconds < SECONDS_PER_DAY and 0 <= nanos < NANOS_PER_SECOND
        if not valid:
            raise InvalidValue(f"Not a time: day {day_of_year} of {year}, second {seconds}, nanosecond {nanos}")
        days = date(year, 1, 1).toordinal() - _EPOCH_ORDINAL + day_of_year - 1
        return cls((days * SECONDS_PER_DAY + seconds) * NANOS_PER_SECOND + nanos)

    def to_ordinal(self) -> tuple[int, int, int, int]:
        """Return the parts of the wire form; the inverse of `from_ordinal`."""
        seconds, nanos = divmod(self.nanos, NANOS_PER_SECOND)
        days, second_of_day = divmod(seconds, SECONDS_PER_DAY)
        day = date.fromordinal(days + _EPOCH_ORDINAL)
        return day.year, day.timetuple().tm_yday, second_of_day, nanos

    @property
    def millis(self) -> int:
        """The milliseconds since the epoch, rounded down."""
        return self.nanos // NANOS_PER_MILLI

    def floor_millis(self) -> Timestamp:
        """Return the timestamp truncated to milliseconds, as in slices."""
        return Timestamp.from_millis(self.millis)

    def to_datetime(self) -> datetime:
        """Return an aware `datetime`, truncated to microseconds."""
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=self.nanos // 1000)

    def __str__(self) -> str:
        seconds, nanos = divmod(self.nanos, NANOS_PER_SECOND)
        days, second_of_day = divmod(seconds, SECONDS_PER_DAY)
        day = date.fromordinal(days + _EPOCH_ORDINAL)
        hours, rest = divmod(second_of_day, 3600)
        fraction = f".{nanos:09d}" if nanos else ""
        while fraction.endswith("000"):
            fraction = fraction[:-3]
        return f"{day.isoformat()}T{hours:02d}:{rest // 60:02d}:{rest % 60:02d}{fraction}Z"


def _zone_seconds(zone: str | None) -> int:
    if zone is None or zone in "Zz":
        return 0
    digits = zone[1:].replace(":", "")
    seconds = int(digits[:2]) * 3600 + int(digits[2:]) * 60
    return -seconds if zone[0] == "-" else seconds


_MIN_NANOS = (date.min.toordinal() - _EPOCH_ORDINAL) * SECONDS_PER_DAY * NANOS_PER_SECOND
_MAX_NANOS = (date.max.toordinal() - _EPOCH_ORDINAL + 1) * SECONDS_PER_DAY * NANOS_PER_SECOND - 1


Instant: TypeAlias = str | date | datetime | Timestamp
"""A time in any accepted type. Without a zone it is in UTC; a date is the beginning of the day."""
