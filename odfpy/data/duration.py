"""Durations in the notation of settings: `90s`, `30m`, `12h`, `1d12h`, `2w`, or ISO 8601's `PT30M`, `P1DT12H`.

Years and months are not supported, since they have no fixed length.
"""

from __future__ import annotations

import re
from typing import Final

from odfpy.data.timestamp import NANOS_PER_SECOND, Timestamp
from odfpy.errors import InvalidValue
from odfpy.values import dataclass

_UNITS: Final = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_NUMBER: Final = "([0-9]{1,6})"
_SHORT: Final = "(?=.)" + "".join(f"(?:{_NUMBER}{unit})?" for unit in _UNITS)
_ISO_DAYS, _ISO_TIMES = ("".join(f"(?:{_NUMBER}{unit})?" for unit in units) for units in ("WD", "HMS"))
_ISO: Final = f"P(?=.){_ISO_DAYS}(?:T(?=.){_ISO_TIMES})?"

DURATION_FORM: Final = (f"{_SHORT}|{_ISO}", "a duration such as 30m, 12h, 1d or PT1H")
"""Accepted texts: a regular expression, and a description in words."""


@dataclass(frozen=True, order=True, slots=True)
class Duration:
    """A duration.

    Attributes:
        seconds: number of seconds, not negative.
    """

    seconds: int = 0

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Parse `1d12h` or `P1DT12H`.

        Raises:
            InvalidValue: the text is not a duration.
        """
        match = re.fullmatch(DURATION_FORM[0], text)
        if match is None:
            raise InvalidValue(f"Not a duration: {text!r}", hint=f"Write {DURATION_FORM[1]}.")
        counts = match.groups()
        sizes = _UNITS.values()
        halves = (counts[: len(sizes)], counts[len(sizes) :])  # of the short form and of ISO's, one of them empty
        return cls(sum(int(n or 0) * size for half in halves for n, size in zip(half, sizes, strict=True)))

    def before(self, time: Timestamp) -> Timestamp | None:
        """Return the time that is earlier by this duration, None if that is before the year 1."""
        try:
            return Timestamp(time.nanos - self.seconds * NANOS_PER_SECOND)
        except InvalidValue:
            return None

    def has_passed(self, since: Timestamp, now: Timestamp) -> bool:
        """Return whether at least this duration lies between `since` and `now`."""
        return now.nanos - since.nanos >= self.seconds * NANOS_PER_SECOND

    @property
    def in_words(self) -> str:
        """The approximate duration for users: `41 days`, `3 hours`, `10 minutes`."""
        for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
            if self.seconds >= 2 * size or (unit == "minute" and self.seconds >= size):
                count = self.seconds // size
                return f"{count} {unit}{'' if count == 1 else 's'}"
        return f"{self.seconds} second{'' if self.seconds == 1 else 's'}"

    @classmethod
    def between(cls, earlier: Timestamp, later: Timestamp) -> Duration:
        """Return the duration between two times in whole seconds; zero if `later` is not later."""
        return cls(max(0, (later.nanos - earlier.nanos) // NANOS_PER_SECOND))

    def __str__(self) -> str:
        rest, parts = self.seconds, []
        for unit, size in _UNITS.items():
            count, rest = divmod(rest, size)
            parts.append(f"{count}{unit}" if count else "")
        return "".join(parts) or "0s"


ZERO: Final = Duration()
