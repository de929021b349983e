"""Rules for joins: which unmatched rows may still find a partner, and which rows have to wait for a version.

Matched pairs are closed at once. A row of an outer or anti join is unmatched for good when the condition keeps two
times within an interval, and the watermark shows that no partner within it can come. Unmatched rows are recognized by a
mark column on the other side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odfpy.engine.spark.batch.closed import ClosedPlan, PlanWalk
from odfpy.engine.spark.batch.conditions import NotAfter, has_query, not_after, parts_of, reads_only
from odfpy.engine.spark.batch.time_bounds import ColumnTimes, RowLineage, ValidityColumn, has_passed, least, together
from odfpy.engine.spark.batch.uses import is_inner
from odfpy.engine.spark.plan.catalyst import Node, children, column_id, columns, columns_read, expression_name
from odfpy.engine.spark.plan.monotone import never_decreases, shift_of
from odfpy.engine.spark.plan.time_values import evaluate

_LEFT_STAYS: Final = ("LeftOuter", "FullOuter")
_RIGHT_STAYS: Final = ("RightOuter", "FullOuter")
_ONE_SIDE: Final = ("LeftSemi", "LeftAnti", "ExistenceJoin")
_FACTS_LEFT: Final = ("Inner", "Cross", "LeftOuter", *_ONE_SIDE)
_FACTS_RIGHT: Final = ("Inner", "Cross", "RightOuter")


def join(walk: PlanWalk, plan: Node, where: Sequence[Node] = ()) -> ClosedPlan:
    """Return a join restricted to closed rows.

    Args:
        walk: the walk.
        plan: the join.
        where: conditions of a WHERE directly above the join, if it is an inner one.
    """
    nodes = children(plan)
    left, right = (_side(walk, node, where) for node in nodes)
    condition = plan.condition()
    conjuncts = [*(parts_of(condition.get()) if condition.isDefined() else ()), *where]
    kind = _kind_of(plan)
    if (beside := _beside_constants(walk, plan, kind, left, right)) is not None:
        return beside
    for facts, versions, kinds in ((left, right, _FACTS_LEFT), (right, left, _FACTS_RIGHT)):
        as_of = _as_of(walk, conjuncts, facts, versions) if versions.validity else None
        if as_of is not None and (kind in kinds or as_of.end is not None):
            return _TemporalJoin(walk, plan, kind, left, right, as_of).closed(only_facts=kind in kinds)
    return _Pairs(walk, plan, kind, left, right, _interval(walk, conjuncts, left, right)).closed()


def join_where(walk: PlanWalk, plan: Node) -> ClosedPlan:
    """Return an inner join directly below a WHERE, some of whose conditions may be conditions of the join."""
    conjuncts = (part for part in parts_of(plan.condition()) if columns_read(part) and not has_query(part))
    return join(walk, plan.child(), list(conjuncts))


def _kind_of(plan: Node) -> str:
    """Return the join type: EXISTS beside other conditions has a column name appended; a scalar subquery is outer."""
    kind = str(plan.joinType().toString()).partition("(")[0]
    return "LeftOuter" if kind == "LeftSingle" else kind


def _beside_constants(walk: PlanWalk, plan: Node, kind: str, left: ClosedPlan, right: ClosedPlan) -> ClosedPlan | None:
    """Return a join with constants that works row by row; None if it is none, or shows unmatched constants."""
    if right.lineage is RowLineage.CONSTANT and left.lineage.is_row_by_row and kind in _FACTS_LEFT:
        rows = left
    elif left.lineage is RowLineage.CONSTANT and right.lineage.is_row_by_row and kind in _FACTS_RIGHT:
        rows = right
    else:
        return None
    validity = rows.validity if kind in _ONE_SIDE else {}
    return ClosedPlan(walk.above(plan, left, right), tuple(columns(plan)), rows.times, validity, rows.lineage)


def _side(walk: PlanWalk, node: Node, where: Sequence[Node]) -> ClosedPlan:
    """Return one side of a join; if it is an inner join itself, with the conditions that read only its columns."""
    own_conditions = [condition for condition in where if reads_only(condition, columns(node))]
    return join(walk, node, own_conditions) if is_inner(node) else walk.part(node)


# --- Intervals of time -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Interval:
    """The bounds on right time minus left time, in microseconds, as far as they are known."""

    left: Node
    right: Node
    least: int | None = None
    most: int | None = None

    def narrow(self, other: _Interval) -> None:
        """Tighten the bounds by another condition on the same two times."""
        if (column_id(self.left), column_id(self.right)) != (column_id(other.left), column_id(other.right)):
            return
        if other.least is not None:
            self.least = other.least if self.least is None else max(self.least, other.least)
        if other.most is not None:
            self.most = other.most if self.most is None else min(self.most, other.most)


def _interval(walk: PlanWalk, conjuncts: Sequence[Node], left: ClosedPlan, right: ClosedPlan) -> _Interval | None:
    interval: _Interval | None = None
    for condition in conjuncts:
        for order in not_after(condition):
            bound = _bound(walk, order, left, right)
            if bound is not None and interval is None:
                interval = bound
            elif bound is not None and interval is not None:
                interval.narrow(bound)
    return interval


def _bound(walk: PlanWalk, order: NotAfter, left: ClosedPlan, right: ClosedPlan) -> _Interval | None:
    """Return the bound that follows from one time, shifted by a constant, not being after another one."""
    pair = columns_read(order.smaller), columns_read(order.greater)
    if any(len(read) != 1 for read in pair):
        return None
    (smaller,), (greater,) = pair
    forwards = _is_time(left, smaller) and _is_time(right, greater)
    if not forwards and not (_is_time(right, smaller) and _is_time(left, greater)):
        return None
    shifts = [
        shift_of(walk.catalyst, side, column) for side, column in ((order.smaller, smaller), (order.greater, greater))
    ]
    if shifts[0] is None or shifts[1] is None:
        return None
    apart = shifts[0] - shifts[1]
    return _Interval(smaller, greater, least=apart) if forwards else _Interval(greater, smaller, most=-apart)


def _is_time(side: ClosedPlan, column: Node) -> bool:
    known = side.times.get(column_id(column))
    return known is not None and not known.windows


@dataclass(frozen=True, slots=True)
class _Pairs:
    """A join of two sides, perhaps with an interval between their times."""

    walk: PlanWalk
    plan: Node
    kind: str
    left: ClosedPlan
    right: ClosedPlan
    interval: _Interval | None

    def closed(self) -> ClosedPlan:
        """Return the join without unmatched rows that may still find a partner."""
        left, right = self._left_is_unmatched(), self._right_is_unmatched()
        plan = self.plan
        if self.kind == "LeftAnti":
            plan = self.walk.above(plan, self.left, self.right)
            plan = plan if left is None else self.walk.where([left], plan)
        else:
            plan = with_unmatched_rows(self.walk, plan, self.left, self.right, left, right)
        lineage = together([self.left.lineage, self.right.lineage])
        return ClosedPlan(plan, tuple(columns(self.plan)), self._times(), lineage=lineage)

    def _left_is_unmatched(self) -> Node | None:
        """Return the condition that an unmatched left row stays unmatched; None if such rows are closed at once."""
        known, interval = self._known(self.right, right=True), self.interval
        if self.kind not in (*_LEFT_STAYS, "LeftAnti") or known is None or interval is None or interval.most is None:
            return None
        return has_passed(self.walk.catalyst, interval.left, known.later(-interval.most).passed)

    def _right_is_unmatched(self) -> Node | None:
        known, interval = self._known(self.left, right=False), self.interval
        if self.kind not in _RIGHT_STAYS or known is None or interval is None or interval.least is None:
            return None
        return has_passed(self.walk.catalyst, interval.right, known.later(interval.least).passed)

    def _known(self, side: ClosedPlan, *, right: bool) -> ColumnTimes | None:
        if self.interval is None:
            return None
        return side.times.get(column_id(self.interval.right if right else self.interval.left))

    def _times(self) -> dict[int, ColumnTimes]:
        """Return the time bounds of the result, limited by how far the other side may still bring up earlier times."""
        interval = self.interval
        left, right = self._known(self.left, right=False), self._known(self.right, right=True)
        if interval is None or left is None or right is None:
            return {}
        times = {}
        if interval.most is not None and self.kind not in _RIGHT_STAYS:
            times[column_id(interval.left)] = least([left, right.later(-interval.most)])
        if interval.least is not None and self.kind not in (*_LEFT_STAYS, *_ONE_SIDE):
            times[column_id(interval.right)] = least([right, left.later(interval.least)])
        return times


def with_unmatched_rows(
    walk: PlanWalk,
    plan: Node,
    left: ClosedPlan,
    right: ClosedPlan,
    left_is_unmatched: Node | None,
    right_is_unmatched: Node | None,
) -> Node:
    """Return a join whose unmatched rows are filtered by conditions.

    Args:
        walk: the walk.
        plan: the join.
        left: its left side.
        right: its right side.
        left_is_unmatched: the condition for unmatched rows of the left side; None to include all of them.
        right_is_unmatched: the same for unmatched rows of the right side.
    """
    if left_is_unmatched is None and right_is_unmatched is None:
        return walk.above(plan, left, right)
    catalyst = walk.catalyst
    marks = [catalyst.alias(catalyst.boolean(True), f"__odf_{side}") for side in ("left", "right")]
    marked = [
        catalyst.project([*side.columns, mark], side.plan) for side, mark in zip((left, right), marks, strict=True)
    ]
    joined = plan.withNewChildren(catalyst.seq(marked))
    has_side = [catalyst.expression("IsNotNull", mark.toAttribute()) for mark in marks]
    conditions = []
    for has_own, has_other, is_unmatched in (
        (has_side[0], has_side[1], left_is_unmatched),
        (has_side[1], has_side[0], right_is_unmatched),
    ):
        if is_unmatched is not None:
            absent = catalyst.expression("Not", has_own)
            conditions.append(catalyst.expression("Or", has_other, catalyst.expression("Or", absent, is_unmatched)))
    return catalyst.project(columns(plan), walk.where(conditions, joined))


# --- Temporal tables -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _AsOf:
    """The comparison of a time of one side, the facts, with the validity of rows of the other.

    Attributes:
        value: the time of a fact, without a duration that is added to it.
        column: the column that this is, None if it is a function of one.
        shift: the duration.
        limit: facts with a time at or before it are closed.
        end: the column with the end of versions, if it is compared with the same time.
        uses_end: whether the query uses the end of versions in other ways.
    """

    value: Node
    column: Node | None
    shift: int
    limit: ColumnTimes
    end: Node | None
    uses_end: bool


def _as_of(walk: PlanWalk, conjuncts: Sequence[Node], facts: ClosedPlan, versions: ClosedPlan) -> _AsOf | None:
    begins, ends = [], []
    for condition in conjuncts:
        for order in not_after(condition):
            if (
                (begin := _validity(order.smaller, versions))
                and not begin.is_end
                and _reads_time_of(order.greater, facts)
            ):
                begins.append((begin, order.greater))
            if (end := _validity(order.greater, versions)) and end.is_end and _reads_time_of(order.smaller, facts):
                ends.append((order.greater, order.smaller))
    if not begins:
        return None
    begin, time = begins[0]
    fact_time = _time_of_fact(walk, time, facts)
    if fact_time is None:
        return None
    value, column, shift, known = fact_time
    limit = least([known, begin.known.later(-shift)])
    end = next((column for column, other in ends if other.semanticEquals(time)), None)
    compared_ids = [column_id(column) for column, _ in ends]
    uses = walk.uses
    uses_end = any(
        key in uses.shown or uses.compared[key] != compared_ids.count(key)
        for key, validity in versions.validity.items()
        if validity.is_end
    )
    return _AsOf(value, column, shift, limit, end, uses_end)


def _validity(column: Node, versions: ClosedPlan) -> ValidityColumn | None:
    return versions.validity.get(column_id(column)) if expression_name(column) == "AttributeReference" else None


def _reads_time_of(time: Node, facts: ClosedPlan) -> bool:
    return len(columns_read(time)) == 1 and reads_only(time, facts.columns)


def _time_of_fact(walk: PlanWalk, time: Node, facts: ClosedPlan) -> tuple[Node, Node | None, int, ColumnTimes] | None:
    """Return the time of facts, its column, the duration added to it, and its time bounds."""
    while expression_name(time) == "Cast" and children(time)[0].dataType().typeName() == "date":
        (time,) = children(time)  # a date is compared as its midnight
    (read,) = columns_read(time)
    known = facts.times.get(column_id(read))
    if known is None or known.windows:
        return None
    if expression_name(time) == "AttributeReference":
        return time, time, 0, known
    shift = shift_of(walk.catalyst, time, read)
    if shift is not None:
        return read, read, shift, known
    if not never_decreases(walk.catalyst, time):
        return None
    start = None if known.complete is None else evaluate(walk.catalyst, time, read, known.complete)
    return time, None, 0, ColumnTimes.since(start)


@dataclass(frozen=True, slots=True)
class _TemporalJoin:
    """A join of facts with the versions that were in force at their times."""

    walk: PlanWalk
    plan: Node
    kind: str
    left: ClosedPlan
    right: ClosedPlan
    as_of: _AsOf

    def closed(self, *, only_facts: bool) -> ClosedPlan:
        """Return the join of the facts whose versions are known with all versions.

        Args:
            only_facts: whether all rows of the result are rows of facts; otherwise the result also reports versions
                that no fact has looked up, and these wait for their end.
        """
        walk, as_of = self.walk, self.as_of
        given = has_passed(walk.catalyst, as_of.value, as_of.limit.passed)
        left, right = self.left, self.right
        facts_left = any(column_id(column) == column_id(columns_read(as_of.value)[0]) for column in left.columns)
        if facts_left:
            left = ClosedPlan(walk.where([given], left.plan), left.columns)
        else:
            right = ClosedPlan(walk.where([given], right.plan), right.columns)
        outputs = tuple(columns(self.plan))
        if only_facts:
            shows_time = as_of.column is not None and not as_of.uses_end
            times = {column_id(as_of.column): as_of.limit} if shows_time else {}
            return ClosedPlan(walk.above(self.plan, left, right), outputs, times)
        over = has_passed(walk.catalyst, as_of.end, as_of.limit.later(as_of.shift).passed)
        if self.kind == "LeftSemi":
            plan = walk.above(self.plan, left, right)
        elif self.kind == "LeftAnti":
            plan = walk.where([over], walk.above(self.plan, left, right))
        elif self.kind == "ExistenceJoin":
            is_used = outputs[-1]
            plan = walk.where([is_used, over], walk.above(self.plan, left, right), any_of=True)
        elif facts_left:
            plan = self._with_unmatched_versions(left, right, "right", over)
        else:
            plan = self._with_unmatched_versions(left, right, "left", over)
        return ClosedPlan(plan, outputs)

    def _with_unmatched_versions(self, left: ClosedPlan, right: ClosedPlan, side: str, over: Node) -> Node:
        unmatched = (None, over) if side == "right" else (over, None)
        return with_unmatched_rows(self.walk, self.plan, left, right, *unmatched)
