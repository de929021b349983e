"""Joins with a temporal table as of the time of a row.

    FROM facts f JOIN rates r ON f.cur = r.cur AND f.event_time >= r.valid_from AND f.event_time < r.valid_to

A row of the other side, here called a fact, waits until the watermarks of both sides have passed its time: then the
versions of that time are known, and the fact is emitted, once. Later it is corrected if it changes itself, or if a
version of its time does: no other facts are processed. Any condition that compares `valid_from` with one time of the
fact makes such a join (with `BETWEEN` and with further conditions, too), in ON or in WHERE, and of any join type;
without an equality, each fact is compared with all versions of its time. All other conditions make ordinary joins.

Joins that are outer on the side of the versions (including EXISTS and NOT EXISTS of facts) report which versions no
fact has looked up. A version without facts is emitted when the watermarks of both sides have passed its end. In such
joins, facts matter as long as a version of theirs lasts: they are read again, as in a join by key.

State consists of facts that wait, and of versions that end after all facts that have been emitted: no other version can
be in force for a fact still to come, unless the fact is late; then the history of the inputs is read. A query that
shows `valid_to`, or computes with it, has results that change when a version ends, however old the fact is: the
watermark does not pass through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from odfpy.engine.spark.incremental.operators.planner import Planner
from odfpy.engine.spark.incremental.properties.comparisons import equal_pairs, ordered_pairs
from odfpy.engine.spark.incremental.properties.keys import never_null
from odfpy.engine.spark.incremental.properties.plan_info import (
    InputsAt,
    Key,
    Lookup,
    PlanInfo,
    StateRequirement,
    TimeColumn,
    Validity,
    Values,
)
from odfpy.engine.spark.incremental.properties.row_rules import CompletenessRule, RowRules
from odfpy.engine.spark.plan.catalyst import Node, children, column_id, columns, columns_read, expression_name, subtree
from odfpy.engine.spark.plan.monotone import never_decreases, shift_of
from odfpy.engine.spark.plan.times import MILLISECOND, DerivedWatermark, FunctionOf, LeastOf, ShiftedBy

TEMPORAL: Final = "temporal-table join"
_OF_FACTS_ON_THE_LEFT: Final = ("Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti", "ExistenceJoin")
_OF_FACTS_ON_THE_RIGHT: Final = ("Inner", "Cross", "RightOuter")
_ONLY_WITH_VERSION: Final = ("Inner", "Cross", "LeftSemi")
_ONE_SIDE: Final = ("LeftSemi", "LeftAnti", "ExistenceJoin")


@dataclass(frozen=True, slots=True)
class _FactTime:
    """The time of a fact for which a version is looked up.

    Attributes:
        value: the expression that is compared, without casts that do not change it.
        watermark: facts with a value at or before it do not come later.
        column: the column that it is, up to a shift; None for other functions of a column.
        shift: how much later the value is than the column, in microseconds.
    """

    value: Node
    watermark: DerivedWatermark
    column: Node | None
    shift: int = 0


@dataclass(frozen=True, slots=True)
class _Bounds:
    """The comparison of the time of a fact with the validity of a version.

    Attributes:
        fact_time: the time of the fact.
        begin: column with the beginning.
        end: column with the end, if it is compared with the same time.
        is_exact: whether the condition is that the version is valid, end not included, and says no more of it.
        uses_end: whether the query makes another use of the end.
    """

    fact_time: _FactTime
    begin: Node
    end: Node | None
    is_exact: bool
    uses_end: bool


def as_of_join(
    planner: Planner, plan: Node, kind: str, left: PlanInfo, right: PlanInfo, conjuncts: Sequence[Node]
) -> PlanInfo | None:
    """Return the properties of a join with a temporal table, or None if it is another join.

    Args:
        planner: the planner.
        plan: the join.
        kind: type of the join, as Spark names it.
        left: properties of the left side.
        right: properties of the right side.
        conjuncts: the conjuncts of the condition.
    """
    sides = ((left, right, _OF_FACTS_ON_THE_LEFT), (right, left, _OF_FACTS_ON_THE_RIGHT))
    for facts, versions, of_facts in sides:
        if not versions.validity or versions.stateless_plan is None:
            continue
        bounds = _bounds(planner, conjuncts, facts, versions)
        if bounds is None or (kind not in of_facts and bounds.end is None):
            continue
        equal = [(mine, other) for mine, other, _ in equal_pairs(conjuncts, left, right)]
        pairs = equal if facts is left else [(mine, other) for other, mine in equal]
        found = _AsOf(planner, plan, kind, planner.cut(facts), versions, bounds, pairs, facts is left)
        return found.joined() if kind in of_facts else found.joined_with_unused()
    return None


@dataclass(frozen=True, slots=True)
class _AsOf:
    """A join of facts with versions, as the plan has it.

    Attributes:
        facts_are_left: whether the facts are on the left.
    """

    planner: Planner
    plan: Node
    kind: str
    facts: PlanInfo
    versions: PlanInfo
    bounds: _Bounds
    pairs: Sequence[tuple[Node, Node]]
    facts_are_left: bool

    @property
    def _limit(self) -> DerivedWatermark:
        """Return the watermark up to which facts have been emitted."""
        fact_time, known = self.bounds.fact_time, self.versions.validity[column_id(self.bounds.begin)].watermark
        shifted = fact_time.column is not None and fact_time.shift
        return LeastOf((fact_time.watermark, ShiftedBy(known, -fact_time.shift) if shifted else known))

    @property
    def _past(self) -> DerivedWatermark:
        """Return the watermark up to which ended versions are out of reach for facts that wait or are on time."""
        shift = self.bounds.fact_time.shift
        return ShiftedBy(self._limit, shift) if shift else self._limit

    @property
    def _ended(self) -> tuple[CompletenessRule, ...]:
        end = self.bounds.end
        return () if end is None else (CompletenessRule(end, self._past, inclusive=True),)

    def joined(self) -> PlanInfo:
        """Return the properties of the join if each of its rows comes from a fact."""
        planner, bounds, fact_time, limit = self.planner, self.bounds, self.bounds.fact_time, self._limit
        given = CompletenessRule(fact_time.value, limit, inclusive=True)
        keys = [*(fact for fact, _ in self.pairs), fact_time.value]
        mine = planner.stateful_input(
            self.facts,
            keys,
            RowRules(complete_when=(given,), only_complete=True, drop_when=(given,), late_when=(given,)),
        )
        valid = None if bounds.end is None or not bounds.is_exact or bounds.uses_end else (bounds.begin, bounds.end)
        condition, is_outer = self.plan.condition().get(), self.kind not in _ONLY_WITH_VERSION
        looked_up = Lookup(mine.stateful_inputs[0].number, condition, valid, bounds.uses_end, is_outer)
        began = (CompletenessRule(bounds.begin, self._past, inclusive=True),)
        keys = [version for _, version in self.pairs]
        others = planner.stateful_input(
            self.versions, keys, RowRules(drop_when=self._ended, late_when=began), looked_up=looked_up
        )
        shows_time = fact_time.column is not None and not bounds.uses_end
        return PlanInfo(
            tuple(columns(self.plan)),
            build=lambda at: self._built(at, mine, others),
            keys=_keys(self.kind, mine, others, fact_time, self.pairs),
            stateful_inputs=(*mine.stateful_inputs, *others.stateful_inputs),
            times={column_id(fact_time.column): TimeColumn(limit)} if shows_time else {},
            unique=_unique(self.kind, self.facts, self.versions, bounds, self.pairs),
            requirements=(
                *self.facts.requirements,
                *self.versions.requirements,
                _requirement(bounds, fact_time, self.pairs),
            ),
        )

    def joined_with_unused(self) -> PlanInfo:
        """Return the properties of the join if it also reports versions that no fact looks up."""
        planner, (ended,) = self.planner, self._ended
        given = CompletenessRule(self.bounds.fact_time.value, self._limit, inclusive=True)
        mine = planner.stateful_input(
            self.facts,
            [fact for fact, _ in self.pairs],
            RowRules(complete_when=(given,), only_complete=True),
        )
        others = planner.stateful_input(
            self.versions, [version for _, version in self.pairs], RowRules(complete_when=(ended,))
        )
        requirement = _requirement(self.bounds, self.bounds.fact_time, self.pairs)
        return PlanInfo(
            tuple(columns(self.plan)),
            build=lambda at: self._built_with_unused(at, mine, others, ended),
            keys=tuple(self._key_of_versions(at, mine, others) for at in range(len(self.pairs))),
            stateful_inputs=(*mine.stateful_inputs, *others.stateful_inputs),
            unique=self._unique_with_unused(),
            requirements=(
                *self.facts.requirements,
                *self.versions.requirements,
                replace(requirement, state="the rows of both sides"),
            ),
        )

    def _key_of_versions(self, at: int, mine: PlanInfo, others: PlanInfo) -> Key:
        shown = [] if self.kind == "FullOuter" else [self.pairs[at][1]]
        return Key({side.stateful_inputs[0].number: at for side in (mine, others)}, Values.of(shown))

    def _unique_with_unused(self) -> frozenset[int] | None:
        facts, versions = self.facts.unique, self.versions.unique
        if self.kind in _ONE_SIDE:
            return versions
        if facts is None or versions is None:
            return None
        # As in other full joins, an unmatched fact of NULLs and an unmatched version of NULLs would look the same.
        is_apart = self.kind != "FullOuter" or never_null(self.facts) & facts or never_null(self.versions) & versions
        return facts | versions if is_apart else None

    def _built(self, at: InputsAt, mine: PlanInfo, others: PlanInfo) -> Node:
        return self._over(mine.built(at), others.built(at))

    def _over(self, facts: Node, versions: Node) -> Node:
        sides = (facts, versions) if self.facts_are_left else (versions, facts)
        return self.plan.withNewChildren(self.planner.catalyst.seq(sides))

    def _built_with_unused(self, at: InputsAt, mine: PlanInfo, others: PlanInfo, ended: CompletenessRule) -> Node:
        catalyst, facts, versions = self.planner.catalyst, mine.built(at), others.built(at)
        if self.kind == "LeftSemi":
            return self._over(facts, versions)
        if self.kind == "LeftAnti":
            return catalyst.filter(ended.condition(at.clock), self._over(facts, versions))
        if self.kind == "ExistenceJoin":
            is_used = columns(self.plan)[-1]
            either = catalyst.expression("Or", is_used, ended.condition(at.clock))
            return catalyst.filter(either, self._over(facts, versions))
        mark = catalyst.alias(catalyst.boolean(True), "__odf_fact")
        joined = self._over(catalyst.project([*mine.columns, mark], facts), versions)
        is_used = catalyst.expression("IsNotNull", mark.toAttribute())
        kept = catalyst.filter(catalyst.expression("Or", is_used, ended.condition(at.clock)), joined)
        return catalyst.project(columns(self.plan), kept)


def _keys(
    kind: str, facts: PlanInfo, versions: PlanInfo, fact_time: _FactTime, pairs: Sequence[tuple[Node, Node]]
) -> tuple[Key, ...]:
    """Return the keys of the result: the equal columns, and the time of the fact, which versions do not have."""
    (mine,), (other,) = facts.stateful_inputs, versions.stateful_inputs
    found = []
    for at, pair in enumerate(pairs):
        shown = pair if kind in ("Inner", "Cross") else pair[:1]
        found.append(Key({mine.number: at, other.number: at}, Values.of(shown)))
    return (*found, Key({mine.number: len(pairs)}, Values.of([fact_time.value])))


def _unique(
    kind: str, facts: PlanInfo, versions: PlanInfo, bounds: _Bounds, pairs: Sequence[tuple[Node, Node]]
) -> frozenset[int] | None:
    """Return the columns that identify a result row: those of the fact, if only one version can be in force for it."""
    if kind in _ONE_SIDE:
        return facts.unique
    if facts.unique is None or versions.unique is None:
        return None
    equal = {column_id(version) for _, version in pairs if expression_name(version) == "AttributeReference"}
    if bounds.is_exact and versions.unique - {column_id(bounds.begin)} <= equal:
        return facts.unique
    return facts.unique | versions.unique if kind in ("Inner", "Cross") else None


def _requirement(bounds: _Bounds, fact_time: _FactTime, pairs: Sequence[tuple[Node, Node]]) -> StateRequirement:
    by = " and ".join(f"{fact.sql()} = {version.sql()}" for fact, version in pairs)
    reason = f"joined as of {fact_time.value.sql()}" + (f" by {by}" if by else "")
    ending = "versions that end after all rows that were emitted" if bounds.end is not None else "all versions"
    return StateRequirement(TEMPORAL, reason, f"rows that the watermarks have not passed, and {ending}")


# --- What a condition says -------------------------------------------------------------------------------------------


def _bounds(planner: Planner, conjuncts: Sequence[Node], facts: PlanInfo, versions: PlanInfo) -> _Bounds | None:
    ours = {column_id(column) for column in facts.columns}
    compared: list[tuple[Node, Node, bool, bool]] = []  # column of validity, time, is it the end, is it strict
    for conjunct in conjuncts:
        for smaller, greater, strict in ordered_pairs(conjunct):
            for column, time, is_end in ((smaller, greater, False), (greater, smaller, True)):
                known = _validity(column, versions)
                read = {column_id(one) for one in columns_read(time)}
                if known is not None and known.is_end == is_end and len(read) == 1 and read <= ours:
                    compared.append((column, time, is_end, strict))
    begin = next((one for one in compared if not one[2]), None)
    fact_time = None if begin is None else _fact_time(planner, begin[1], facts)
    if begin is None or fact_time is None:
        return None
    end = next((one for one in compared if one[2] and one[1].semanticEquals(begin[1])), None)
    mentions = sum(
        1
        for conjunct in conjuncts
        for name, node in subtree(conjunct)
        if name == "AttributeReference" and column_id(node) in versions.validity
    )
    ends = [key for key, valid in versions.validity.items() if valid.is_end]
    is_exact = end is not None and mentions == 2 and not begin[3] and end[3]
    return _Bounds(
        fact_time,
        begin[0],
        None if end is None else end[0],
        is_exact,
        any(_shows(planner, key, compared) for key in ends),
    )


def _shows(planner: Planner, end: int, compared: Sequence[tuple[Node, Node, bool, bool]]) -> bool:
    """Return whether the query uses the end of versions for anything but the comparison in this join."""
    here = sum(1 for column, _, _, _ in compared if column_id(column) == end)
    return end in planner.used.used or planner.used.compared.get(end, 0) != here


def _validity(column: Node, versions: PlanInfo) -> Validity | None:
    return versions.validity.get(column_id(column)) if expression_name(column) == "AttributeReference" else None


def _fact_time(planner: Planner, expression: Node, facts: PlanInfo) -> _FactTime | None:
    """Return the time of a fact, if it has a watermark."""
    value = expression
    while expression_name(value) == "Cast" and children(value)[0].dataType().typeName() == "date":
        (value,) = children(value)  # a date is compared as its midnight
    (read,) = columns_read(value)
    time = facts.times.get(column_id(read))
    if time is None or time.windows:
        return None
    if expression_name(value) == "AttributeReference":
        return _FactTime(value, time.watermark, value)
    shift = shift_of(planner.catalyst, value, read)
    if shift is not None:
        return _FactTime(read, time.watermark, read, shift)
    if never_decreases(planner.catalyst, value):
        return _FactTime(value, ShiftedBy(FunctionOf(value, read, time.watermark), -MILLISECOND), None)
    return None
