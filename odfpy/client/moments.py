"""Times and blocks as Python has them, written into queries."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, TypeAlias

from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.errors import InvalidValue
from odfpy.query.dialects import Dialect

Instant: TypeAlias = str | date | datetime | Timestamp
"""A time; one without a zone is in UTC, a day is its beginning."""

PointInTime: TypeAlias = Instant | Multihash | int
"""A system time, a block (its hash, a tag, a branch), or an offset."""


def instant_text(time: Instant) -> str:
    """A time as queries have it, RFC 3339.

    Raises:
        InvalidValue: it is none.
    """
    return str(_timestamp(time))


def moment_text(moment: PointInTime, dialect: Dialect) -> str:
    """A moment as the argument of `odf_as_at`.

    Raises:
        InvalidValue: it is none.
    """
    if isinstance(moment, int) and not isinstance(moment, bool):
        if moment < 0:
            raise InvalidValue(f"An offset of {moment} makes no sense", hint="Offsets begin with 0.")
        return str(moment)
    return dialect.literal(moment_word(moment))


def moment_word(moment: PointInTime) -> str:
    """A time, block, tag or offset as one writes it on the command line.

    Raises:
        InvalidValue: it is none.
    """
    if isinstance(moment, str):
        return moment
    if isinstance(moment, Multihash) or (isinstance(moment, int) and not isinstance(moment, bool)):
        return str(moment)
    return str(_timestamp(moment))


def _timestamp(time: Any) -> Timestamp:
    match time:
        case Timestamp():
            return time
        case str():
            return Timestamp.parse(time)
        case datetime():  # pandas has nanoseconds in it, and says so in `isoformat` alone
            return Timestamp.parse(time.isoformat())
        case date():
            return Timestamp.parse(time.isoformat())
    raise InvalidValue(
        f"Not a time: a value of type {type(time).__name__}",
        hint="Times are texts such as '2024-03-01T12:00:00Z', or of the types datetime and date.",
    )
