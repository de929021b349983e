"""Queries inside of expressions (IN, EXISTS, scalar subqueries), to be changed where they stand."""

from __future__ import annotations

from collections.abc import Callable

from odfpy.engine.spark.plan.catalyst import Catalyst, Node, children, expression_name, items, operator_name, selected
from odfpy.engine.spark.plan.operators import is_query

Change = Callable[[Node], Node]


def with_inner_queries(catalyst: Catalyst, plan: Node, change: Change) -> Node:
    """An operator whose inner queries have been changed.

    Args:
        catalyst: the session.
        plan: the operator; what is below it stays.
        change: gives another plan for that of a query.

    Returns:
        The operator itself if its expressions have no place for other ones: they have in SELECT, WHERE and HAVING.
    """

    def changed(expression: Node) -> Node:
        if is_query(expression_name(expression)):
            expression = expression.withNewPlan(change(expression.plan()))
        below = [changed(child) for child in children(expression)]
        return expression.withNewChildren(catalyst.seq(below)) if below else expression

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
    """A query with EXISTS, IN, LATERAL and correlated subqueries as the joins that they stand for, the innermost first.

    Spark's rules look at one level at a time.
    """
    flat = _with_flat_queries(catalyst, catalyst.with_correlation_outside(plan))
    return catalyst.with_joins_for_queries(flat)


def _with_flat_queries(catalyst: Catalyst, plan: Node) -> Node:
    """A query in which no inner query has one inside."""
    if not catalyst.has_queries(plan):
        return plan
    below = [_with_flat_queries(catalyst, child) for child in children(plan)]
    plan = plan.withNewChildren(catalyst.seq(below)) if below else plan
    return with_inner_queries(catalyst, plan, lambda inner: _flat(catalyst, inner))


def _flat(catalyst: Catalyst, inner: Node) -> Node:
    return without_inner_queries(catalyst, inner) if catalyst.has_queries(inner) else inner
