"""Bounds of columns by the watermarks of a single moment: plain numbers, since the batch runs for one moment only.

All times are microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from odfpy.engine.spark.plan.catalyst import Catalyst, Node, expression_name
from odfpy.engine.spark.plan.time_values import open_start

MILLISECOND: Final = 1_000
"""Event times are a whole number of these."""

_MARKS: Final = ("spark.timeWindow", "spark.sessionWindow")


@dataclass(frozen=True, slots=True)
class ColumnTimes:
    """A column that has the event times of rows, or the windows that they fall into.

    Attributes:
        passed: no row with a value at or before it comes later, unless the row is late; None while unknown.
        complete: no row with a value before it comes later.
        windows: for a column of windows, the expressions that compute them.
        reads: the time that these expressions read.
        is_session: whether the windows grow with the rows in them.
    """

    passed: int | None
    complete: int | None
    windows: tuple[Node, ...] = ()
    reads: Node | None = None
    is_session: bool = False

    @classmethod
    def at(cls, watermark: int | None) -> ColumnTimes:
        """Return the bounds of the event time of an input with a given watermark."""
        return cls(watermark, watermark)

    @classmethod
    def since(cls, start: int | None) -> ColumnTimes:
        """Return the bounds of a column whose future rows have this time or a later one."""
        return cls(None if start is None else start - MILLISECOND, start)

    def later(self, micros: int) -> ColumnTimes:
        """Return the bounds of a time that is later by a constant."""
        if micros == -MILLISECOND:
            return ColumnTimes.since(
                self.passed
            )  # of whole milliseconds: none at or before it, so one less, none before it
        passed, complete = (None if bound is None else bound + micros for bound in (self.passed, self.complete))
        return ColumnTimes(passed, complete)


@dataclass(frozen=True, slots=True)
class ValidityColumn:
    """A column that tells from when, or until when, a row of a temporal table is valid."""

    is_end: bool
    known: ColumnTimes


class RowLineage(IntEnum):
    """The relation of rows to rows of the inputs."""

    CONSTANT = 0
    """Rows of constants: they are the same at any moment."""
    ENTRIES = 1
    """Each row comes from one entry of an input's changelog, perhaps joined with constants."""
    ROWS = 2
    """Each row comes from one row of some table, or from constants."""
    TOGETHER = 3
    """Rows come from several rows at once."""

    @property
    def is_row_by_row(self) -> bool:
        """Return whether each row comes from one row of a table."""
        return self in (RowLineage.ENTRIES, RowLineage.ROWS)


def lineage_of(parts: Sequence[RowLineage]) -> RowLineage:
    """Return the lineage of the union of several parts."""
    return max(parts) if len({*parts}) == 1 else max(RowLineage.ROWS, *parts)


def together(parts: Sequence[RowLineage]) -> RowLineage:
    """Return the lineage of rows that combine rows of several parts."""
    return RowLineage.CONSTANT if {*parts} == {RowLineage.CONSTANT} else RowLineage.TOGETHER


@dataclass(frozen=True, slots=True)
class TableTimes:
    """The times of a table as queries see it, by position of the column, and the lineage of its rows.

    Attributes:
        times: the times of columns.
        validity: the columns of a temporal table that tell when rows are valid.
        lineage: where the rows come from.
        hidden: the plan of the rows, where queries are analyzed over an empty table.
    """

    times: Mapping[int, ColumnTimes]
    validity: Mapping[int, ValidityColumn] = field(default_factory=dict)
    lineage: RowLineage = RowLineage.ROWS
    hidden: Node = None


def least(known: Iterable[ColumnTimes]) -> ColumnTimes:
    """Return the bounds of a column that has the values of several columns."""
    times = list(known)
    passed, complete = [time.passed for time in times], [time.complete for time in times]
    return ColumnTimes(_least(passed), _least(complete))


def _least(times: list[int | None]) -> int | None:
    return min((time for time in times if time is not None), default=None) if None not in times else None


# --- Columns ---------------------------------------------------------------------------------------------------------


def is_window(column: Node) -> bool:
    """Return whether a column is a time window, as Spark marks them."""
    return _has_mark(column, *_MARKS)


def _has_mark(column: Node, *marks: str) -> bool:
    named = expression_name(column) in ("Alias", "AttributeReference")
    return named and any(column.metadata().contains(mark) for mark in marks)


# --- Moments ----------------------------------------------------------------------------------------------------------


def first_open(catalyst: Catalyst, known: ColumnTimes) -> int | None:
    """Return the start of the first window that is not over, or the time itself if it lies between two windows."""
    now = known.passed
    if now is None or known.reads is None:
        return None
    return open_start(catalyst, known.windows, known.reads, now)


def has_passed(catalyst: Catalyst, value: Node, limit: int | None) -> Node:
    """Return the condition that a time is at or before a limit; FALSE while the limit is unknown.

    Args:
        catalyst: access to Catalyst.
        value: the expression of a time.
        limit: microseconds since the epoch, None for none.
    """
    if limit is None:
        return catalyst.boolean(False)
    return catalyst.expression("LessThanOrEqual", value, catalyst.time(limit, value))
