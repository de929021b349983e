"""Joins and set operations with identifiers: a row is derived from its matching rows of both sides."""

from __future__ import annotations

from functools import reduce
from typing import Final

from odfpy.engine.spark.plan.catalyst import Node, children, columns, operator_name
from odfpy.engine.spark.provenance.identifiers import IDS, Identifiers

_EXISTENCE: Final = "ExistenceJoin"
_ONE_SIDE: Final = "LeftSemi"


def join(ids: Identifiers, plan: Node, left: Node, right: Node) -> Node:
    """Return a join of annotated rows.

    Args:
        ids: makes columns of identifiers.
        plan: the join.
        left: the rows of its left side, annotated.
        right: those of its right side.
    """
    kind = str(plan.joinType().toString())
    if kind == "LeftAnti":
        joined = plan.withNewChildren(ids.catalyst.seq([left, children(plan)[1]]))
        return ids.with_ids(columns(plan), ids.of(left), joined)
    if kind == _ONE_SIDE or kind.startswith(_EXISTENCE):
        return _with_partners(ids, plan, left, right, is_semi=kind == _ONE_SIDE)
    joined = plan.withNewChildren(ids.catalyst.seq([left, right]))
    sets = [ids.of(side).withNullability(True) for side in (left, right)]
    return ids.with_ids(columns(plan), ids.together(sets), joined)


def _with_partners(ids: Identifiers, plan: Node, left: Node, right: Node, *, is_semi: bool) -> Node:
    """Return rows of the left side with the identifiers of all their partners; `is_semi` drops rows without partners.

    Rows that are equal in all columns and have the same inputs are counted first, so that each keeps its multiplicity.
    """
    catalyst, build = ids.catalyst, ids.build
    own = children(plan)[0]
    data, own_ids = columns(own), ids.of(left)
    times = catalyst.alias(build.count_all(), "__odf_times")
    counted = catalyst.aggregate([*data, own_ids], [*data, own_ids, times], left)
    partners = catalyst.alias(ids.of(right), "__odf_partners")
    others = catalyst.project([*(c for c in columns(right) if c.name() != IDS), partners], right)
    condition = plan.condition().get() if plan.condition().isDefined() else None
    joined = build.inner_join(counted, others, condition) if is_semi else build.outer_join(counted, others, condition)
    keys = [*data, own_ids, times.toAttribute()]
    partner_ids = partners.toAttribute().withNullability(True)
    partner_sets = catalyst.alias(
        build.aggregate(build.expression("aggregate.CollectList", partner_ids)), "__odf_theirs"
    )
    grouped = catalyst.aggregate(keys, [*keys, partner_sets], joined)
    everything = ids.together([own_ids, build.expression("Flatten", partner_sets.toAttribute())])
    shown = [*data]
    if not is_semi:
        has_partner = build.expression(
            "GreaterThan", build.expression("Size", partner_sets.toAttribute()), catalyst.integer(0)
        )
        exists = columns(plan)[-1]
        shown.append(catalyst.alias(has_partner, exists.name(), exists.exprId()))
    return ids.with_ids(shown, everything, build.repeated(grouped, times.toAttribute()))


def set_operation(ids: Identifiers, plan: Node, left: Node, right: Node) -> Node:
    """EXCEPT or INTERSECT, with or without ALL, of annotated rows; arguments as of `join`.

    Args:
        ids: the identifiers.
        plan: the plan.
        left: the annotated left side.
        right: the annotated right side.
    """
    catalyst, build = ids.catalyst, ids.build
    is_except, is_all = operator_name(plan) == "Except", bool(plan.isAll())
    sides, times, shown = [], [], []
    for own, side in zip(children(plan), (left, right), strict=True):
        data = columns(own)
        count = catalyst.alias(build.cast(build.count_all(), "int"), "__odf_times")
        collected = ids.named(ids.collected(ids.of(side)))
        sides.append(catalyst.aggregate(data, [*data, count, collected], side))
        times.append(count.toAttribute())
        shown.append(data)
    same = [
        build.expression("EqualNullSafe", left_column, right_column)
        for left_column, right_column in zip(*shown, strict=True)
    ]
    condition = reduce(lambda left_column, right_column: build.expression("And", left_column, right_column), same)
    left_ids, right_ids = (ids.of(side) for side in sides)
    if is_except and not is_all:
        return ids.with_ids(_as_plan(ids, plan, shown[0]), left_ids, build.anti_join(sides[0], sides[1], condition))
    joined = (
        build.outer_join(sides[0], sides[1], condition)
        if is_except
        else build.inner_join(sides[0], sides[1], condition)
    )
    if is_all:
        right_column = times[1].withNullability(True)
        zero = catalyst.integer(0)
        if is_except:
            left_over = build.expression("Coalesce", catalyst.seq([right_column, zero]))
            number = build.expression("Subtract", times[0], left_over)
        else:
            number = build.expression("Least", catalyst.seq([times[0], times[1]]))
        joined = build.repeated(catalyst.filter(build.expression("GreaterThan", number, zero), joined), number)
    identifiers = ids.together([left_ids, right_ids.withNullability(True)])
    return ids.with_ids(_as_plan(ids, plan, shown[0]), identifiers, joined)


def _as_plan(ids: Identifiers, plan: Node, computed: list[Node]) -> list[Node]:
    """Return columns of the left side under the identities that the operator gives them."""
    pairs = zip(computed, columns(plan), strict=True)
    return [
        column
        if column.exprId().equals(wanted.exprId())
        else ids.catalyst.alias(column, wanted.name(), wanted.exprId())
        for column, wanted in pairs
    ]
