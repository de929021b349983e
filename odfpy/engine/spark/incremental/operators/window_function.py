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
_PLACES: Final = ("RowNumber", "Rank", "DenseRank")
"""Functions that depend only on the rows before a row, and whose least values belong to the first rows."""

_LIMITS: Final = ("GlobalLimit", "LocalLimit", "Offset")


def window(planner: Planner, plan: Node) -> PlanInfo:
    """Return the properties of a window operator, which is evaluated per partition of its PARTITION BY."""
    made = [item for item in items(plan.windowExpressions()) if expression_name(item) == "Alias"]
    if len(made) < plan.windowExpressions().size():  # Spark repeats columns here when it makes a join of LATERAL
        order = items(plan.orderSpec())
        plan = Builder(planner.catalyst).window(made, items(plan.partitionSpec()), order, plan.child())
    if plan.orderSpec().isEmpty() and _numbers_rows(plan):
        raise unordered_limit(plan, planner.source)
    child = planner.whole(planner.info_of(plan.child()))
    partition = items(plan.partitionSpec())
    if child.stateless_plan is None:
        keys = tuple(key for key in child.keys if any(key.outputs.has(one) for one in partition))
        child = replace(child, keys=keys) if keys else planner.cut(child)
    first = None
    if child.stateless_plan is not None:
        first = _first(planner, plan)
        child = planner.stateful_input(child, partition, top_rows=first)
    by = ", ".join(str(one.sql()) for one in partition) or "nothing: all rows are one partition"
    state = "the rows of all partitions" if first is None else "the first rows of all partitions"
    requirement = StateRequirement(RUNNING, f"window functions over PARTITION BY {by}", state)
    return replace(
        child,
        columns=tuple(columns(plan)),
        build=lambda inputs_at: _ordered(planner, plan, child.built(inputs_at)),
        times=_final_times(plan, child),
        unique=_numbered(planner, plan, partition) or child.unique,
        requirements=(*child.requirements, requirement),
    )


def _numbers_rows(plan: Node) -> bool:
    """Return whether ROW_NUMBER is among the functions.

    Spark adds it without an order for a LIMIT in LATERAL; that is refused.
    """
    return any(
        expression_name(item.child().windowFunction()) == "RowNumber" for item in items(plan.windowExpressions())
    )


def _first(planner: Planner, plan: Node) -> TopRows | None:
    """Return a filter for the first rows of each partition, if the query only asks for rows by their rank."""
    made = items(plan.windowExpressions())
    if any(expression_name(one.child().windowFunction()) not in _PLACES for one in made):
        return None
    limits = [(one, planner.used.limits[column_id(one)]) for one in made if column_id(one) in planner.used.limits]
    if not limits:
        return None
    catalyst, (place, limit) = planner.catalyst, limits[0]
    is_first = catalyst.expression("LessThanOrEqual", place.toAttribute(), catalyst.integer(limit))

    def first(rows: Node, _: Clock) -> Node:
        return catalyst.filter(is_first, _ordered(planner, plan, rows))

    return first


def _ordered(planner: Planner, plan: Node, rows: Node) -> Node:
    with _placed(planner, plan):
        return ordered_window(planner.catalyst, plan.withNewChildren(planner.catalyst.seq([rows])))


@contextmanager
def _placed(planner: Planner, plan: Node) -> Iterator[None]:
    """Add the place in the query text to the error for rows that cannot be sorted deterministically."""
    try:
        yield
    except UnsupportedQuery as error:
        raise UnsupportedQuery(f"{error.message}{place(plan, planner.source)}", hint=error.hint) from error


def _final_times(plan: Node, child: PlanInfo) -> dict[int, TimeColumn]:
    """Return the ordering time if no later row changes the value of an earlier one.

    Any other function retracts rows with old times, so that no watermark holds for its result.
    """
    order = items(plan.orderSpec())
    if not order or "DESC" in order[0].direction().sql() or expression_name(order[0].child()) != "AttributeReference":
        return {}
    first = column_id(order[0].child())
    time = child.times.get(first)
    if time is None or not all(_looks_back(made.child()) for made in items(plan.windowExpressions())):
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


def _numbered(planner: Planner, plan: Node, partition: list[Node]) -> frozenset[int] | None:
    """Return the columns that identify a row: those of PARTITION BY and the row number within the partition."""
    numbers = [
        column_id(made)
        for made in items(plan.windowExpressions())
        if expression_name(made) == "Alias" and expression_name(made.child().children().apply(0)) == "RowNumber"
    ]
    planner.row_numbers.update(numbers)
    if not numbers or any(expression_name(one) != "AttributeReference" for one in partition):
        return None
    return frozenset([numbers[0], *(column_id(one) for one in partition)])


def limit(planner: Planner, plan: Node) -> PlanInfo:
    """Return the properties of ORDER BY with LIMIT or OFFSET: the first rows of all."""
    below, operators = plan, []
    while operator_name(below) != "Sort":
        if operator_name(below) in (*_LIMITS, "Project"):
            operators.append(below)  # a projection only removes columns that are used for sorting
        below = below.child()  # the other operators only rename columns
    planner.refuse_subqueries(below)
    limits = [operator for operator in operators if operator_name(operator) in _LIMITS]
    is_top = not any(operator_name(operator) == "Offset" for operator in limits)
    seq = planner.catalyst.seq

    def first(rows: Node, over: Sequence[Node]) -> Node:
        node = below.withNewChildren(seq([rows]))
        for operator in reversed(over):
            node = operator.withNewChildren(seq([node]))
        with _placed(planner, plan):
            return ordered_limit(planner.catalyst, node)

    top_rows = (lambda rows, _: first(rows, limits)) if is_top else None
    child = planner.stateful_input(planner.cut(planner.info_of(below.child())), (), top_rows=top_rows)
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
