"""Joins: interval joins (bounded distance in time), equi-joins by key, and nested-loop joins without a key.

Matches are emitted at once. An unmatched row of an outer interval join is emitted when the watermark has passed its
interval, since no match can come any more. Without an interval, an unmatched row is emitted at once, and retracted when
a match comes.
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
_LEFT_PRESERVED: Final = ("LeftOuter", "FullOuter")
_RIGHT_PRESERVED: Final = ("RightOuter", "FullOuter")
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
    with_constants = _join_with_constants(planner, plan, kind, left, right)
    if with_constants is not None:
        return with_constants
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
    """Return the join type as Spark names it, without the column that Spark adds to `ExistenceJoin`.

    `LeftSingle`, the join with a scalar subquery, is `LeftOuter` for rows with at most one match, an error for others.
    """
    kind = str(plan.joinType().toString()).partition("(")[0]
    return "LeftOuter" if kind == "LeftSingle" else kind


def _join_with_constants(planner: Planner, plan: Node, kind: str, left: PlanInfo, right: PlanInfo) -> PlanInfo | None:
    """Return the properties of a join of a stateless plan with constants, which is stateless; None for other joins."""
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
    """The two sides of a join, as stateful inputs with the rules for when their rows are complete and dropped."""

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
        """Turn the sides into stateful inputs.

        Args:
            planner: the planner.
            plan: the join.
            kind: type of the join, as Spark names it.
            left: properties of the left side.
            right: properties of the right side.
            pairs: left and right expressions that have to be equal, each with whether NULL equals NULL.
            interval: the bounds on the distance in time, None for none.
        """
        self._planner = planner
        self._plan = plan
        self._kind = kind
        self._pairs = pairs
        self._interval = interval
        self._left_times = left.times.get(column_id(interval.left)) if interval else None
        self._right_times = right.times.get(column_id(interval.right)) if interval else None
        self._left_due = self._due_left() if kind in (*_LEFT_PRESERVED, "LeftAnti") else None
        self._right_due = self._due_right() if kind in _RIGHT_PRESERVED else None
        left_rules, right_rules = self._left_rules(), self._right_rules()
        # Completeness and lateness are only decided at stateful inputs of the join itself.
        follows_time = any(rules.complete_when or rules.drop_when for rules in (left_rules, right_rules))
        self._left = self._as_stateful_input(left, 0, follows_time, left_rules)
        self._right = self._as_stateful_input(right, 1, follows_time, right_rules)

    def _as_stateful_input(self, side: PlanInfo, at: int, follows_time: bool, rules: RowRules) -> PlanInfo:
        """Return a side as a stateful input of the join, unless it already has keys of its own that the join can use.

        Args:
            side: properties of the side.
            at: its position, 0 for left, 1 for right.
            follows_time: whether a side has rules for completeness or lateness.
            rules: the rules for its rows.
        """
        if side.is_constant:
            return side
        side = self._planner.recomputable(side)
        # Without a key for any of the pairs, every pull would read all rows of both sides.
        if side.stateless_plan is None and (
            follows_time or not any(_key(side, pair[at], pair[2]) for pair in self._pairs)
        ):
            side = self._planner.as_fragment(side)
        if side.stateless_plan is None:
            return side
        return self._planner.stateful_input(side, [pair[at] for pair in self._pairs], rules)

    def _left_rules(self) -> RowRules:
        """Return when rows on the left are emitted unmatched, when they are dropped, and when new ones are late."""
        interval, times = self._interval, self._left_times
        rules = RowRules(complete_when=_as_rules(self._left_due))
        if interval is None or times is None:
            return rules
        drop_when = self._due_left()
        if drop_when is not None and self._kind in _RIGHT_PRESERVED:
            drop_when = _delayed(drop_when, self._due_right(), interval.greatest, less=True)
        late_when = CompletenessRule(interval.left, times.watermark, inclusive=True)
        return replace(rules, drop_when=_as_rules(drop_when), late_when=(late_when,))

    def _right_rules(self) -> RowRules:
        """Return the same rules for rows on the right."""
        interval, times = self._interval, self._right_times
        rules = RowRules(complete_when=_as_rules(self._right_due))
        if interval is None or times is None:
            return rules
        drop_when = self._due_right()
        if drop_when is not None and self._kind in (*_LEFT_PRESERVED, *_LEFT_ONLY):
            drop_when = _delayed(drop_when, self._due_left(), interval.least)
        late_when = CompletenessRule(interval.right, times.watermark, inclusive=True)
        return replace(rules, drop_when=_as_rules(drop_when), late_when=(late_when,))

    def _due_left(self) -> CompletenessRule | None:
        """Return when a row on the left can have no further matches; None if it always can."""
        interval, times = self._interval, self._right_times
        if interval is None or interval.greatest is None or times is None:
            return None
        return CompletenessRule(interval.left, ShiftedBy(times.watermark, -interval.greatest), inclusive=True)

    def _due_right(self) -> CompletenessRule | None:
        """Return when a row on the right can have no further matches; None if it always can."""
        interval, times = self._interval, self._left_times
        if interval is None or interval.least is None or times is None:
            return None
        return CompletenessRule(interval.right, ShiftedBy(times.watermark, interval.least), inclusive=True)

    def info_of(self) -> PlanInfo:
        """Return the properties of the join of the two sides."""
        left, right = self._left, self._right
        keys = []
        for left_value, right_value, is_null_safe in self._pairs:
            left_key, right_key = _key(left, left_value, is_null_safe), _key(right, right_value, is_null_safe)
            if left_key is not None and right_key is not None:
                keys.append(self._joined_key(left_key, right_key))
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

    def _joined_key(self, left: Key, right: Key) -> Key:
        """Return a key of both sides as the result of the join shows it."""
        if self._kind in _RIGHT_PRESERVED:
            left = self._nullable(left)
        if self._kind in _LEFT_ONLY:
            right = Key(right.at)
        elif self._kind in _LEFT_PRESERVED:
            right = self._nullable(right)
        return Key(
            {**left.at, **right.at}, left.outputs | right.outputs, left.nullable_outputs | right.nullable_outputs
        )

    def _nullable(self, key: Key) -> Key:
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
        # Marks tell whether a side matched: its own columns do not, since all of them may be NULL.
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
                is_emitted = catalyst.expression(
                    "Or", has_partner, catalyst.expression("Or", absent, complete_when.condition(inputs_at.clock))
                )
                joined = catalyst.filter(is_emitted, joined)
        return catalyst.project(self._columns(), joined)

    def _columns(self) -> list[Node]:
        return columns(self._plan)

    def _times(self) -> dict[int, TimeColumn]:
        """Return the time columns that keep a watermark: later matches cannot bring their old times again."""
        if self._kind in _LEFT_ONLY and self._interval is None:
            return {}
        interval, left, right = self._interval, self._left_times, self._right_times
        if interval is None or left is None or right is None:
            return {}
        times = {}
        if interval.greatest is not None:
            left_watermark = LeastOf((left.watermark, ShiftedBy(right.watermark, -interval.greatest)))
            times[column_id(interval.left)] = TimeColumn(left_watermark)
        if interval.least is not None:
            right_watermark = LeastOf((right.watermark, ShiftedBy(left.watermark, interval.least)))
            times[column_id(interval.right)] = TimeColumn(right_watermark)
        if self._kind in _RIGHT_PRESERVED:
            times.pop(column_id(interval.left), None)
        if self._kind in (*_LEFT_PRESERVED, *_LEFT_ONLY):
            times.pop(column_id(interval.right), None)
        return times

    def _unique(self) -> frozenset[int] | None:
        left, right = self._left.unique, self._right.unique
        if self._kind in _LEFT_ONLY:
            return left
        equal_left, equal_right = (
            {column_id(pair[at]) for pair in self._pairs if expression_name(pair[at]) == "AttributeReference"}
            for at in (0, 1)
        )
        if right is not None and right <= equal_right and self._kind in ("Inner", "LeftOuter"):
            return left  # each row has at most one match
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
    """Return the key of a side by which its rows are matched; NULLs count only if they match each other."""
    return key_of(side, expression) if is_null_safe else key_unless_null(side, expression)


def _as_rules(rule: CompletenessRule | None) -> tuple[CompletenessRule, ...]:
    return () if rule is None else (rule,)


def _delayed(
    drop_when: CompletenessRule, other: CompletenessRule | None, shift: int | None, *, less: bool = False
) -> CompletenessRule | None:
    """Delay the dropping of rows as long as waiting rows of the other side may have matched them.

    Args:
        drop_when: when rows can have no further matches.
        other: when rows of the other side can have no further matches; None if they never wait.
        shift: the least time by which a row is later than its matches, or earlier; in microseconds.
        less: whether it is earlier.
    """
    if other is None or shift is None:
        return None
    is_complete = ShiftedBy(other.limit, -shift if less else shift)
    return CompletenessRule(drop_when.value, LeastOf((drop_when.limit, is_complete)), drop_when.inclusive)


def _completeness(complete_when: CompletenessRule | None, clock: Clock) -> Node:
    """Return the condition that a row is complete; TRUE without a rule."""
    return clock.catalyst.boolean(True) if complete_when is None else complete_when.condition(clock)


def _interval(planner: Planner, conjuncts: list[Node], left: PlanInfo, right: PlanInfo) -> _Interval | None:
    """Return the bounds that the join condition sets on right time minus left time, for one pair of time columns."""
    interval: _Interval | None = None
    for conjunct in conjuncts:
        for smaller, greater, _ in ordered_pairs(conjunct):
            bound = _bound(planner, smaller, greater, left, right)
            if bound is None:
                continue
            if interval is None:
                interval = _Interval(bound.left, bound.right)
            if (column_id(interval.left), column_id(interval.right)) != (column_id(bound.left), column_id(bound.right)):
                continue
            if bound.least is not None:
                interval.least = bound.least if interval.least is None else max(interval.least, bound.least)
            if bound.greatest is not None:
                interval.greatest = (
                    bound.greatest if interval.greatest is None else min(interval.greatest, bound.greatest)
                )
    return interval


def _bound(planner: Planner, smaller: Node, greater: Node, left: PlanInfo, right: PlanInfo) -> _Interval | None:
    """Return the bound that `smaller <= greater` sets, if it compares a time of each side; otherwise None."""
    read = columns_read(smaller), columns_read(greater)
    if len(read[0]) != 1 or len(read[1]) != 1:
        return None
    (earlier,), (later,) = read
    left_is_earlier = _has_time(left, earlier) and _has_time(right, later)
    if not left_is_earlier and not (_has_time(right, earlier) and _has_time(left, later)):
        return None
    shifts = shift_of(planner.catalyst, smaller, earlier), shift_of(planner.catalyst, greater, later)
    if shifts[0] is None or shifts[1] is None:
        return None
    least = shifts[0] - shifts[1]  # earlier + its shift <= later + its shift, so this much lies between them
    return _Interval(earlier, later, least=least) if left_is_earlier else _Interval(later, earlier, greatest=-least)


def _has_time(side: PlanInfo, column: Node) -> bool:
    time = side.times.get(column_id(column))
    return time is not None and not time.windows
