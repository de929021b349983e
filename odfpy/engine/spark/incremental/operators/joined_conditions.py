"""Predicate pushdown from WHERE into joins, for tables that FROM lists.

`FROM a, b WHERE a.id = b.id AND a.v > 0` is `FROM (a WHERE a.v > 0) JOIN b ON a.id = b.id`: only the second form tells
the planner by which keys, or by which interval of time, the join can be partitioned.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

from odfpy.engine.spark.incremental.properties.comparisons import conjuncts_of
from odfpy.engine.spark.incremental.properties.subqueries import SUBQUERIES
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    column_id,
    columns,
    columns_read,
    operator_name,
    subtree,
)

_INNER: Final = ("Inner", "Cross")


def with_joined_conditions(catalyst: Catalyst, plan: Node) -> Node:
    """Return the same query, with conditions on inner joins moved from WHERE into the joins."""
    if operator_name(plan) == "Filter" and _is_inner_join(plan.child()):
        plan = _push_conditions_down(catalyst, plan, plan.child())
    below = children(plan) if operator_name(plan) != "View" else []  # no joins in there
    rewritten = [with_joined_conditions(catalyst, child) for child in below]
    if all(new is old for new, old in zip(rewritten, below, strict=True)):
        return plan
    return plan.withNewChildren(catalyst.seq(rewritten))


def _is_inner_join(plan: Node) -> bool:
    return operator_name(plan) == "Join" and str(plan.joinType().toString()) in _INNER


def _push_conditions_down(catalyst: Catalyst, plan: Node, join: Node) -> Node:
    sides = children(join)
    ids = [{column_id(column) for column in columns(side)} for side in sides]
    of_sides: list[list[Node]] = [[], []]
    of_both = [join.condition().get()] if join.condition().isDefined() else []
    others = []
    for conjunct in conjuncts_of(plan.condition()):
        read = {column_id(column) for column in columns_read(conjunct)}
        at = next((at for at, side_ids in enumerate(ids) if read <= side_ids), None)
        if not read or any(name in SUBQUERIES for name, _ in subtree(conjunct)):
            others.append(conjunct)
        elif at is None:
            of_both.append(conjunct)
        else:
            of_sides[at].append(conjunct)
    left, right = (_where(catalyst, conditions, side) for conditions, side in zip(of_sides, sides, strict=True))
    if of_both:
        moved = catalyst.inner_join(left, right, _conjunction(catalyst, of_both))
    else:
        moved = join.withNewChildren(catalyst.seq([left, right]))
    return _where(catalyst, others, moved)


def _where(catalyst: Catalyst, conditions: Sequence[Node], plan: Node) -> Node:
    return catalyst.filter(_conjunction(catalyst, conditions), plan) if conditions else plan


def _conjunction(catalyst: Catalyst, conditions: Sequence[Node]) -> Node:
    return reduce(lambda left, right: catalyst.expression("And", left, right), conditions)
