"""Computed times: functions that never decrease, windows, sessions, and the bounds of windows.

A window waits for the time that it is computed from, which may be a function of a column: in `window(event_time -
INTERVAL 30 DAYS, ...)`, the window of January 30th is over only once no row of March 1st comes any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from odfpy.engine.spark.batch.time_bounds import ColumnTimes, first_open, is_window
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    column_id,
    columns,
    columns_read,
    expression_name,
    items,
    subtree,
)
from odfpy.engine.spark.plan.monotone import never_decreases, never_exceeds, shift_of
from odfpy.engine.spark.plan.session_windows import is_session
from odfpy.engine.spark.plan.time_values import evaluate

Times = Mapping[int, ColumnTimes]
"""The time bounds of columns, by id."""

_EXTREMES: Final = ("aggregate.Max", "aggregate.Min")


def time_of(catalyst: Catalyst, column: Node, times: Times) -> ColumnTimes | None:
    """Return the time bounds of a selected column, given those of the columns below.

    Args:
        catalyst: access to Catalyst.
        column: the column.
        times: the known times of the columns below.
    """
    if expression_name(column) != "Alias":
        return times.get(column_id(column))
    value = column.child()
    if is_window(column) and expression_name(value) != "AttributeReference":
        return _of_windows(catalyst, (value,), times, is_session=is_session(column))
    below = _only_one(value, times)
    if below is None or expression_name(value) == "AttributeReference":
        return below
    return _edge(catalyst, value, below) if below.windows else function_of_time(catalyst, value, below)


def time_of_group(catalyst: Catalyst, group: Node, times: Times) -> ColumnTimes | None:
    """Return the time bounds of a GROUP BY expression; one that only adds a duration is treated like other functions.

    Args:
        catalyst: access to Catalyst.
        group: the grouping expression.
        times: the known times of the columns below.
    """
    below = _only_one(group, times)
    if below is None or expression_name(group) == "AttributeReference":
        return below
    return None if below.windows else function_of_time(catalyst, group, below, may_shift=False)


def function_of_time(
    catalyst: Catalyst, value: Node, below: ColumnTimes, *, may_shift: bool = True
) -> ColumnTimes | None:
    """Return the time bounds of a function of one time; None where it may decrease.

    Args:
        catalyst: the session.
        value: an expression over one column.
        below: the time bounds of that column.
        may_shift: whether a function that only adds a duration simply shifts the bounds.
    """
    if expression_name(value) == "AttributeReference":
        return below
    if not never_decreases(catalyst, value):
        return None
    (read,) = columns_read(value)
    shift = shift_of(catalyst, value, read) if may_shift else None
    if shift is not None:
        return below.later(shift)
    start = below.complete
    return ColumnTimes.since(None if start is None else evaluate(catalyst, value, read, start))


def sliding_windows(catalyst: Catalyst, plan: Node, times: Times) -> dict[int, ColumnTimes]:
    """Return the columns of an Expand whose copies of a row contain the sliding windows that a time falls into.

    Args:
        catalyst: access to Catalyst.
        plan: the plan.
        times: the known times of the columns below.
    """
    window_times = {}
    copies = [items(copy) for copy in items(plan.projections())]
    for at, column in enumerate(columns(plan)):
        windows = tuple(copy[at] for copy in copies)
        if not is_window(column) or is_session(column) or not all(columns_read(window) for window in windows):
            continue
        if (known := _of_windows(catalyst, windows, times, is_session=False)) is not None:
            window_times[column_id(column)] = known
    return window_times


def extreme_of_group(catalyst: Catalyst, function: Node, group: Node, known: ColumnTimes) -> ColumnTimes | None:
    """Return the time bounds of MIN or MAX of a group, if it is of the time that groups are formed by.

    Args:
        catalyst: the session.
        function: an aggregate function.
        group: the GROUP BY expression whose time is waited for.
        known: the time bounds of that expression.
    """
    if expression_name(function) not in _EXTREMES or expression_name(function.child()) != "AttributeReference":
        return None
    value = column_id(function.child())
    if known.windows:
        is_theirs = known.reads is not None and column_id(known.reads) == value
        return ColumnTimes.since(first_open(catalyst, known)) if is_theirs else None
    (read,) = columns_read(group)
    return known if column_id(read) == value and never_exceeds(group) else None


# --- Windows ----------------------------------------------------------------------------------------------------------


def _of_windows(catalyst: Catalyst, windows: Sequence[Node], times: Times, *, is_session: bool) -> ColumnTimes | None:
    """Return the time bounds of windows, or of a session, over one time."""
    # Spark builds a session from its start and its end; only the end may read more than the time, for the gap.
    time = _time_in(children(windows[0])[1] if is_session else windows[0])
    below = None if time is None else _only_one(time, times)
    if time is None or below is None or below.windows:
        return None
    known = function_of_time(catalyst, time, below)
    if known is None:
        return None
    reads = time
    if expression_name(time) != "AttributeReference":
        reads, build = catalyst.alias(time, "__odf_time").toAttribute(), Builder(catalyst)
        windows = [
            build.substitute(window, lambda part: reads if part.semanticEquals(time) else None) for window in windows
        ]
    passed = known.passed if is_session else known.complete
    return ColumnTimes(passed, known.complete, tuple(windows), reads, is_session=is_session)


def _time_in(window: Node) -> Node | None:
    """Return the time over which a window is computed: what Spark converts to a number, if it reads columns."""
    for name, node in subtree(window):
        if name == "PreciseTimestampConversion" and node.dataType().typeName() == "long":
            (time,) = children(node)
            return time if columns_read(time) else None
    return None


def _edge(catalyst: Catalyst, value: Node, window: ColumnTimes) -> ColumnTimes | None:
    """Return the time bounds of the start or the end of a window."""
    if expression_name(value) != "GetStructField" or children(children(value)[0]):
        return None
    if value.ordinal() == 1:
        return ColumnTimes(window.passed, window.complete)
    return None if window.is_session else ColumnTimes.since(first_open(catalyst, window))


def _only_one(expression: Node, times: Times) -> ColumnTimes | None:
    """Return the time bounds of the only column that an expression reads; None where it reads several."""
    read = columns_read(expression)
    return times.get(column_id(read[0])) if len(read) == 1 else None
