"""Normal form of values: stateful queries normalize all values that they compute, so that equal ones are identical.

Between pulls, equal rows are merged into one with a count, and Spark gives that row 0.0 for -0.0, and maps sorted by
key. A query could detect whether its rows had been merged, since `to_json` and CAST make different texts of equal
values. So whatever a stateful query computes is normalized from the start, and so are its inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odfpy.engine.spark.plan.aggregate_calls import is_call
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    cached_node_property,
    children,
    expression_name,
    items,
    operator_name,
    selected,
)
from odfpy.engine.spark.plan.operators import INPUT

_SEVERAL_FORMS: Final = ("DOUBLE", "FLOAT", "MAP<")


def has_forms(value: Node) -> bool:
    """Return whether equal values of a column or expression may differ in their bits.

    Collated texts are not normalized, see `same_bytes`.
    """
    return cached_node_property(
        value, "forms", lambda: any(word in str(value.dataType().sql()) for word in _SEVERAL_FORMS)
    )


def in_normal_form(catalyst: Catalyst, plan: Node) -> Node:
    """Return the same query with all values that it computes normalized.

    Args:
        catalyst: the session.
        plan: an analyzed plan without subqueries in expressions; the plans of inputs and earlier steps are not entered.
    """
    name = operator_name(plan)
    if name == INPUT:
        return plan
    below = children(plan)
    normalized = [in_normal_form(catalyst, child) for child in below]
    if _differ(normalized, below):
        plan = plan.withNewChildren(catalyst.seq(normalized))
    build = Builder(catalyst)
    match name:
        case "Project":
            computed = [_column(build, column) for column in selected(plan)]
            return catalyst.project(computed, plan.child()) if _differ(computed, selected(plan)) else plan
        case "Aggregate":
            groupings, given = items(plan.groupingExpressions()), items(plan.aggregateExpressions())
            computed = [_column(build, column, groupings) for column in given]
            return catalyst.aggregate(groupings, computed, plan.child()) if _differ(computed, given) else plan
        case "Generate":
            generator = plan.generator()
            taken = _with_arguments(build, generator)
            computed, outer = items(plan.generatorOutput()), bool(plan.outer())
            return plan if taken is generator else build.generate(taken, computed, plan.child(), outer=outer)
        case "Window":
            given = items(plan.windowExpressions())
            computed = [_window_function(build, function) for function in given]
            partition, order = items(plan.partitionSpec()), items(plan.orderSpec())
            return build.window(computed, partition, order, plan.child()) if _differ(computed, given) else plan
    return plan


def _column(build: Builder, column: Node, groupings: Sequence[Node] = ()) -> Node:
    """Normalize a column of a result; the values of grouping expressions are normalized already."""
    if expression_name(column) != "Alias" or not has_forms(column):
        return column
    value = column.child()
    if expression_name(value) == "AttributeReference" or any(value.semanticEquals(grouping) for grouping in groupings):
        return column
    return _with_parts(build, column, [build.one_form(value)])


def _window_function(build: Builder, column: Node) -> Node:
    """Normalize the arguments of the window function of a column."""
    if expression_name(column) != "Alias":  # Spark repeats columns here when it makes a join of LATERAL
        return column
    window = column.child()
    function = window.windowFunction()
    if is_call(function):
        call, *rest = children(function)
        normalized = _with_parts(build, function, [_with_arguments(build, call), *rest])
    else:
        normalized = _with_arguments(build, function)
    return _with_parts(build, column, [_with_parts(build, window, [normalized, *children(window)[1:]])])


def _with_arguments(build: Builder, function: Node) -> Node:
    """Normalize the arguments of a function; constants stay, since some have to be literals."""

    def taken(argument: Node) -> Node:
        is_plain = expression_name(argument) == "AttributeReference" or argument.foldable()
        return argument if is_plain or not has_forms(argument) else build.one_form(argument)

    return _with_parts(build, function, [taken(argument) for argument in children(function)])


def _with_parts(build: Builder, expression: Node, parts: Sequence[Node]) -> Node:
    return expression.withNewChildren(build.catalyst.seq(parts)) if _differ(parts, children(expression)) else expression


def _differ(new: Sequence[Node], old: Sequence[Node]) -> bool:
    return any(new_node is not old_node for new_node, old_node in zip(new, old, strict=True))
