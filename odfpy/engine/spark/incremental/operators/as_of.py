"""Joins with a temporal table as of the time of a row.

    FROM facts f JOIN rates r ON f.cur = r.cur AND f.event_time >= r.valid_from AND f.event_time < r.valid_to

This is Flink's event-time temporal join. A row of the other side, here called a fact, waits until the watermarks of
both sides have passed its time. By then the versions of that time are known, and the fact is emitted once. It is
corrected later if the fact or a version of its time changes; no other facts are processed.

Any condition that compares `valid_from` with one time of the fact makes such a join: in ON or WHERE, with BETWEEN, with
further conditions, and for any join type. Without an equality, each fact is compared with all versions of its time. All
other conditions make ordinary joins.

Joins that are outer on the side of the versions (including EXISTS and NOT EXISTS of facts) also report versions that no
fact has looked up. Such a version is emitted when the watermarks of both sides have passed its end. In these joins,
facts matter as long as one of their versions lasts: they are read again, as in a join by key.

The state consists of waiting facts, and of versions that end after all facts that have been emitted. A fact that comes
on time needs no other version; for a late fact, the history of the inputs is read. If a query shows `valid_to` or
computes with it, its results change when a version ends, however old the fact is. So the watermark does not pass
through such a join.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

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
        value: the expression that is compared, without casts of dates to timestamps.
        watermark: no facts with a value at or before it come later.
        column: the column that the value is, plus or minus a constant; None for other functions of a column.
        shift: that constant, the value minus the column, in microseconds.
    """

    value: Node
    watermark: DerivedWatermark
    column: Node | None
    shift: int = 0


@dataclass(frozen=True, slots=True)
class _TimeComparison:
    """The comparison of the time of a fact with the validity of a version.

    Attributes:
        fact_time: the time of the fact.
        begin: the column `valid_from`.
        end: the column `valid_to`, if it is compared with the same time.
        is_exact: whether the condition is `begin <= time < end`, and mentions neither column elsewhere.
        uses_end: whether the query uses the end for anything else.
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
        comparison = _time_comparison(planner, conjuncts, facts, versions)
        if comparison is None or (kind not in of_facts and comparison.end is None):
            continue
        equal = [(left_value, right_value) for left_value, right_value, _ in equal_pairs(conjuncts, left, right)]
        pairs = equal if facts is left else [(fact, version) for version, fact in equal]
        join = _AsOf(planner, plan, kind, planner.as_fragment(facts), versions, comparison, pairs, facts is left)
        return join.info() if kind in of_facts else join.info_with_unused_versions()
    return None


@dataclass(frozen=True, slots=True)
class _AsOf:
    """A join of facts with versions.

    Attributes:
        planner: the planner.
        plan: the join.
        kind: type of the join, as Spark names it.
        facts: properties of the side with the facts; stateless.
        versions: properties of the temporal table.
        comparison: the comparison of the fact's time with the validity.
        pairs: expressions that have to be equal, each of a fact and of a version.
        facts_are_left: whether the facts are on the left.
    """

    planner: Planner
    plan: Node
    kind: str
    facts: PlanInfo
    versions: PlanInfo
    comparison: _TimeComparison
    pairs: Sequence[tuple[Node, Node]]
    facts_are_left: bool

    @property
    def _limit(self) -> DerivedWatermark:
        """Return the watermark up to which facts have been emitted."""
        fact_time = self.comparison.fact_time
        watermark = self.versions.validity[column_id(self.comparison.begin)].watermark
        if fact_time.column is not None and fact_time.shift:
            watermark = ShiftedBy(watermark, -fact_time.shift)
        return LeastOf((fact_time.watermark, watermark))

    @property
    def _past(self) -> DerivedWatermark:
        """Return the watermark up to which ended versions are out of reach for facts that wait or are on time."""
        shift = self.comparison.fact_time.shift
        return ShiftedBy(self._limit, shift) if shift else self._limit

    @property
    def _version_ended(self) -> tuple[CompletenessRule, ...]:
        """Return the rule for when a version has ended for all facts to come; none if its end is not compared."""
        end = self.comparison.end
        return () if end is None else (CompletenessRule(end, self._past, inclusive=True),)

    def info(self) -> PlanInfo:
        """Return the properties of the join if each of its rows comes from a fact."""
        planner, comparison, fact_time, limit = self.planner, self.comparison, self.comparison.fact_time, self._limit
        fact_complete = CompletenessRule(fact_time.value, limit, inclusive=True)
        keys = [*(fact for fact, _ in self.pairs), fact_time.value]
        fact_input = planner.stateful_input(
            self.facts,
            keys,
            RowRules(
                complete_when=(fact_complete,),
                only_complete=True,
                drop_when=(fact_complete,),
                late_when=(fact_complete,),
            ),
        )
        has_interval = comparison.end is not None and comparison.is_exact and not comparison.uses_end
        valid = (comparison.begin, comparison.end) if has_interval else None
        condition, is_outer = self.plan.condition().get(), self.kind not in _ONLY_WITH_VERSION
        looked_up = Lookup(fact_input.stateful_inputs[0].number, condition, valid, comparison.uses_end, is_outer)
        version_began = (CompletenessRule(comparison.begin, self._past, inclusive=True),)
        keys = [version for _, version in self.pairs]
        version_input = planner.stateful_input(
            self.versions, keys, RowRules(drop_when=self._version_ended, late_when=version_began), looked_up=looked_up
        )
        shows_time = fact_time.column is not None and not comparison.uses_end
        return PlanInfo(
            tuple(columns(self.plan)),
            build=lambda at: self._built(at, fact_input, version_input),
            keys=_keys(self.kind, fact_input, version_input, fact_time, self.pairs),
            stateful_inputs=(*fact_input.stateful_inputs, *version_input.stateful_inputs),
            times={column_id(fact_time.column): TimeColumn(limit)} if shows_time else {},
            unique=_unique(self.kind, self.facts, self.versions, comparison, self.pairs),
            requirements=(
                *self.facts.requirements,
                *self.versions.requirements,
                _requirement(comparison, fact_time, self.pairs),
            ),
        )

    def info_with_unused_versions(self) -> PlanInfo:
        """Return the properties of the join if it also reports versions that no fact looks up."""
        planner, (version_ended,) = self.planner, self._version_ended
        fact_complete = CompletenessRule(self.comparison.fact_time.value, self._limit, inclusive=True)
        fact_input = planner.stateful_input(
            self.facts,
            [fact for fact, _ in self.pairs],
            RowRules(complete_when=(fact_complete,), only_complete=True),
        )
        version_input = planner.stateful_input(
            self.versions, [version for _, version in self.pairs], RowRules(complete_when=(version_ended,))
        )
        requirement = _requirement(self.comparison, self.comparison.fact_time, self.pairs)
        return PlanInfo(
            tuple(columns(self.plan)),
            build=lambda at: self._built_with_unused(at, fact_input, version_input, version_ended),
            keys=tuple(self._key_of_versions(at, fact_input, version_input) for at in range(len(self.pairs))),
            stateful_inputs=(*fact_input.stateful_inputs, *version_input.stateful_inputs),
            unique=self._unique_with_unused(),
            requirements=(
                *self.facts.requirements,
                *self.versions.requirements,
                replace(requirement, state="the rows of both sides"),
            ),
        )

    def _key_of_versions(self, at: int, fact_input: PlanInfo, version_input: PlanInfo) -> Key:
        shown = [] if self.kind == "FullOuter" else [self.pairs[at][1]]
        return Key({side.stateful_inputs[0].number: at for side in (fact_input, version_input)}, Values.of(shown))

    def _unique_with_unused(self) -> frozenset[int] | None:
        facts, versions = self.facts.unique, self.versions.unique
        if self.kind in _ONE_SIDE:
            return versions
        if facts is None or versions is None:
            return None
        # As in other full joins, an unmatched fact of NULLs and an unmatched version of NULLs would look the same.
        is_apart = self.kind != "FullOuter" or never_null(self.facts) & facts or never_null(self.versions) & versions
        return facts | versions if is_apart else None

    def _built(self, at: InputsAt, fact_input: PlanInfo, version_input: PlanInfo) -> Node:
        return self._over(fact_input.built(at), version_input.built(at))

    def _over(self, facts: Node, versions: Node) -> Node:
        sides = (facts, versions) if self.facts_are_left else (versions, facts)
        return self.plan.withNewChildren(self.planner.catalyst.seq(sides))

    def _built_with_unused(
        self, at: InputsAt, fact_input: PlanInfo, version_input: PlanInfo, version_ended: CompletenessRule
    ) -> Node:
        catalyst, facts, versions = self.planner.catalyst, fact_input.built(at), version_input.built(at)
        if self.kind == "LeftSemi":
            return self._over(facts, versions)
        if self.kind == "LeftAnti":
            return catalyst.filter(version_ended.condition(at.clock), self._over(facts, versions))
        if self.kind == "ExistenceJoin":
            is_used = columns(self.plan)[-1]
            either = catalyst.expression("Or", is_used, version_ended.condition(at.clock))
            return catalyst.filter(either, self._over(facts, versions))
        mark = catalyst.alias(catalyst.boolean(True), "__odf_fact")
        joined = self._over(catalyst.project([*fact_input.columns, mark], facts), versions)
        is_used = catalyst.expression("IsNotNull", mark.toAttribute())
        shown = catalyst.filter(catalyst.expression("Or", is_used, version_ended.condition(at.clock)), joined)
        return catalyst.project(columns(self.plan), shown)


def _keys(
    kind: str, facts: PlanInfo, versions: PlanInfo, fact_time: _FactTime, pairs: Sequence[tuple[Node, Node]]
) -> tuple[Key, ...]:
    """Return the keys of the result: the equal columns, and the time of the fact, which versions do not have."""
    (fact_input,), (version_input,) = facts.stateful_inputs, versions.stateful_inputs
    keys = []
    for at, pair in enumerate(pairs):
        shown = pair if kind in ("Inner", "Cross") else pair[:1]
        keys.append(Key({fact_input.number: at, version_input.number: at}, Values.of(shown)))
    return (*keys, Key({fact_input.number: len(pairs)}, Values.of([fact_time.value])))


def _unique(
    kind: str, facts: PlanInfo, versions: PlanInfo, comparison: _TimeComparison, pairs: Sequence[tuple[Node, Node]]
) -> frozenset[int] | None:
    """Return the columns that identify a result row: those of the fact, if only one version can be in force for it."""
    if kind in _ONE_SIDE:
        return facts.unique
    if facts.unique is None or versions.unique is None:
        return None
    equal = {column_id(version) for _, version in pairs if expression_name(version) == "AttributeReference"}
    if comparison.is_exact and versions.unique - {column_id(comparison.begin)} <= equal:
        return facts.unique
    return facts.unique | versions.unique if kind in ("Inner", "Cross") else None


def _requirement(
    comparison: _TimeComparison, fact_time: _FactTime, pairs: Sequence[tuple[Node, Node]]
) -> StateRequirement:
    by = " and ".join(f"{fact.sql()} = {version.sql()}" for fact, version in pairs)
    reason = f"joined as of {fact_time.value.sql()}" + (f" by {by}" if by else "")
    ending = "versions that end after all rows that were emitted" if comparison.end is not None else "all versions"
    return StateRequirement(TEMPORAL, reason, f"rows that the watermarks have not passed, and {ending}")


# --- Analysis of the join condition ----------------------------------------------------------------------------------


class _ValidityBound(NamedTuple):
    """A conjunct that compares a time of the fact with the beginning or the end of a version."""

    column: Node
    time: Node
    is_end: bool
    is_strict: bool


def _time_comparison(
    planner: Planner, conjuncts: Sequence[Node], facts: PlanInfo, versions: PlanInfo
) -> _TimeComparison | None:
    """Return the comparison of a time of the fact with the beginning of a version; None if there is none."""
    bounds = list(_validity_bounds(conjuncts, facts, versions))
    begin = next((bound for bound in bounds if not bound.is_end), None)
    fact_time = None if begin is None else _fact_time(planner, begin.time, facts)
    if begin is None or fact_time is None:
        return None
    end = next((bound for bound in bounds if bound.is_end and bound.time.semanticEquals(begin.time)), None)
    mentions = sum(
        1
        for conjunct in conjuncts
        for name, node in subtree(conjunct)
        if name == "AttributeReference" and column_id(node) in versions.validity
    )
    ends = [key for key, valid in versions.validity.items() if valid.is_end]
    return _TimeComparison(
        fact_time,
        begin.column,
        None if end is None else end.column,
        is_exact=end is not None and mentions == 2 and not begin.is_strict and end.is_strict,
        uses_end=any(_uses_end(planner, key, bounds) for key in ends),
    )


def _validity_bounds(conjuncts: Sequence[Node], facts: PlanInfo, versions: PlanInfo) -> Iterator[_ValidityBound]:
    fact_columns = {column_id(column) for column in facts.columns}
    for conjunct in conjuncts:
        for smaller, greater, is_strict in ordered_pairs(conjunct):
            for column, time, is_end in ((smaller, greater, False), (greater, smaller, True)):
                validity = _validity(column, versions)
                read = {column_id(column_read) for column_read in columns_read(time)}
                if validity is not None and validity.is_end == is_end and len(read) == 1 and read <= fact_columns:
                    yield _ValidityBound(column, time, is_end, is_strict)


def _uses_end(planner: Planner, end: int, bounds: Sequence[_ValidityBound]) -> bool:
    """Return whether the query uses the end of versions for anything but the comparison in this join."""
    compared_here = sum(1 for bound in bounds if column_id(bound.column) == end)
    return end in planner.used.used or planner.used.compared.get(end, 0) != compared_here


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
