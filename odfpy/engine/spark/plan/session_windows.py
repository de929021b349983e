"""Groups by session windows, as Spark's optimizer has to leave them.

Rows become sessions inside of the aggregate; below it each row is a session by itself, in the same column.
The optimizer takes that column for one like others: it moves filters and semi-joins on the start or end of sessions
below the aggregate, where they take rows away from sessions, and leaves an aggregate out that seems to do no more than
DISTINCT. Nothing is moved through a filter that is not deterministic, so one stands above each such aggregate.
"""

from __future__ import annotations

from typing import Final

from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    expression_name,
    expressions_of,
    items,
    operator_name,
    subtree,
)
from odfpy.engine.spark.plan.inner_queries import with_inner_queries
from odfpy.engine.spark.plan.operators import is_query, with_subqueries
from odfpy.errors import UnsupportedQuery

SESSION_MARK: Final = "spark.sessionWindow"


def is_session(column: Node) -> bool:
    """Return whether Spark has marked a column as a window that grows with the rows that fall into it."""
    is_named = expression_name(column) in ("Alias", "AttributeReference")
    return is_named and bool(column.metadata().contains(SESSION_MARK))


def session_of(build: Builder, like: Node, start: Node, end: Node, name: str) -> Node:
    """A session from start to end, as a column that Spark takes for one that grows.

    Args:
        build: makes expressions.
        like: a column of sessions.
        start: of the session, never NULL.
        end: of the session, never NULL.
        name: of the column.
    """
    catalyst = build.catalyst
    session = build.struct(start=catalyst.never_null(start), end=catalyst.never_null(end))
    return catalyst.alias(session, name, metadata=like.metadata())


def makes_sessions(plan: Node) -> bool:
    """Return whether an operator is an aggregate in which rows become sessions."""
    return operator_name(plan) == "Aggregate" and any(map(is_session, items(plan.groupingExpressions())))


def fence(catalyst: Catalyst, plan: Node) -> Node:
    """The same rows, behind a filter that lets all of them through and that the optimizer moves nothing through."""
    partition = catalyst.expression("SparkPartitionID")
    return catalyst.filter(catalyst.expression("GreaterThanOrEqual", partition, catalyst.integer(0)), plan)


def with_fences(catalyst: Catalyst, plan: Node) -> Node:
    """An analyzed query with a fence above each aggregate in which rows become sessions, also in queries inside of it.

    Raises:
        UnsupportedQuery: sessions are made in a query inside of an expression, and not in SELECT, WHERE or HAVING.
    """
    if not any(makes_sessions(operator.node) for operator in with_subqueries(plan)):
        return plan
    return _with_fences(catalyst, plan)


def _with_fences(catalyst: Catalyst, plan: Node) -> Node:
    below = [_with_fences(catalyst, child) for child in children(plan)]
    plan = plan.withNewChildren(catalyst.seq(below)) if below else plan
    inside = (node for one in expressions_of(plan) for name, node in subtree(one) if is_query(name))
    if any(makes_sessions(operator.node) for query in inside for operator in with_subqueries(query.plan())):
        found = with_inner_queries(catalyst, plan, lambda inner: _with_fences(catalyst, inner))
        if found is plan:
            raise UnsupportedQuery(
                "A subquery with session_window stands where Spark would not keep its sessions apart",
                hint="Move it to a WITH before the query, and join what it gives.",
            )
        plan = found
    return fence(catalyst, plan) if makes_sessions(plan) else plan
