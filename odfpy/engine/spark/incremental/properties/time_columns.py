"""Columns whose event times a watermark bounds: passed on, computed, or windows over such times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odfpy.engine.spark.incremental.properties.keys import WINDOW_MARK, is_window
from odfpy.engine.spark.incremental.properties.plan_info import PlanInfo, TimeColumn
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
from odfpy.engine.spark.plan.monotone import never_decreases, shift_of
from odfpy.engine.spark.plan.session_windows import is_session
from odfpy.engine.spark.plan.time_values import is_time
from odfpy.engine.spark.plan.times import (
    MILLISECOND,
    FirstOpenWindow,
    FunctionOf,
    ShiftedBy,
    complete_before,
)

_CONVERSION: Final = "PreciseTimestampConversion"
"""The expression in which Spark converts a time to microseconds, in order to find its window."""


def time_of(catalyst: Catalyst, column: Node, child: PlanInfo) -> TimeColumn | None:
    """Return the time properties of a selected column, given those of the columns below; None if it has none.

    Args:
        catalyst: access to Catalyst.
        column: the column.
        child: the properties of the plan below.
    """
    if expression_name(column) != "Alias":
        return child.times.get(column_id(column))
    expression = column.child()
    if is_window(column) and expression_name(expression) != "AttributeReference":
        return _windows(catalyst, [expression], child, in_session=is_session(column))
    read = columns_read(expression)
    if len(read) != 1 or column_id(read[0]) not in child.times:
        return None
    below = child.times[column_id(read[0])]
    if below.windows and expression_name(expression) != "AttributeReference":
        return _window_field(expression, below)
    return function_of_time(catalyst, expression, below)


def function_of_time(catalyst: Catalyst, expression: Node, below: TimeColumn) -> TimeColumn | None:
    """Return the time properties of an expression over one time column; None where the expression may decrease.

    Args:
        catalyst: access to Catalyst.
        expression: the expression.
        below: the properties of the column that it reads.
    """
    if expression_name(expression) == "AttributeReference":
        return below
    if not never_decreases(catalyst, expression):
        return None
    (read,) = columns_read(expression)
    shift = shift_of(catalyst, expression, read)
    if shift is None:
        return TimeColumn(ShiftedBy(FunctionOf(expression, read, below.watermark), -MILLISECOND))
    return TimeColumn(ShiftedBy(below.watermark, shift))


def expanded_windows(catalyst: Catalyst, plan: Node, child: PlanInfo) -> dict[int, TimeColumn]:
    """Return the columns of sliding windows: Spark makes one copy of a row for each window that the row falls into.

    Grouping sets make copies as well; a column that some of them leave out is not a time.

    Args:
        catalyst: access to Catalyst.
        plan: the plan.
        child: the properties of the plan below.
    """
    times = {}
    copies = [items(copy) for copy in items(plan.projections())]
    for at, column in enumerate(columns(plan)):
        windows = [copy[at] for copy in copies]
        if not column.metadata().contains(WINDOW_MARK) or not all(columns_read(window) for window in windows):
            continue
        time = _windows(catalyst, windows, child, in_session=False)
        if time is not None:
            times[column_id(column)] = time
    return times


def _windows(catalyst: Catalyst, windows: Sequence[Node], child: PlanInfo, *, in_session: bool) -> TimeColumn | None:
    """Return the properties of windows over one time, which is a column or computed from one."""
    first = windows[0]  # all windows are over the same time
    # The gap of a session may read other columns; its start does not.
    time = _counted(children(first)[1] if in_session else first)
    read = [] if time is None else columns_read(time)
    if time is None or len(read) != 1 or column_id(read[0]) not in child.times:
        return None
    below = child.times[column_id(read[0])]
    time_column = None if below.windows else function_of_time(catalyst, time, below)
    if time_column is None:
        return None
    reads = read[0]
    if expression_name(time) != "AttributeReference":
        reads, build = catalyst.alias(time, "time").toAttribute(), Builder(catalyst)
        windows = [
            build.substitute(window, lambda info: reads if info.semanticEquals(time) else None) for window in windows
        ]
    # The effect of a late row on sessions begins at its own time, so their watermark is not moved to a window boundary.
    watermark = time_column.watermark if in_session else complete_before(time_column.watermark)
    return TimeColumn(watermark, tuple(windows), reads, in_session)


def _counted(window: Node) -> Node | None:
    """Return the time expression over which a window is computed."""
    counted = (children(node)[0] for name, node in subtree(window) if name == _CONVERSION)
    return next((time for time in counted if is_time(time) and not time.references().isEmpty()), None)


def _window_field(expression: Node, window: TimeColumn) -> TimeColumn | None:
    """Return the time properties of the start or the end of a window."""
    if expression_name(expression) != "GetStructField" or len(children(children(expression)[0])) > 0:
        return None
    if expression.ordinal() == 1:
        return TimeColumn(window.watermark)
    if window.is_session:
        return None
    return TimeColumn(ShiftedBy(FirstOpenWindow(window.windows, window.reads, window.watermark), -MILLISECOND))
