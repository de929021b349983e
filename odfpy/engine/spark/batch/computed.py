"""Times that a query computes of others: functions that never decrease, windows, sessions, their edges.

A window waits for the time that it is made of, which may be a function of a column: `window(event_time - INTERVAL 30
DAYS, ...)` of the first of March is over in January, but only when no such time comes any more.
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
"""Columns with times, by id."""

_EXTREMES: Final = ("aggregate.Max", "aggregate.Min")


def time_of(catalyst: Catalyst, column: Node, times: Times) -> ColumnTimes | None:
    """Tell what is known of a selected column, given what is known of those below.

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
    """Tell what is known of an expression of GROUP BY; one that only adds a duration waits like other functions.

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
    """Tell what is known of a function of one time; None where it may decrease.

    Args:
        catalyst: the session.
        value: an expression over one column.
        below: what is known of that column.
        may_shift: whether a function that only adds a duration is taken for the same times, later.
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
    """Find the columns of an Expand that have one of the windows that a time falls into, in each copy of a row.

    Args:
        catalyst: access to Catalyst.
        plan: the plan.
        times: the known times of the columns below.
    """
    found = {}
    copies = [items(copy) for copy in items(plan.projections())]
    for at, column in enumerate(columns(plan)):
        windows = tuple(copy[at] for copy in copies)
        if not is_window(column) or is_session(column) or not all(columns_read(window) for window in windows):
            continue
        if (known := _of_windows(catalyst, windows, times, is_session=False)) is not None:
            found[column_id(column)] = known
    return found


def extreme_of_group(catalyst: Catalyst, function: Node, group: Node, known: ColumnTimes) -> ColumnTimes | None:
    """Tell what is known of the greatest or least time of a group: of the one that groups are made of, and no other.

    Args:
        catalyst: the session.
        function: an aggregate function.
        group: the expression of GROUP BY whose time is waited for.
        known: what is known of that.
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
    """Return the properties of windows, or of a session, of one time."""
    # Spark makes a session of its start and its end; only the end may read more than the time, for the gap.
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
        windows = [build.substitute(one, lambda part: reads if part.semanticEquals(time) else None) for one in windows]
    passed = known.passed if is_session else known.complete
    return ColumnTimes(passed, known.complete, tuple(windows), reads, is_session=is_session)


def _time_in(window: Node) -> Node | None:
    """The time of which a window is computed: that which Spark turns into a number, if it reads columns."""
    for name, node in subtree(window):
        if name == "PreciseTimestampConversion" and node.dataType().typeName() == "long":
            (time,) = children(node)
            return time if columns_read(time) else None
    return None


def _edge(catalyst: Catalyst, value: Node, window: ColumnTimes) -> ColumnTimes | None:
    """Start or end of a window."""
    if expression_name(value) != "GetStructField" or children(children(value)[0]):
        return None
    if value.ordinal() == 1:
        return ColumnTimes(window.passed, window.complete)
    return None if window.is_session else ColumnTimes.since(first_open(catalyst, window))


def _only_one(expression: Node, times: Times) -> ColumnTimes | None:
    """Return the properties of the one column that an expression reads; None where it reads others."""
    read = columns_read(expression)
    return times.get(column_id(read[0])) if len(read) == 1 else None
