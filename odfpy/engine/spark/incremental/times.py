"""What the watermarks of the sources say about a column: symbolic, and evaluated for each pull.

A watermark T of a column promises that no row with a value at or before T comes later, except through late input.
All times are microseconds since the epoch; None is a watermark that is not known.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from odfpy.engine.spark.catalyst import Catalyst, Node, children, expression_name

MILLISECOND: Final = 1_000
"""The grain of event times, in microseconds."""

_TIMES: Final = ("date", "timestamp", "timestamp_ntz")
NEVER_DECREASING: Final = frozenset(
    """
    Alias AttributeReference KnownNotNull ParseToDate TruncDate TruncTimestamp LastDay AddMonths
    DatetimeSub DateAdd DateSub DateAddInterval DateAddYMInterval TimestampAdd TimestampAddInterval
    TimestampAddYMInterval TimeAdd
    """.split()  # noqa: SIM905
)
"""Expressions that never decrease when the one time that they read grows; casts between times beside them."""

_SHIFTS: Final = frozenset("DatetimeSub TimestampAdd TimestampAddInterval TimeAdd".split())  # noqa: SIM905
_SAMPLES: Final = (0, 951_739_200_000_000, 1_709_164_800_000_000)  # 1970-01-01 and two ends of February


@dataclass(frozen=True, slots=True)
class Clock:
    """The watermarks of the sources at one moment, by number of the source."""

    catalyst: Catalyst
    watermarks: Sequence[int | None]


class Times(Protocol):
    """A watermark that follows from those of the sources."""

    def at(self, clock: Clock) -> int | None:
        """Its value, in microseconds."""
        ...


@dataclass(frozen=True, slots=True)
class Of:
    """The watermark of a source."""

    source: int

    def at(self, clock: Clock) -> int | None:
        """Its value."""
        return clock.watermarks[self.source]


@dataclass(frozen=True, slots=True)
class Least:
    """The least of several; unknown as long as one of them is."""

    parts: tuple[Times, ...]

    def at(self, clock: Clock) -> int | None:
        """Its value."""
        known = [part.at(clock) for part in self.parts]
        return None if not known or None in known else min(value for value in known if value is not None)


@dataclass(frozen=True, slots=True)
class Shifted:
    """A watermark and some microseconds."""

    part: Times
    micros: int

    def at(self, clock: Clock) -> int | None:
        """Its value."""
        value = self.part.at(clock)
        return None if value is None else value + self.micros


@dataclass(frozen=True, slots=True)
class Opened:
    """A function that never decreases, of a watermark: later rows have this value or a greater one.

    Attributes:
        expression: over `reads`.
        reads: the one column that it reads.
        part: the watermark of that column.
    """

    expression: Node
    reads: Node
    part: Times

    def at(self, clock: Clock) -> int | None:
        """Its value."""
        value = complete_before(self.part).at(clock)
        return None if value is None else evaluated(clock.catalyst, self.expression, self.reads, value)


@dataclass(frozen=True, slots=True)
class FirstOpenWindow:
    """The least start of a window that later rows can belong to, or that ends after the watermark.

    Attributes:
        windows: expressions of the windows that a time belongs to, with `start` and `end`.
        reads: the time that they read.
        part: the watermark of that time.
    """

    windows: tuple[Node, ...]
    reads: Node
    part: Times

    def at(self, clock: Clock) -> int | None:
        """Its value."""
        value = self.part.at(clock)
        if value is None:
            return None
        found = []
        for window in self.windows:
            start, end = (
                evaluated(clock.catalyst, clock.catalyst.field_of(window, field), self.reads, value)
                for field in ("start", "end")
            )
            if start is not None and end is not None and start <= value < end:
                found.append(start)
        return min(found, default=value)  # between windows that do not touch each other


def complete_before(watermark: Times) -> Times:
    """The time before which nothing comes later: what comes after "just before X" has X or a later time."""
    match watermark:
        case Least(parts):
            return Least(tuple(complete_before(part) for part in parts))
        case Shifted(part, micros) if micros == -MILLISECOND:
            return part
        case Shifted(part, micros):
            return Shifted(complete_before(part), micros)
    return watermark


# --- Expressions over a time ------------------------------------------------------------------------------------------


def is_time(expression: Node) -> bool:
    """Whether its values are times or dates."""
    return expression.dataType().typeName() in _TIMES


def never_decreases(expression: Node, known: Container[str] = NEVER_DECREASING) -> bool:
    """Whether an expression is a time that never decreases when the one time that it reads grows."""
    name = expression_name(expression)
    if name == "Cast":
        (child,) = children(expression)
        if not is_time(expression) or not is_time(child):
            return False
    elif name not in known:
        return False
    return all(never_decreases(child, known) for child in children(expression) if not child.references().isEmpty())


def shift_of(catalyst: Catalyst, expression: Node, reads: Node) -> int | None:
    """By how many microseconds an expression is later than the time that it reads, or None when that varies."""
    if not _only_shifts(expression):
        return None
    shifts = {(evaluated(catalyst, expression, reads, sample) or 0) - sample for sample in _SAMPLES}
    return shifts.pop() if len(shifts) == 1 else None


def _only_shifts(expression: Node) -> bool:
    name = expression_name(expression)
    if name == "AttributeReference":
        return True
    if name == "Cast":
        (child,) = children(expression)
        if expression.dataType().typeName() != "timestamp" or child.dataType().typeName() != "timestamp":
            return False
    elif name not in _SHIFTS:
        return False
    return all(_only_shifts(child) for child in children(expression) if not child.references().isEmpty())


def evaluated(catalyst: Catalyst, expression: Node, reads: Node, micros: int) -> int | None:
    """The value of a time expression when the column that it reads has a value, both in microseconds, rounded down."""
    given = catalyst.alias(catalyst.time(micros, reads.dataType()), reads.name(), reads.exprId())
    return catalyst.constant_micros(
        catalyst.project([catalyst.alias(expression, "value")], catalyst.project([given], catalyst.one_row()))
    )
