"""Session windows in aggregates, in a form that Spark's optimizer does not break.

Spark merges rows into sessions within the aggregate; below it each row is a session by itself, in the same column. So
Spark counts a value twice in `count(DISTINCT v), count(DISTINCT w)`, once for each part of a session that has it, and
`min(session_window.end)` may be the end of a single row. For such an aggregate, the whole session of each row is
computed first, as an ordinary column.

The optimizer treats the session column like any other: it pushes filters and semi-joins on the start or end of sessions
below the aggregate, where they remove rows from sessions, and drops an aggregate that seems to do no more than
DISTINCT. Nothing is pushed through a nondeterministic filter, so such a fence is put above each of these aggregates.
"""

from __future__ import annotations

from typing import Final

from odfpy.engine.spark.plan.aggregate_calls import call_id, columns_with, different_calls
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    columns,
    columns_read,
    expression_name,
    expressions_of,
    items,
    operator_name,
    subtree,
)
from odfpy.engine.spark.plan.inner_queries import with_inner_queries
from odfpy.engine.spark.plan.lineage import find_column, same_column
from odfpy.engine.spark.plan.operators import is_query, with_subqueries
from odfpy.errors import UnsupportedQuery

SESSION_MARK: Final = "spark.sessionWindow"


def is_session(column: Node) -> bool:
    """Return whether Spark has marked a column as a session window."""
    is_named = expression_name(column) in ("Alias", "AttributeReference")
    return is_named and bool(column.metadata().contains(SESSION_MARK))


def makes_sessions(plan: Node) -> bool:
    """Return whether an operator is an aggregate in which rows become sessions."""
    return operator_name(plan) == "Aggregate" and any(map(is_session, items(plan.groupingExpressions())))


def session_of(build: Builder, like: Node, start: Node, end: Node, name: str) -> Node:
    """Return a session from start to end, as a column that Spark still merges with others.

    Args:
        build: makes expressions.
        like: a column of sessions.
        start: start of the session, never NULL.
        end: end of the session, never NULL.
        name: name of the column.
    """
    return build.catalyst.alias(_interval_struct(build, start, end), name, metadata=like.metadata())


def _interval_struct(build: Builder, start: Node, end: Node) -> Node:
    return build.struct(start=build.catalyst.never_null(start), end=build.catalyst.never_null(end))


def beside_sessions(build: Builder, rows: Node, keys: list[Node], start: Node, end: Node) -> Node:
    """Add two columns to rows: start and end of the whole session that each row belongs to.

    A row spans the time from its start to its end. Rows of one key whose spans touch form one session.

    Args:
        build: makes expressions.
        rows: the rows.
        keys: expressions that all rows of a session share.
        start: start of the span of a row, never NULL.
        end: end of the span, never NULL.
    """
    catalyst = build.catalyst
    order = [build.ascending(start), build.ascending(end)]

    def greatest(time: Node, partition: list[Node], order: list[Node], frame: Node) -> Node:
        call = build.aggregate(build.expression("aggregate.Max", time))
        return catalyst.alias(build.over(call, partition, order, frame), "__odf_session")

    # The greatest end so far, not that of the previous row: gaps may differ, so an earlier row may reach further.
    reached = greatest(end, keys, order, build.rows_before())
    goes_on = build.expression("LessThanOrEqual", start, reached.toAttribute())
    begun = catalyst.alias(build.expression("If", goes_on, build.null(start.dataType()), start), "__odf_begun")
    first = greatest(begun.toAttribute(), keys, order, build.rows_until("CurrentRow"))
    session_key = [*keys, first.toAttribute()]
    last = greatest(end, session_key, [], build.rows_until("UnboundedFollowing"))
    marked = catalyst.project([*columns(rows), begun], build.window([reached], keys, order, rows))
    with_windows = build.window([last], session_key, [], build.window([first], keys, order, marked))
    return catalyst.project([*columns(rows), first.toAttribute(), last.toAttribute()], with_windows)


def whole_sessions(build: Builder, aggregate: Node) -> Node:
    """Return an `Aggregate` over rows with their whole sessions, in a column that Spark treats like any other."""
    catalyst = build.catalyst
    groupings = items(aggregate.groupingExpressions())
    own = next(filter(is_session, groupings))
    keys = [grouping for grouping in groupings if grouping is not own]
    start, end = (catalyst.field_of(own, field) for field in ("start", "end"))
    rows = beside_sessions(build, aggregate.child(), keys, start, end)
    *known, first, last = columns(rows)
    session = _interval_struct(build, first, last)
    if own.nullable():
        session = build.only_if(catalyst.expression("IsNotNull", own), session)
    whole = catalyst.alias(session, own.name())
    below = catalyst.project([*(column for column in known if not same_column(column, own)), whole], rows)

    def replacement(part: Node) -> Node | None:
        return whole.toAttribute() if part.semanticEquals(own) else None

    calls = {call_id(call): build.substitute(call, replacement) for call in different_calls(aggregate)}
    outputs = columns_with(build, aggregate, calls, [own], [whole.toAttribute()])
    return catalyst.aggregate([build.substitute(grouping, replacement) for grouping in groupings], outputs, below)


def needs_whole_sessions(plan: Node) -> bool:
    """Return whether Spark would compute an operator's sessions incorrectly unless they are computed first.

    Spark is wrong with DISTINCT and with functions of the session, and fails where a row is in no session, as with
    ROLLUP.
    """
    if not makes_sessions(plan):
        return False
    own = next(filter(is_session, items(plan.groupingExpressions())))
    return own.nullable() or any(
        call.isDistinct() or find_column(columns_read(call), own) is not None for call in different_calls(plan)
    )


def fenced_sessions(catalyst: Catalyst, plan: Node) -> Node:
    """Return an `Aggregate` over sessions behind a fence, so that Spark computes what the query says."""
    build = Builder(catalyst)
    return build.fence(whole_sessions(build, plan) if needs_whole_sessions(plan) else plan)


def with_fences(catalyst: Catalyst, plan: Node) -> Node:
    """Return an analyzed query with a fence above each aggregate over sessions, including those in subqueries.

    Raises:
        UnsupportedQuery: a subquery makes sessions in an expression outside of SELECT, WHERE and HAVING.
    """
    if not any(makes_sessions(operator.node) for operator in with_subqueries(plan)):
        return plan
    return _with_fences(catalyst, plan)


def _with_fences(catalyst: Catalyst, plan: Node) -> Node:
    below = [_with_fences(catalyst, child) for child in children(plan)]
    plan = plan.withNewChildren(catalyst.seq(below)) if below else plan
    inside = (node for expression in expressions_of(plan) for name, node in subtree(expression) if is_query(name))
    if any(makes_sessions(operator.node) for query in inside for operator in with_subqueries(query.plan())):
        fenced = with_inner_queries(catalyst, plan, lambda inner: _with_fences(catalyst, inner))
        if fenced is plan:
            raise UnsupportedQuery(
                "A subquery with session_window stands where Spark would not keep its sessions apart",
                hint="Move it to a WITH before the query, and join what it gives.",
            )
        plan = fenced
    return fenced_sessions(catalyst, plan) if makes_sessions(plan) else plan
