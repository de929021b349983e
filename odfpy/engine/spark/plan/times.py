"""Derived watermarks: those of columns, derived from those of the sources; symbolic, and evaluated at each pull.

A watermark T of a column promises that no row with a value at or before T comes later, except through late input. All
times are microseconds since the epoch; None is an unknown watermark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from odfpy.data.lru_cache import LruCache
from odfpy.engine.spark.plan.catalyst import Catalyst, Node
from odfpy.engine.spark.plan.time_values import evaluate, open_start
from odfpy.engine.watermark import watermark_at
from odfpy.errors import InternalError

MILLISECOND: Final = 1_000
"""The resolution of event times, in microseconds."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The watermarks of the sources at one moment, by number of the source."""

    catalyst: Catalyst
    watermarks: Sequence[int | None]


def _values() -> LruCache[int, int | None]:
    """Return a cache of the latest values of a function of times, which Spark computes.

    They are requested repeatedly during a pull, and the values at its end are those at the beginning of the next one.
    """
    return LruCache(8)


class DerivedWatermark(Protocol):
    """A watermark that follows from those of the sources."""

    def at(self, clock: Clock) -> int | None:
        """Return its value, in microseconds."""
        ...


@dataclass(frozen=True, slots=True)
class SourceWatermark:
    """The watermark of a source."""

    source: int

    def at(self, clock: Clock) -> int | None:
        """Return its value."""
        return clock.watermarks[self.source]


@dataclass(frozen=True, slots=True)
class LeastOf:
    """The least of several watermarks; unknown as long as one of them is."""

    parts: tuple[DerivedWatermark, ...]

    def at(self, clock: Clock) -> int | None:
        """Return its value."""
        known = [part.at(clock) for part in self.parts]
        return None if not known or None in known else min(value for value in known if value is not None)


@dataclass(frozen=True, slots=True)
class ShiftedBy:
    """A watermark shifted by some microseconds."""

    part: DerivedWatermark
    micros: int

    def at(self, clock: Clock) -> int | None:
        """Return its value."""
        value = self.part.at(clock)
        return None if value is None else value + self.micros


@dataclass(frozen=True, slots=True)
class FunctionOf:
    """A never decreasing function of a watermark: later rows have this value or a greater one.

    Attributes:
        expression: an expression over `reads`.
        reads: the one column that it reads.
        part: the watermark of that column.
    """

    expression: Node
    reads: Node
    part: DerivedWatermark
    _known: LruCache[int, int | None] = field(default_factory=_values, init=False, repr=False, compare=False)

    def at(self, clock: Clock) -> int | None:
        """Return its value."""
        value = complete_before(self.part).at(clock)
        if value is None:
            return None
        return self._known.get(value, lambda: evaluate(clock.catalyst, self.expression, self.reads, value))


@dataclass(frozen=True, slots=True)
class FirstOpenWindow:
    """The least start of a window to which later rows can belong, or which ends after the watermark.

    Attributes:
        windows: expressions of the windows that a time belongs to, with `start` and `end`.
        reads: the time that they read.
        part: the watermark of that time.
    """

    windows: tuple[Node, ...]
    reads: Node
    part: DerivedWatermark
    _known: LruCache[int, int | None] = field(default_factory=_values, init=False, repr=False, compare=False)

    def at(self, clock: Clock) -> int | None:
        """Return its value."""
        value = self.part.at(clock)
        if value is None:
            return None
        return self._known.get(value, lambda: open_start(clock.catalyst, self.windows, self.reads, value))


def complete_before(watermark: DerivedWatermark) -> DerivedWatermark:
    """Return the time before which no row comes later: after "just before X", rows have the time X or a later one."""
    match watermark:
        case LeastOf(parts):
            return LeastOf(tuple(complete_before(part) for part in parts))
        case ShiftedBy(part, micros) if micros == -MILLISECOND:
            return part
        case ShiftedBy(part, micros):
            return ShiftedBy(complete_before(part), micros)
    return watermark


def check_advance(watermarks: Iterable[DerivedWatermark], was: Clock, now: Clock) -> None:
    """Check that watermarks do not go back as long as those of the sources do not.

    Args:
        watermarks: the watermarks of columns.
        was: the watermarks before the pull.
        now: the watermarks after the pull.

    Raises:
        InternalError: a watermark goes back.
    """
    if not any(_moves_back(*pair) for pair in zip(was.watermarks, now.watermarks, strict=True)):
        for watermark in watermarks:
            see_advance(watermark.at(was), watermark.at(now))


def see_advance(was: int | None, now: int | None) -> None:
    """Check that a derived watermark, in microseconds, does not go back.

    It would reopen what has been closed, and let rows come behind it that are not late: no result is better than a
    wrong one.

    Raises:
        InternalError: it goes back, since a function of times decreases that is listed as one that never does.
    """
    if _moves_back(was, now):
        before, after = (watermark_at((micros or 0) // MILLISECOND) or "before the year 1" for micros in (was, now))
        raise InternalError(f"The watermark of the output would move back, from {before} to {after}")


def _moves_back(was: int | None, now: int | None) -> bool:
    return was is not None and now is not None and now < was
