"""Subqueries in expressions (IN, EXISTS, scalar subqueries), and how to change them in place."""

from __future__ import annotations

from collections.abc import Callable

from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, children, expression_name, items, operator_name, selected
from odfpy.engine.spark.plan.operators import is_query

Change = Callable[[Node], Node]


def with_inner_queries(catalyst: Catalyst, plan: Node, change: Change) -> Node:
    """Return an operator whose subqueries have been changed.

    Args:
        catalyst: the session.
        plan: the operator; the plans below it are not changed.
        change: returns another plan for that of a subquery.

    Returns:
        The operator itself if its expressions have no place for other ones: they have in SELECT, WHERE and HAVING.
    """

    def changed(expression: Node) -> Node:
        if is_query(expression_name(expression)):
            expression = expression.withNewPlan(change(expression.plan()))
        below = [changed(child) for child in children(expression)]
        return expression.withNewChildren(catalyst.seq(below)) if below else expression

    return _with_expressions(catalyst, plan, changed)


def _with_expressions(catalyst: Catalyst, plan: Node, changed: Change) -> Node:
    match operator_name(plan):
        case "Filter":
            return catalyst.filter(changed(plan.condition()), plan.child())
        case "Project":
            return catalyst.project(map(changed, selected(plan)), plan.child())
        case "Aggregate":
            outputs = map(changed, items(plan.aggregateExpressions()))
            return catalyst.aggregate(items(plan.groupingExpressions()), outputs, plan.child())
    return plan


def without_inner_queries(catalyst: Catalyst, plan: Node) -> Node:
    """Return a query in which EXISTS, IN, LATERAL and correlated subqueries are joins, rewritten innermost first.

    Spark's rules only handle one level at a time.
    """
    flat = _with_flat_queries(catalyst, catalyst.with_correlation_outside(plan))
    return catalyst.with_joins_for_queries(flat)


def _with_flat_queries(catalyst: Catalyst, plan: Node) -> Node:
    """Return a query in which no subquery contains another."""
    if not catalyst.has_queries(plan):
        return plan
    below = [_with_flat_queries(catalyst, child) for child in children(plan)]
    plan = plan.withNewChildren(catalyst.seq(below)) if below else plan
    plan = with_inner_queries(catalyst, plan, lambda inner: _flat(catalyst, inner))
    builder = Builder(catalyst)
    return _with_expressions(
        catalyst, plan, lambda expression: builder.substitute(expression, lambda part: _as_count(builder, part))
    )


def _as_count(builder: Builder, expression: Node) -> Node | None:
    """Return EXISTS without correlation as a comparison of a count; None for other expressions.

    It has the same value for all rows, so that a join would have no key.
    """
    if expression_name(expression) != "Exists" or items(expression.children()):
        return None
    catalyst = builder.catalyst
    count = catalyst.aggregate([], [catalyst.alias(builder.count_all(), "count")], expression.plan())
    nothing, none = catalyst.seq([]), catalyst.nothing
    scalar = builder.expression("ScalarSubquery", count, nothing, expression.exprId(), nothing, none, none, none)
    return builder.expression("GreaterThan", scalar, builder.zero(scalar.dataType()))


def _flat(catalyst: Catalyst, inner: Node) -> Node:
    return without_inner_queries(catalyst, inner) if catalyst.has_queries(inner) else inner
