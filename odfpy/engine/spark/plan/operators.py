"""Operators of analyzed plans, and the class of query to which each of them belongs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from odfpy.engine.spark.plan.catalyst import Node, children, columns, expressions_of, items, operator_name, subtree

INPUT: Final = "View"
"""Inputs and earlier steps are views; the plan of a step ends at them."""

QUERY_OPERATORS: Final = frozenset(
    """
    Aggregate AsOfJoin Distinct Except Filter Generate GlobalLimit Intersect Join LateralJoin LocalLimit LocalRelation
    Offset OneRowRelation Pivot Project RepartitionByExpression Sample Sort SubqueryAlias Tail Union Unpivot
    WithWindowDefinition
    analysis.UnresolvedHaving
    analysis.UnresolvedInlineTable
    analysis.UnresolvedQualify analysis.UnresolvedRelation
    analysis.UnresolvedSubqueryColumnAliases
    analysis.UnresolvedTableValuedFunction analysis.UnresolvedTVFAliases
    expressions.PipeOperator UnresolvedHint UnresolvedWith
    """.split()  # noqa: SIM905
)
"""The operators that a parsed query may have.

Statements, scripts, commands and programs (TRANSFORM) are not among them.
"""

ARRANGING: Final = frozenset(("Sort", "RepartitionByExpression"))
"""ORDER BY, SORT BY, DISTRIBUTE BY, CLUSTER BY: they only change the order of rows, which matters only to LIMIT."""

ROW_OPERATORS: Final = ARRANGING | frozenset(
    "Project Filter Union Generate SubqueryAlias WithCTE CTERelationDef CTERelationRef expressions.PipeOperator".split()  # noqa: SIM905
)
"""Operators that process one row at a time."""

NO_INPUT: Final = frozenset(("OneRowRelation", "LocalRelation", "Range"))
"""Operators whose rows are constants."""

_IN_WORDS: Final[dict[str, str]] = {
    "Aggregate": "a keyed aggregate (GROUP BY or an aggregate function)",
    "Distinct": "DISTINCT (or UNION without ALL)",
    "Deduplicate": "DISTINCT",
    "Except": "EXCEPT",
    "Intersect": "INTERSECT",
    "Join": "a join",
    "LateralJoin": "a lateral join",
    "AsOfJoin": "an as-of join",
    "Window": "a window function",
    "Expand": "UNPIVOT, GROUPING SETS or a sliding window",
    "Pivot": "PIVOT",
    "Unpivot": "UNPIVOT",
    "GlobalLimit": "a top-N (ORDER BY with LIMIT)",
    "LocalLimit": "a top-N (ORDER BY with LIMIT)",
    "Offset": "a top-N (ORDER BY with OFFSET)",
    "Tail": "a top-N (ORDER BY with LIMIT)",
    "UnionLoop": "a recursive query",
}

_INSTEAD: Final[dict[str, str]] = {
    "LateralJoin": "Write it as a join, or as a separate step.",
    "UnionLoop": "Write a join for each level; numbers come from LATERAL VIEW explode(sequence(1, n)).",
}

_LIMITS: Final = ("GlobalLimit", "LocalLimit", "Offset", "Tail")
_IN_ORDER: Final = ("GlobalLimit", "LocalLimit", "Offset", "Project", "SubqueryAlias", "expressions.PipeOperator")
_NESTED: Final = frozenset(("ScalarSubquery", "Exists", "ListQuery", "LateralSubquery"))
_SUBQUERIES: Final = _NESTED | {"InSubquery"}


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a step, with its expressions and all of their descendants."""

    name: str
    node: Node
    expressions: tuple[tuple[str, Node], ...]

    @property
    def subquery(self) -> Node | None:
        """Return a subquery in an expression, if there is one."""
        return next((node for name, node in self.expressions if name in _SUBQUERIES), None)


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The reason why a step belongs to no supported class.

    Attributes:
        node: the node at fault.
        what: the feature of the query, in words.
        hint: an alternative, if one is known.
        deterministic: whether the result is a function of the inputs at all.
    """

    node: Node
    what: str
    hint: str | None = None
    deterministic: bool = True


def operators(plan: Node) -> Iterator[Operator]:
    """Yield all operators of a step, from the result down to its inputs, which are not entered."""
    name = operator_name(plan)
    if name == INPUT:
        return
    expressions = tuple(part for expression in expressions_of(plan) for part in subtree(expression))
    yield Operator(name, plan, expressions)
    if name == "WithCTE":
        for definition in items(plan.cteDefs()):
            yield from operators(definition)
        yield from operators(plan.plan())
        return
    for child in children(plan):
        yield from operators(child)


def nested_queries(plan: Node) -> Iterator[Node]:
    """Yield the plan, and the plans of all subqueries in its expressions."""
    yield plan
    for operator in operators(plan):
        for name, node in operator.expressions:
            if name in _NESTED:
                yield from nested_queries(node.plan())


def with_subqueries(plan: Node) -> Iterator[Operator]:
    """Yield all operators of a step, including those of subqueries in expressions."""
    for query in nested_queries(plan):
        yield from operators(query)


def obstacle(operator: Operator) -> Unsupported | None:
    """Return what makes an operator more than row by row, or None when nothing does."""
    name, node = operator.name, operator.node
    if name in ROW_OPERATORS:
        return Unsupported(operator.subquery, "a subquery in an expression") if operator.subquery is not None else None
    if name == "Aggregate" and _is_event_time_window(node):
        return Unsupported(node, "an event-time window")
    if name in _LIMITS and sort_below(node) is None:
        return Unsupported(node, "LIMIT without a total order", "Add ORDER BY, or omit LIMIT.", deterministic=False)
    if name == "Sample":
        return Unsupported(node, "TABLESAMPLE", "Filter by a hash of a column instead.", deterministic=False)
    if name in NO_INPUT:
        return Unsupported(node, "rows that come from no input")
    return Unsupported(node, _IN_WORDS.get(name, name), _INSTEAD.get(name))


def sort_below(node: Node) -> Node | None:
    """Return the `Sort` that determines the rows of a LIMIT or OFFSET, or None. SORT BY orders only partitions."""
    while operator_name(node) in _IN_ORDER:
        (node,) = children(node)
    return node if operator_name(node) == "Sort" and getattr(node, "global")() else None


def sort_of_result(plan: Node) -> Node | None:
    """Return the `Sort` of an ORDER BY at the end of a query, or None when it has none."""
    while operator_name(plan) in ("Project", "WithCTE", "expressions.PipeOperator"):
        plan = plan.plan() if operator_name(plan) == "WithCTE" else plan.child()
    return plan if operator_name(plan) == "Sort" and getattr(plan, "global")() else None


def is_query(expression: str) -> bool:
    """Return whether an expression, by its name, has a query of its own. IN (SELECT ...) contains one."""
    return expression in _NESTED


def is_subquery(expression: str) -> bool:
    """Return whether an expression is a subquery, which is then processed as a whole."""
    return expression in _SUBQUERIES


def _is_event_time_window(aggregate: Node) -> bool:
    """Return whether rows are grouped by `window` or `session_window`, which Spark marks in the column's metadata."""
    marks = ("spark.timeWindow", "spark.sessionWindow")
    inside = [column for child in children(aggregate) for column in columns(child)]
    return any(column.metadata().contains(mark) for column in inside for mark in marks)
