"""Canonical plans: the same rows, to the bit, in whatever order and partitions the input comes.

Three kinds of operators depend on the order of rows: window functions, LIMIT, and aggregates that add up floating point
numbers. Each is rewritten so that a total order decides; only identical rows are then equal.
"""

from __future__ import annotations

from odfpy.engine.spark.analysis.exact_sums import can_be_exact, is_sum_of_long, wide_sum
from odfpy.engine.spark.analysis.order import (
    PEERS,
    adds_up,
    depends_on_order,
    is_percentile,
    may_hide,
    takes_values,
    total_order,
)
from odfpy.engine.spark.analysis.partial_aggregate import PartialAggregate
from odfpy.engine.spark.plan.aggregate_calls import call_id, columns_with, different_calls, is_call
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    columns,
    expression_name,
    items,
    operator_name,
)
from odfpy.engine.spark.plan.session_windows import makes_sessions, needs_whole_sessions, whole_sessions

# --- Window functions -------------------------------------------------------------------------------------------------


def ordered_window(catalyst: Catalyst, node: Node) -> Node:
    """Return a `Window` whose result does not depend on the order of rows that are equal in its ORDER BY.

    Functions that count rows (row_number, lag, ROWS frames) get all columns as further sort keys. Functions of peers
    (rank, RANGE frames) keep their keys. If such a function depends on the order within its frame, as sums of DOUBLE
    do, it runs over rows that are already in the total order: a `Window` keeps the order of its input, and its own
    sort, by fewer keys, is then not needed.

    Raises:
        UnsupportedQuery: a column that would have to decide the order cannot be sorted.
    """
    build = Builder(catalyst)
    partition, order = items(node.partitionSpec()), items(node.orderSpec())
    counting: list[Node] = []
    peers: list[Node] = []
    needs_order = False
    given = items(node.windowExpressions())
    functions = [_without_order(build, function) for function in given]
    if any(new is not old for new, old in zip(functions, given, strict=True)):
        node = build.window(functions, items(node.partitionSpec()), items(node.orderSpec()), node.child())
    for function in functions:
        by_rows, ordered = _order_of(build, function.child())
        (counting if by_rows else peers).append(function)
        needs_order |= ordered and not by_rows
    if not counting and not needs_order:
        return node
    child = node.child()
    keys = total_order(build, child, order, partition)
    number = build.row_number(partition, keys, "__odf_row")
    renewed = [_with_order(build, function, keys) for function in counting]
    below = build.window([*renewed, *([number] if needs_order else ())], partition, keys, child)
    if peers:
        below = build.window(peers, partition, order, below)
    if needs_order:  # the number must be used, or the optimizer drops it together with the sort
        below = catalyst.filter(build.expression("GreaterThan", number.toAttribute(), catalyst.integer(0)), below)
    return catalyst.project(columns(node), below)


def _without_order(build: Builder, function: Node) -> Node:
    """Return the column of a median or percentile over normalized values: Spark does not let others sort its rows."""
    window = function.child()
    call = window.windowFunction()
    if not is_call(call) or not is_percentile(call.aggregateFunction()):
        return function
    changed = _in_one_form(build, call)
    if changed is None:
        return function
    renewed = window.withNewChildren(build.catalyst.seq([changed, *children(window)[1:]]))
    return function.withNewChildren(build.catalyst.seq([renewed]))


def _order_of(build: Builder, window: Node) -> tuple[bool, bool]:
    """Return whether a function counts rows, and whether it depends on the order of the rows in its frame."""
    function, frame = window.windowFunction(), window.windowSpec().frameSpecification()
    name = expression_name(function)
    if name in PEERS:
        return False, False
    if name not in {"aggregate.AggregateExpression", "NthValue"}:
        return True, True
    ordered = name == "NthValue" or (
        not is_percentile(function.aggregateFunction())
        and depends_on_order(build.replacement(function.aggregateFunction()))
    )
    bounds = [expression_name(bound) for bound in (frame.lower(), frame.upper())]
    if bounds == ["UnboundedPreceding", "UnboundedFollowing"]:
        return ordered, ordered
    return frame.frameType().toString() == "RowFrame", ordered


def _with_order(build: Builder, function: Node, keys: list[Node]) -> Node:
    window = function.child()
    spec = window.windowSpec()
    renewed = build.over(window.windowFunction(), items(spec.partitionSpec()), keys, spec.frameSpecification())
    return function.withNewChildren(build.catalyst.seq([renewed]))


# --- LIMIT ------------------------------------------------------------------------------------------------------------


def ordered_limit(catalyst: Catalyst, node: Node) -> Node:
    """Return a LIMIT or OFFSET over a `Sort` that has all other columns as further keys.

    Args:
        catalyst: the session.
        node: `GlobalLimit`, `LocalLimit` or `Offset`, of which `sort_below` is not None.

    Raises:
        UnsupportedQuery: a column that would have to decide the order cannot be sorted.
    """
    build = Builder(catalyst)
    if operator_name(node) == "Sort":
        return build.sort(total_order(build, node.child(), items(node.order())), node.child())
    (child,) = children(node)
    return node.withNewChildren(catalyst.seq([ordered_limit(catalyst, child)]))


# --- Aggregates -------------------------------------------------------------------------------------------------------


def ordered_aggregate(catalyst: Catalyst, node: Node) -> Node:
    """Return an `Aggregate` whose result depends neither on the order of its rows nor on how they are partitioned.

    Sums and means become exact (see `exact_sums`). Other functions that accumulate (see `adds_up`), and sums of DOUBLE
    next to functions that cannot be computed in parts, run in a `Window` over the group, in the order of their
    arguments, one row after the other; the `Aggregate` then takes the value that all rows of the group share. Functions
    that return one of their values (min, percentile) get normalized floating point numbers.
    """
    build = Builder(catalyst)
    if needs_whole_sessions(node):
        node = whole_sessions(build, node)
    calls = different_calls(node)
    renewed = {call_id(call): changed for call in calls if (changed := _in_one_form(build, call)) is not None}
    adding = [call for call in calls if adds_up(build.replacement(call.aggregateFunction()))]
    if not renewed and not adding:
        return node
    groupings = groups = items(node.groupingExpressions())
    if adding and all(can_be_exact(build, call) for call in adding):
        phases = canonical_partial_aggregate(build, node)
        if phases.can_be_merged:
            return phases.results(phases.of_rows(node.child()))
    integer_sums = [call for call in adding if is_sum_of_long(build, call)]
    renewed |= {call_id(call): wide_sum(build, call) for call in integer_sums}
    adding = [call for call in adding if call_id(call) not in renewed]
    if adding and makes_sessions(node):  # a window sees rows before they become sessions
        node = whole_sessions(build, node)
    below = node.child()
    if adding:
        below, groups, ordered_values = _in_order(build, node, adding)
        for call, result in zip(adding, ordered_values, strict=True):
            renewed[call_id(call)] = build.aggregate(build.expression("aggregate.First", result.toAttribute(), False))
    return catalyst.aggregate(groups, columns_with(build, node, renewed, groupings, groups), below)


def canonical_partial_aggregate(build: Builder, node: Node) -> PartialAggregate:
    """Return an `Aggregate` in two phases, over normalized values."""
    return PartialAggregate(build, node, [_in_one_form(build, call) or call for call in different_calls(node)])


def _in_one_form(build: Builder, call: Node) -> Node | None:
    """Return the call with normalized arguments, or None where that makes no difference."""
    function = build.replacement(call.aggregateFunction())
    if not takes_values(function):
        return None
    values = children(function)
    changed = [
        build.one_form(value) if may_hide(value.dataType()) and not value.foldable() else value for value in values
    ]
    if all(new is old for new, old in zip(changed, values, strict=True)):
        return None
    renewed = [function.withNewChildren(build.catalyst.seq(changed)), *children(call)[1:]]
    return call.withNewChildren(build.catalyst.seq(renewed))


def _in_order(build: Builder, node: Node, calls: list[Node]) -> tuple[Node, list[Node], list[Node]]:
    """Return the input of an `Aggregate` with results of calls added to each row, its groupings, and these columns."""
    catalyst = build.catalyst
    aliases: list[Node] = []

    def column_of(value: Node, name: str) -> Node:
        if expression_name(value) == "AttributeReference":
            return value
        same = next((column for column in aliases if column.child().semanticEquals(value)), None)
        if same is None:
            same = catalyst.alias(value, name)
            aliases.append(same)
        return same.toAttribute()

    groups = [column_of(grouping, "__odf_group") for grouping in items(node.groupingExpressions())]
    functions = [build.replacement(call.aggregateFunction()) for call in calls]
    arguments = [
        [column_of(_filtered(build, call, value), "__odf_argument") for value in children(function)]
        for call, function in zip(calls, functions, strict=True)
    ]
    below = catalyst.project([*columns(node.child()), *aliases], node.child())
    for at, call in enumerate(calls):
        if call.isDistinct():
            below, arguments[at] = _once_each(build, below, groups, arguments[at])
    keys = _different([build.ascending(value) for values in arguments for value in values])
    results = []
    for function, values in zip(functions, arguments, strict=True):
        call = build.aggregate(function.withNewChildren(catalyst.seq(values)))
        over = build.over(call, groups, keys, build.rows_until("UnboundedFollowing"))
        results.append(catalyst.alias(over, "__odf_result"))
    return build.window(results, groups, keys, below), groups, results


def _different(expressions: list[Node]) -> list[Node]:
    """Return the distinct expressions."""
    distinct: list[Node] = []
    for expression in expressions:
        if not any(expression.semanticEquals(other) for other in distinct):
            distinct.append(expression)
    return distinct


def _filtered(build: Builder, call: Node, value: Node) -> Node:
    """Return a normalized argument where the call's FILTER is true, else NULL."""
    condition = call.filter()
    if may_hide(value.dataType()):
        value = build.one_form(value)
    return build.only_if(condition.get(), value) if condition.isDefined() else value


def _once_each(build: Builder, child: Node, groups: list[Node], values: list[Node]) -> tuple[Node, list[Node]]:
    """Return a plan with columns that are NULL where the value occurred before in its group, for DISTINCT."""
    catalyst = build.catalyst
    partition, order = [*groups, *values], [build.ascending(value) for value in values]
    number = build.row_number(partition, order, "__odf_copy")
    first = build.expression("EqualTo", number.toAttribute(), catalyst.integer(1))
    once = [catalyst.alias(build.only_if(first, value), "__odf_once") for value in values]
    below = build.window([number], partition, order, child)
    return catalyst.project([*columns(below), *once], below), [value.toAttribute() for value in once]
