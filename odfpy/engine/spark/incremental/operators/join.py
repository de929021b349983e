"""Joins: with an interval of time between the two sides, by equal keys, or of everything with everything.

Matched rows are emitted at once. An unmatched row of an outer join is emitted when no partner can come any more: where
the partner's time lies within an interval, that is once the watermark has passed it. Without an interval the row is
emitted at once, and retracted when a partner comes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from odfpy.engine.spark.incremental.operators.as_of import as_of_join
from odfpy.engine.spark.incremental.operators.planner import Planner
from odfpy.engine.spark.incremental.properties.comparisons import conjuncts_of, equal_pairs, ordered_pairs
from odfpy.engine.spark.incremental.properties.keys import key_of, key_unless_null, never_null, null_of_nulls
from odfpy.engine.spark.incremental.properties.plan_info import (
    Build,
    InputsAt,
    Key,
    PlanInfo,
    StateRequirement,
    TimeColumn,
    Values,
)
from odfpy.engine.spark.incremental.properties.row_rules import CompletenessRule, RowRules
from odfpy.engine.spark.plan.catalyst import Node, children, column_id, columns, columns_read, expression_name
from odfpy.engine.spark.plan.monotone import shift_of
from odfpy.engine.spark.plan.times import Clock, LeastOf, ShiftedBy

INTERVAL: Final = "interval join"
KEYED: Final = "join"
_LEFT_KEPT: Final = ("LeftOuter", "FullOuter")
_RIGHT_KEPT: Final = ("RightOuter", "FullOuter")
_LEFT_ONLY: Final = ("LeftSemi", "LeftAnti", "ExistenceJoin")
_INNER: Final = ("Inner", "Cross")


@dataclass(slots=True)
class _Interval:
    """The bounds of an interval join: right time minus left time, in microseconds; None where there is no bound.

    Attributes:
        left: the time on the left.
        right: the time on the right.
    """

    left: Node
    right: Node
    least: int | None = None
    greatest: int | None = None


def join(planner: Planner, plan: Node) -> PlanInfo:
    """Return the properties of a join."""
    left, right = (planner.info_of(child) for child in children(plan))
    kind = _kind_of(plan)
    beside = _beside_constants(planner, plan, kind, left, right)
    if beside is not None:
        return beside
    condition = plan.condition()
    conjuncts = list(conjuncts_of(condition.get())) if condition.isDefined() else []
    temporal = as_of_join(planner, plan, kind, left, right, conjuncts)
    if temporal is not None:
        return temporal
    pairs = equal_pairs(conjuncts, left, right)
    interval = _interval(planner, conjuncts, left, right)
    sides = _Sides(planner, plan, kind, left, right, pairs, interval)
    return sides.info_of()


def _kind_of(plan: Node) -> str:
    """Return the join type.

    Spark adds a column name to that of EXISTS beside other conditions; a scalar subquery is outer.

    `LeftSingle` is `LeftOuter` for rows that have at most one partner, and an error for others.
    """
    kind = str(plan.joinType().toString()).partition("(")[0]
    return "LeftOuter" if kind == "LeftSingle" else kind


def _beside_constants(planner: Planner, plan: Node, kind: str, left: PlanInfo, right: PlanInfo) -> PlanInfo | None:
    """Return the plan of a join of rows with constants, which is stateless; None for any other join."""
    stays = left if kind in _LEFT_ONLY else None
    if left.stateless_plan is not None and right.is_constant and kind in (*_INNER, "LeftOuter", *_LEFT_ONLY):
        sides, times = [left.stateless_plan, right.built(None)], left.times
    elif right.stateless_plan is not None and left.is_constant and kind in (*_INNER, "RightOuter"):
        sides, times = [left.built(None), right.stateless_plan], right.times
    else:
        return None
    return PlanInfo(
        tuple(columns(plan)),
        plan.withNewChildren(planner.catalyst.seq(sides)),
        times=times,
        unique=None if stays is None else stays.unique,
        validity={} if stays is None else stays.validity,
    )


class _Sides:
    def __init__(
        self,
        planner: Planner,
        plan: Node,
        kind: str,
        left: PlanInfo,
        right: PlanInfo,
        pairs: list[tuple[Node, Node, bool]],
        interval: _Interval | None,
    ) -> None:
        self._planner = planner
        self._plan = plan
        self._kind = kind
        self._pairs = pairs
        self._interval = interval
        self._left_times = left.times.get(column_id(interval.left)) if interval else None
        self._right_times = right.times.get(column_id(interval.right)) if interval else None
        self._left_due = self._due_left() if kind in (*_LEFT_KEPT, "LeftAnti") else None
        self._right_due = self._due_right() if kind in _RIGHT_KEPT else None
        left_rules, right_rules = self._left_rules(), self._right_rules()
        # Completeness and lateness are decided only at stateful inputs of this join itself, so its sides become such
        # inputs.
        follows_time = any(rules.complete_when or rules.drop_when for rules in (left_rules, right_rules))
        self._left = self._as_stateful_input(left, 0, follows_time, left_rules)
        self._right = self._as_stateful_input(right, 1, follows_time, right_rules)

    def _as_stateful_input(self, side: PlanInfo, at: int, follows_time: bool, rules: RowRules) -> PlanInfo:
        if side.is_constant:
            return side
        side = self._planner.whole(side)
        # Without a key for any of the pairs, every pull would read all rows of both sides.
        if side.stateless_plan is None and (
            follows_time or not any(_key(side, pair[at], pair[2]) for pair in self._pairs)
        ):
            side = self._planner.cut(side)
        if side.stateless_plan is None:
            return side
        return self._planner.stateful_input(side, [pair[at] for pair in self._pairs], rules)

    def _left_rules(self) -> RowRules:
        """Return when left rows are due and may be dropped, and when new ones may have partners that were dropped."""
        interval, times = self._interval, self._left_times
        rules = RowRules(complete_when=_if_known(self._left_due))
        if interval is None or times is None:
            return rules
        drop_when = self._due_left()
        if drop_when is not None and self._kind in _RIGHT_KEPT:
            drop_when = _no_sooner(drop_when, self._due_right(), interval.greatest, less=True)
        late_when = CompletenessRule(interval.left, times.watermark, inclusive=True)
        return replace(rules, drop_when=_if_known(drop_when), late_when=(late_when,))

    def _right_rules(self) -> RowRules:
        """Return the same rules for rows on the right."""
        interval, times = self._interval, self._right_times
        rules = RowRules(complete_when=_if_known(self._right_due))
        if interval is None or times is None:
            return rules
        drop_when = self._due_right()
        if drop_when is not None and self._kind in (*_LEFT_KEPT, *_LEFT_ONLY):
            drop_when = _no_sooner(drop_when, self._due_left(), interval.least)
        late_when = CompletenessRule(interval.right, times.watermark, inclusive=True)
        return replace(rules, drop_when=_if_known(drop_when), late_when=(late_when,))

    def _due_left(self) -> CompletenessRule | None:
        """Return when a row on the left can no longer find a partner."""
        interval, times = self._interval, self._right_times
        if interval is None or interval.greatest is None or times is None:
            return None
        return CompletenessRule(interval.left, ShiftedBy(times.watermark, -interval.greatest), inclusive=True)

    def _due_right(self) -> CompletenessRule | None:
        interval, times = self._interval, self._left_times
        if interval is None or interval.least is None or times is None:
            return None
        return CompletenessRule(interval.right, ShiftedBy(times.watermark, interval.least), inclusive=True)

    def info_of(self) -> PlanInfo:
        """Return the properties of the join of the two sides."""
        left, right = self._left, self._right
        keys = []
        for mine, other, is_null_safe in self._pairs:
            one, two = _key(left, mine, is_null_safe), _key(right, other, is_null_safe)
            if one is not None and two is not None:
                keys.append(self._joined(one, two))
        build: Build = self._build
        return PlanInfo(
            tuple(columns(self._plan)),
            build=build,
            join_product=build if self._is_join_product() else None,
            keys=tuple(keys),
            stateful_inputs=left.stateful_inputs + right.stateful_inputs,
            times=self._times(),
            unique=self._unique(),
            requirements=(*left.requirements, *right.requirements, self._requirement()),
        )

    def _is_join_product(self) -> bool:
        return self._kind in ("Inner", "Cross") and self._left.is_join_product and self._right.is_join_product

    def _joined(self, left: Key, right: Key) -> Key:
        """Return a key of both sides as the result of the join shows it."""
        if self._kind in _RIGHT_KEPT:
            left = self._or_made(left)
        if self._kind in _LEFT_ONLY:
            right = Key(right.at)
        elif self._kind in _LEFT_KEPT:
            right = self._or_made(right)
        return Key(
            {**left.at, **right.at}, left.outputs | right.outputs, left.nullable_outputs | right.nullable_outputs
        )

    def _or_made(self, key: Key) -> Key:
        """Return the key of a side whose columns are NULL in the unmatched rows of the result."""
        return Key(key.at, Values(), null_of_nulls(key.outputs) | key.nullable_outputs)

    def _build(self, inputs_at: InputsAt) -> Node:
        catalyst, plan = self._planner.catalyst, self._plan
        left, right = self._left.built(inputs_at), self._right.built(inputs_at)
        if self._left_due is None and self._right_due is None:
            return plan.withNewChildren(catalyst.seq([left, right]))
        if self._kind == "LeftAnti":
            joined = plan.withNewChildren(catalyst.seq([left, right]))
            return catalyst.filter(_completeness(self._left_due, inputs_at.clock), joined)
        # No column of a side tells whether there was a partner: a partner may have NULL in all of them. Hence the
        # marks.
        marks = [catalyst.alias(catalyst.boolean(True), f"__odf_{side}") for side in ("left", "right")]
        marked = [
            catalyst.project([*side.columns, mark], built)
            for side, mark, built in zip((self._left, self._right), marks, (left, right), strict=True)
        ]
        joined = plan.withNewChildren(catalyst.seq(marked))
        for complete_when, mark in ((self._left_due, marks[1]), (self._right_due, marks[0])):
            if complete_when is not None:
                has_partner = catalyst.expression("IsNotNull", mark.toAttribute())
                absent = catalyst.expression("IsNull", marks[0 if mark is marks[1] else 1].toAttribute())
                kept = catalyst.expression(
                    "Or", has_partner, catalyst.expression("Or", absent, complete_when.condition(inputs_at.clock))
                )
                joined = catalyst.filter(kept, joined)
        return catalyst.project(self._columns(), joined)

    def _columns(self) -> list[Node]:
        return columns(self._plan)

    def _times(self) -> dict[int, TimeColumn]:
        """Return the time columns that keep a watermark: their old times cannot come again with later partners."""
        if self._kind in _LEFT_ONLY and self._interval is None:
            return {}
        interval, left, right = self._interval, self._left_times, self._right_times
        if interval is None or left is None or right is None:
            return {}
        found = {}
        if interval.greatest is not None:
            mine = LeastOf((left.watermark, ShiftedBy(right.watermark, -interval.greatest)))
            found[column_id(interval.left)] = TimeColumn(mine)
        if interval.least is not None:
            other = LeastOf((right.watermark, ShiftedBy(left.watermark, interval.least)))
            found[column_id(interval.right)] = TimeColumn(other)
        if self._kind in _RIGHT_KEPT:
            found.pop(column_id(interval.left), None)
        if self._kind in (*_LEFT_KEPT, *_LEFT_ONLY):
            found.pop(column_id(interval.right), None)
        return found

    def _unique(self) -> frozenset[int] | None:
        left, right = self._left.unique, self._right.unique
        if self._kind in _LEFT_ONLY:
            return left
        equal_left, equal_right = (
            {column_id(pair[at]) for pair in self._pairs if expression_name(pair[at]) == "AttributeReference"}
            for at in (0, 1)
        )
        if right is not None and right <= equal_right and self._kind in ("Inner", "LeftOuter"):
            return left  # each row has at most one partner
        if left is not None and left <= equal_left and self._kind in ("Inner", "RightOuter"):
            return right
        if left is None or right is None:
            return None
        # In a full join, an unmatched row of NULLs on the left and one on the right would look the same.
        is_apart = self._kind != "FullOuter" or never_null(self._left) & left or never_null(self._right) & right
        return left | right if is_apart else None

    def _requirement(self) -> StateRequirement:
        interval = self._interval
        if interval is not None and (interval.least is not None or interval.greatest is not None):
            state = "rows whose interval the watermark has not passed"
            return StateRequirement(
                INTERVAL, f"{interval.left.name()} and {interval.right.name()} lie within an interval", state
            )
        if self._pairs:
            by = ", ".join(f"{a.sql()} = {b.sql()}" for a, b, _ in self._pairs)
            return StateRequirement(KEYED, f"joined by {by}", "the rows of both sides")
        return StateRequirement("recompute", "every row is compared with every row", "none; all rows are read again")


def _key(side: PlanInfo, expression: Node, is_null_safe: bool) -> Key | None:
    """Return the key of a side by which its rows find partners; NULLs count only if they match each other."""
    return key_of(side, expression) if is_null_safe else key_unless_null(side, expression)


def _if_known(rule: CompletenessRule | None) -> tuple[CompletenessRule, ...]:
    return () if rule is None else (rule,)


def _no_sooner(
    drop_when: CompletenessRule, other: CompletenessRule | None, shift: int | None, *, less: bool = False
) -> CompletenessRule | None:
    """Delay the dropping of rows until no row of the other side needs them to know that it has a partner.

    Args:
        drop_when: when rows can have no further partners.
        other: when rows of the other side can have no further partners; None if they never wait.
        shift: by how much a row is at least later than its partners, or earlier; in microseconds.
        less: whether it is earlier.
    """
    if other is None or shift is None:
        return None
    is_complete = ShiftedBy(other.limit, -shift if less else shift)
    return CompletenessRule(drop_when.value, LeastOf((drop_when.limit, is_complete)), drop_when.inclusive)


def _completeness(complete_when: CompletenessRule | None, clock: Clock) -> Node:
    return clock.catalyst.boolean(True) if complete_when is None else complete_when.condition(clock)


def _interval(planner: Planner, conjuncts: list[Node], left: PlanInfo, right: PlanInfo) -> _Interval | None:
    """Return the bounds that the join condition sets on right time minus left time, for one pair of time columns."""
    found: _Interval | None = None
    for conjunct in conjuncts:
        for smaller, greater, _ in ordered_pairs(conjunct):
            bound = _bound(planner, smaller, greater, left, right)
            if bound is None:
                continue
            if found is None:
                found = _Interval(bound.left, bound.right)
            if (column_id(found.left), column_id(found.right)) != (column_id(bound.left), column_id(bound.right)):
                continue
            if bound.least is not None:
                found.least = bound.least if found.least is None else max(found.least, bound.least)
            if bound.greatest is not None:
                found.greatest = bound.greatest if found.greatest is None else min(found.greatest, bound.greatest)
    return found


def _bound(planner: Planner, smaller: Node, greater: Node, left: PlanInfo, right: PlanInfo) -> _Interval | None:
    read = columns_read(smaller), columns_read(greater)
    if len(read[0]) != 1 or len(read[1]) != 1:
        return None
    (a,), (b,) = read
    from_left = _has_time(left, a) and _has_time(right, b)
    if not from_left and not (_has_time(right, a) and _has_time(left, b)):
        return None
    shifts = shift_of(planner.catalyst, smaller, a), shift_of(planner.catalyst, greater, b)
    if shifts[0] is None or shifts[1] is None:
        return None
    difference = shifts[0] - shifts[1]  # smaller time + its shift <= greater time + its shift
    return _Interval(a, b, least=difference) if from_left else _Interval(b, a, greatest=-difference)


def _has_time(side: PlanInfo, column: Node) -> bool:
    time = side.times.get(column_id(column))
    return time is not None and not time.windows
