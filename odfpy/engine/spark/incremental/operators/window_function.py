"""Window functions: ranking, lag and lead, running sums, and top-N by a filter on a rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from odfpy.engine.spark.analysis.canonical import ordered_limit, ordered_window
from odfpy.engine.spark.analysis.determinism import place
from odfpy.engine.spark.incremental.operators.planner import Planner
from odfpy.engine.spark.incremental.properties.plan_info import PlanInfo, StateRequirement, TimeColumn, TopRows
from odfpy.engine.spark.incremental.properties.refusals import unordered_limit
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Node, column_id, columns, expression_name, items, operator_name
from odfpy.engine.spark.plan.times import Clock
from odfpy.errors import UnsupportedQuery

RUNNING: Final = "window function"
_RANKS: Final = ("RowNumber", "Rank", "DenseRank")
"""Ranking functions: they depend only on preceding rows, and the first rows of a partition have the least values."""

_LIMITS: Final = ("GlobalLimit", "LocalLimit", "Offset")


def window(planner: Planner, plan: Node) -> PlanInfo:
    """Return the properties of a window operator, which is evaluated per partition of its PARTITION BY."""
    functions = [item for item in items(plan.windowExpressions()) if expression_name(item) == "Alias"]
    if len(functions) < plan.windowExpressions().size():  # Spark repeats columns here when it makes a join of LATERAL
        order = items(plan.orderSpec())
        plan = Builder(planner.catalyst).window(functions, items(plan.partitionSpec()), order, plan.child())
    if plan.orderSpec().isEmpty() and _numbers_rows(plan):
        raise unordered_limit(plan, planner.source)
    child = planner.recomputable(planner.info_of(plan.child()))
    partition = items(plan.partitionSpec())
    if child.stateless_plan is None:
        keys = tuple(key for key in child.keys if any(key.outputs.has(column) for column in partition))
        child = replace(child, keys=keys) if keys else planner.as_fragment(child)
    first = None
    if child.stateless_plan is not None:
        first = _top_rows(planner, plan)
        child = planner.stateful_input(child, partition, top_rows=first)
    by = ", ".join(str(column.sql()) for column in partition) or "nothing: all rows are one partition"
    state = "the rows of all partitions" if first is None else "the first rows of all partitions"
    requirement = StateRequirement(RUNNING, f"window functions over PARTITION BY {by}", state)
    return replace(
        child,
        columns=tuple(columns(plan)),
        build=lambda inputs_at: _ordered(planner, plan, child.built(inputs_at)),
        times=_final_times(plan, child),
        unique=_numbered_key(planner, plan, partition) or child.unique,
        requirements=(*child.requirements, requirement),
    )


def _numbers_rows(plan: Node) -> bool:
    """Return whether ROW_NUMBER is among the functions; without an order, Spark adds it for a LIMIT in LATERAL."""
    return any(
        expression_name(item.child().windowFunction()) == "RowNumber" for item in items(plan.windowExpressions())
    )


def _top_rows(planner: Planner, plan: Node) -> TopRows | None:
    """Return a filter for the first rows of each partition, if the query only asks for rows by their rank."""
    functions = items(plan.windowExpressions())
    if any(expression_name(function.child().windowFunction()) not in _RANKS for function in functions):
        return None
    limits = [
        (function, planner.used.limits[column_id(function)])
        for function in functions
        if column_id(function) in planner.used.limits
    ]
    if not limits:
        return None
    catalyst, (place, limit) = planner.catalyst, limits[0]
    is_first = catalyst.expression("LessThanOrEqual", place.toAttribute(), catalyst.integer(limit))

    def first(rows: Node, _: Clock) -> Node:
        return catalyst.filter(is_first, _ordered(planner, plan, rows))

    return first


def _ordered(planner: Planner, plan: Node, rows: Node) -> Node:
    """Return the window operator over some rows, with a total order of the rows."""
    with _query_position(planner, plan):
        return ordered_window(planner.catalyst, plan.withNewChildren(planner.catalyst.seq([rows])))


@contextmanager
def _query_position(planner: Planner, plan: Node) -> Iterator[None]:
    """Add the place in the query text to the error for rows that cannot be sorted deterministically."""
    try:
        yield
    except UnsupportedQuery as error:
        raise UnsupportedQuery(f"{error.message}{place(plan, planner.source)}", hint=error.hint) from error


def _final_times(plan: Node, child: PlanInfo) -> dict[int, TimeColumn]:
    """Return the times of the result: the ordering time, if no later row changes the value of an earlier one.

    Other functions retract rows with old times, so that no watermark holds for their results.
    """
    order = items(plan.orderSpec())
    if not order or "DESC" in order[0].direction().sql() or expression_name(order[0].child()) != "AttributeReference":
        return {}
    first = column_id(order[0].child())
    time = child.times.get(first)
    if time is None or not all(_looks_back(function.child()) for function in items(plan.windowExpressions())):
        return {}
    return {first: time}


def _looks_back(window: Node) -> bool:
    """Return whether a function depends only on rows up to the current one and its peers (rows equal in order)."""
    function = window.windowFunction()
    match expression_name(function):
        case "RowNumber" | "Rank" | "DenseRank":
            return True
        case "Lag":
            return bool(function.inputOffset().foldable() and function.inputOffset().eval(None) > 0)
        case "aggregate.AggregateExpression" | "NthValue":
            upper = window.windowSpec().frameSpecification().upper()
            return expression_name(upper) in ("CurrentRow", "UnboundedPreceding")
    return False


def _numbered_key(planner: Planner, plan: Node, partition: list[Node]) -> frozenset[int] | None:
    """Return the columns that identify a row: those of PARTITION BY and the row number within the partition."""
    numbers = [
        column_id(function)
        for function in items(plan.windowExpressions())
        if expression_name(function) == "Alias" and expression_name(function.child().children().apply(0)) == "RowNumber"
    ]
    planner.row_numbers.update(numbers)
    if not numbers or any(expression_name(column) != "AttributeReference" for column in partition):
        return None
    return frozenset([numbers[0], *(column_id(column) for column in partition)])


def limit(planner: Planner, plan: Node) -> PlanInfo:
    """Return the properties of ORDER BY with LIMIT or OFFSET: the first rows of all."""
    below, operators = plan, []
    while operator_name(below) != "Sort":
        if operator_name(below) in (*_LIMITS, "Project"):
            operators.append(below)  # a projection here only removes columns that rows are sorted by
        below = below.child()  # other operators only rename columns
    planner.refuse_subqueries(below)
    limits = [operator for operator in operators if operator_name(operator) in _LIMITS]
    is_top = not any(operator_name(operator) == "Offset" for operator in limits)
    seq = planner.catalyst.seq

    def first(rows: Node, over: Sequence[Node]) -> Node:
        node = below.withNewChildren(seq([rows]))
        for operator in reversed(over):
            node = operator.withNewChildren(seq([node]))
        with _query_position(planner, plan):
            return ordered_limit(planner.catalyst, node)

    top_rows = (lambda rows, _: first(rows, limits)) if is_top else None
    child = planner.stateful_input(planner.as_fragment(planner.info_of(below.child())), (), top_rows=top_rows)
    state = "the first rows" if is_top else "all rows"
    requirement = StateRequirement("top-N", "ORDER BY with LIMIT looks at all rows", state)
    outputs = tuple(columns(plan))
    return replace(
        child,
        columns=outputs,
        build=lambda inputs_at: first(child.built(inputs_at), operators),
        times={},
        unique=child.unique if child.unique is not None and child.unique <= {*map(column_id, outputs)} else None,
        requirements=(*child.requirements, requirement),
    )
