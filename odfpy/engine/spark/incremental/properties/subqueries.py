"""Subqueries in expressions: the names of their kinds, and how they are bound to the rows of one moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from odfpy.engine.spark.incremental.properties.plan_info import InputsAt, PlanInfo
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, children

SUBQUERIES: Final = frozenset(("ScalarSubquery", "Exists", "ListQuery", "InSubquery", "LateralSubquery"))
Subqueries: TypeAlias = Sequence[tuple[Node, PlanInfo]]
"""Subqueries as they stand in expressions, each with the properties of its plan."""


def bound(catalyst: Catalyst, expressions: Sequence[Node], subqueries: Subqueries, inputs_at: InputsAt) -> list[Node]:
    """Return expressions whose subqueries read the rows of one moment, before or after a pull.

    Args:
        catalyst: access to Catalyst.
        expressions: the expressions.
        subqueries: the subqueries in the expressions.
        inputs_at: the rows of the stateful inputs, before or after a pull.
    """
    if not subqueries:
        return list(expressions)
    plans = [(node, info.built(inputs_at)) for node, info in subqueries]

    def renewed(expression: Node) -> Node:
        for node, plan in plans:
            if expression.fastEquals(node):
                return node.withNewPlan(plan)
        below = children(expression)
        if not below:
            return expression
        return expression.withNewChildren(catalyst.seq([renewed(child) for child in below]))

    return [renewed(expression) for expression in expressions]
