"""Subqueries in expressions: the names of their kinds, and how they are bound to the rows of one moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from odfpy.engine.spark.incremental.properties.keys import sources_read
from odfpy.engine.spark.incremental.properties.plan_info import InputsAt, PlanInfo
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, children, operator_name
from odfpy.engine.spark.plan.operators import NO_INPUT

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


def reads_only_constants(catalyst: Catalyst, plan: Node) -> bool:
    """Return whether the plan of a subquery has the same rows at all moments.

    Args:
        catalyst: access to Catalyst.
        plan: the plan.
    """
    return not catalyst.has_queries(plan) and not sources_read(plan) and _has_only_constants(plan)


def _has_only_constants(plan: Node) -> bool:
    below = children(plan)
    return all(map(_has_only_constants, below)) if below else operator_name(plan) in NO_INPUT
