"""LATERAL subqueries of a single row, rewritten as equivalent columns, filters and explodes of that row.

`FROM a, LATERAL explode(items) AS t(item)` works row by row just as `FROM a LATERAL VIEW explode(items) AS item` does.
A lateral query that reads other tables is a join, and Spark rewrites it as such.
"""

from __future__ import annotations

from typing import Final

from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    columns,
    expression_name,
    expressions_of,
    items,
    operator_name,
    selected,
    subtree,
)
from odfpy.engine.spark.plan.operators import INPUT, is_subquery

_OUTER: Final = "OuterReference"
_INNER: Final = ("Inner", "Cross")


def without_lateral_rows(catalyst: Catalyst, plan: Node) -> Node:
    """Return the same query, with LATERAL rewritten as row-by-row operators where it reads one row only.

    Args:
        catalyst: the session.
        plan: an analyzed plan.
    """
    if operator_name(plan) == INPUT:
        return plan
    below = children(plan)
    rewritten = [without_lateral_rows(catalyst, child) for child in below]
    if not all(new is old for new, old in zip(rewritten, below, strict=True)):
        plan = plan.withNewChildren(catalyst.seq(rewritten))
    if operator_name(plan) != "LateralJoin":
        return plan
    return _LateralJoin(catalyst, plan).made() or plan


class _LateralJoin:
    """One lateral join."""

    def __init__(self, catalyst: Catalyst, join: Node) -> None:
        self._catalyst = catalyst
        self._build = Builder(catalyst)
        self._join = join
        self._left = join.left()
        self._is_inner = str(join.joinType().toString()) in _INNER

    def made(self) -> Node | None:
        """Return the row-by-row operators that it is equivalent to; None where there are none."""
        condition = self._join.condition()
        condition = condition.get() if condition.isDefined() else None
        if condition is not None and expression_name(condition) == "Literal" and condition.value() is True:
            condition = None
        query = self._join.right().plan()
        if not self._is_of_one_row(query) or not (self._is_inner or (condition is None and _is_left(query))):
            return None
        plan = self._over_left(query)
        if condition is not None:
            plan = self._catalyst.filter(condition, plan)
        return self._catalyst.project(columns(self._join), plan)

    def _is_of_one_row(self, query: Node) -> bool:
        """Return whether a query reads nothing but the row that it is joined with."""
        name = operator_name(query)
        if name == "OneRowRelation":
            return True
        if name not in ("Project", "Filter", "Generate", "SubqueryAlias"):
            return False
        computed = selected(query) if name == "Project" else []
        if any(expression_name(column) == _OUTER for column in computed):
            return False  # a column of the left side under its own identity
        used = [kind for expression in expressions_of(query) for kind, _ in subtree(expression)]
        return not any(map(is_subquery, used)) and self._is_of_one_row(query.child())

    def _over_left(self, query: Node) -> Node:
        """Return the query on top of the columns of the left side."""
        match operator_name(query):
            case "OneRowRelation":
                return self._left
            case "SubqueryAlias":
                return self._over_left(query.child())
        below = self._over_left(query.child())
        match operator_name(query):
            case "Filter":
                return self._catalyst.filter(self._of_row(query.condition()), below)
            case "Generate":
                outer = bool(query.outer()) or not self._is_inner
                generator = self._of_row(query.generator())
                return self._build.generate(generator, items(query.generatorOutput()), below, outer=outer)
        computed = [self._of_row(column) for column in selected(query)]
        return self._catalyst.project([*columns(self._left), *computed], below)

    def _of_row(self, expression: Node) -> Node:
        """Return an expression in which columns of the left side are no longer those of an outer query."""
        return self._build.substitute(expression, lambda part: part.e() if expression_name(part) == _OUTER else None)


def _is_left(query: Node) -> bool:
    """Return whether there is always a row, or only a generator at the top which keeps all rows of the left side.

    For a row for which it generates nothing, LEFT JOIN shows NULL: so columns may only be passed on from there.
    """
    name = operator_name(query)
    if name == "SubqueryAlias":
        return _is_left(query.child())
    if name == "Project":
        return _has_one_row(query) or (_only_names(query) and _is_left(query.child()))
    return name == "OneRowRelation" or (name == "Generate" and _has_one_row(query.child()))


def _has_one_row(query: Node) -> bool:
    name = operator_name(query)
    return name == "OneRowRelation" or (name in ("Project", "SubqueryAlias") and _has_one_row(query.child()))


def _only_names(project: Node) -> bool:
    values = (column.child() if expression_name(column) == "Alias" else column for column in selected(project))
    return all(expression_name(value) == "AttributeReference" for value in values)
