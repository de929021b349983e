"""Joins with a temporal table as of the time of a row.

    FROM facts f JOIN rates r ON f.cur = r.cur AND f.event_time >= r.valid_from AND f.event_time < r.valid_to

A row of the other side, here called a fact, waits until the watermarks of both sides have passed its time: then the
versions of that time are known, and it is given, once. Afterwards it is corrected when it is, or when a version of its
time is: no other facts are looked at. Any condition that compares `valid_from` with one time of the fact is such a
join (`BETWEEN` and other conditions too), in ON or in WHERE, of any kind; without an equality each fact is compared
with all versions of its time. Anything else is a join like others.

Joins that are outer on the side of the versions (EXISTS and NOT EXISTS of facts too) tell which versions no fact has
looked up. That a version has none is given when the watermarks of both sides have passed its end. There all facts
matter as long as a version of theirs lasts: they are read again, as for a join by key.

Kept are facts that wait, and versions that end after all facts that have been given: others cannot be in force for any
fact that comes, unless it is late; then history is asked. A query that shows `valid_to`, or computes with it, has
results that change when a version ends, however old the fact is: the watermark does not pass through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from odfpy.engine.spark.incremental.operators.planner import Walk
from odfpy.engine.spark.incremental.properties.comparisons import equal_pairs, ordered_pairs
from odfpy.engine.spark.incremental.properties.keys import never_null
from odfpy.engine.spark.incremental.properties.plan_info import (
    Due,
    Key,
    LookedUp,
    Moment,
    Part,
    TimeColumn,
    Trait,
    Validity,
    Values,
)
from odfpy.engine.spark.plan.catalyst import Node, children, column_id, columns, columns_read, expression_name, subtree
from odfpy.engine.spark.plan.monotone import never_decreases, shift_of
from odfpy.engine.spark.plan.times import MILLISECOND, Least, Opened, Shifted, Times

TEMPORAL: Final = "temporal-table join"
_OF_FACTS_ON_THE_LEFT: Final = ("Inner", "Cross", "LeftOuter", "LeftSemi", "LeftAnti", "ExistenceJoin")
_OF_FACTS_ON_THE_RIGHT: Final = ("Inner", "Cross", "RightOuter")
_ONE_SIDE: Final = ("LeftSemi", "LeftAnti", "ExistenceJoin")


@dataclass(frozen=True, slots=True)
class _Moment:
    """The time of a fact for which a version is looked up.

    Attributes:
        value: the expression that is compared, without casts that do not change it.
        watermark: facts with a value at or before it do not come later.
        column: the column that it is, up to a shift; None for other functions of a column.
        shift: how much later the value is than the column, in microseconds.
    """

    value: Node
    watermark: Times
    column: Node | None
    shift: int = 0


@dataclass(frozen=True, slots=True)
class _Bounds:
    """How a condition compares the time of a fact with the validity of a version.

    Attributes:
        moment: the time of the fact.
        begin: column with the beginning.
        end: column with the end, if it is compared with the same time.
        is_exact: whether the condition is that the version is valid, end not included, and says no more of it.
        shows_end: whether the query makes another use of the end.
    """

    moment: _Moment
    begin: Node
    end: Node | None
    is_exact: bool
    shows_end: bool


def as_of_join(walk: Walk, plan: Node, kind: str, left: Part, right: Part, conjuncts: Sequence[Node]) -> Part | None:
    """What is known of a join with a temporal table, None when it is none."""
    sides = ((left, right, _OF_FACTS_ON_THE_LEFT), (right, left, _OF_FACTS_ON_THE_RIGHT))
    for facts, versions, of_facts in sides:
        if not versions.validity or versions.free is None:
            continue
        bounds = _bounds(walk, conjuncts, facts, versions)
        if bounds is None or (kind not in of_facts and bounds.end is None):
            continue
        equal = [(mine, other) for mine, other, _ in equal_pairs(conjuncts, left, right)]
        pairs = equal if facts is left else [(mine, other) for other, mine in equal]
        found = _AsOf(walk, plan, kind, walk.cut(facts), versions, bounds, pairs, facts is left)
        return found.joined() if kind in of_facts else found.joined_with_unused()
    return None


@dataclass(frozen=True, slots=True)
class _AsOf:
    """A join of facts with versions, as the plan has it.

    Attributes:
        facts_are_left: whether the facts are on the left.
    """

    walk: Walk
    plan: Node
    kind: str
    facts: Part
    versions: Part
    bounds: _Bounds
    pairs: Sequence[tuple[Node, Node]]
    facts_are_left: bool

    @property
    def _limit(self) -> Times:
        """Facts at or before it are given."""
        moment, known = self.bounds.moment, self.versions.validity[column_id(self.bounds.begin)].watermark
        shifted = moment.column is not None and moment.shift
        return Least((moment.watermark, Shifted(known, -moment.shift) if shifted else known))

    @property
    def _past(self) -> Times:
        """Versions that have ended at or before it are looked up by no fact that waits or comes in time."""
        shift = self.bounds.moment.shift
        return Shifted(self._limit, shift) if shift else self._limit

    @property
    def _ended(self) -> list[Due]:
        end = self.bounds.end
        return [] if end is None else [Due(end, self._past, inclusive=True)]

    def joined(self) -> Part:
        """What is known of it, if rows of facts are all that it has."""
        walk, bounds, moment, limit = self.walk, self.bounds, self.bounds.moment, self._limit
        given = Due(moment.value, limit, inclusive=True)
        keys = [*(fact for fact, _ in self.pairs), moment.value]
        mine = walk.gate(self.facts, keys, [given], waits=True, forget=[given], late=[given])
        valid = None if bounds.end is None or not bounds.is_exact or bounds.shows_end else (bounds.begin, bounds.end)
        looked_up = LookedUp(mine.gates[0].number, self.plan.condition().get(), valid)
        began = [Due(bounds.begin, self._past, inclusive=True)]
        keys = [version for _, version in self.pairs]
        others = walk.gate(self.versions, keys, forget=self._ended, late=began, looked_up=looked_up)
        shows_time = moment.column is not None and not bounds.shows_end
        return Part(
            tuple(columns(self.plan)),
            build=lambda at: self._built(at, mine, others),
            keys=_keys(self.kind, mine, others, moment, self.pairs),
            gates=(*mine.gates, *others.gates),
            times={column_id(moment.column): TimeColumn(limit)} if shows_time else {},
            unique=_unique(self.kind, self.facts, self.versions, bounds, self.pairs),
            traits=(*self.facts.traits, *self.versions.traits, _trait(bounds, moment, self.pairs)),
        )

    def joined_with_unused(self) -> Part:
        """What is known of it, if it tells which versions no fact looks up."""
        walk, (ended,) = self.walk, self._ended
        given = Due(self.bounds.moment.value, self._limit, inclusive=True)
        mine = walk.gate(self.facts, [fact for fact, _ in self.pairs], [given], waits=True)
        others = walk.gate(self.versions, [version for _, version in self.pairs], [ended])
        trait = _trait(self.bounds, self.bounds.moment, self.pairs)
        return Part(
            tuple(columns(self.plan)),
            build=lambda at: self._built_with_unused(at, mine, others, ended),
            keys=tuple(self._key_of_versions(at, mine, others) for at in range(len(self.pairs))),
            gates=(*mine.gates, *others.gates),
            unique=self._unique_with_unused(),
            traits=(*self.facts.traits, *self.versions.traits, replace(trait, state="the rows of both sides")),
        )

    def _key_of_versions(self, at: int, mine: Part, others: Part) -> Key:
        shown = [] if self.kind == "FullOuter" else [self.pairs[at][1]]
        return Key({side.gates[0].number: at for side in (mine, others)}, Values.of(shown))

    def _unique_with_unused(self) -> frozenset[int] | None:
        facts, versions = self.facts.unique, self.versions.unique
        if self.kind in _ONE_SIDE:
            return versions
        if facts is None or versions is None:
            return None
        # As for other full joins: a fact of NULLs and a version of NULLs would look the same.
        is_apart = self.kind != "FullOuter" or never_null(self.facts) & facts or never_null(self.versions) & versions
        return facts | versions if is_apart else None

    def _built(self, at: Moment, mine: Part, others: Part) -> Node:
        return self._over(mine.built(at), others.built(at))

    def _over(self, facts: Node, versions: Node) -> Node:
        sides = (facts, versions) if self.facts_are_left else (versions, facts)
        return self.plan.withNewChildren(self.walk.catalyst.seq(sides))

    def _built_with_unused(self, at: Moment, mine: Part, others: Part, ended: Due) -> Node:
        catalyst, facts, versions = self.walk.catalyst, mine.built(at), others.built(at)
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
    kind: str, facts: Part, versions: Part, moment: _Moment, pairs: Sequence[tuple[Node, Node]]
) -> tuple[Key, ...]:
    """Equal columns, and the time of the fact, which versions do not have."""
    (mine,), (other,) = facts.gates, versions.gates
    found = []
    for at, pair in enumerate(pairs):
        shown = pair if kind in ("Inner", "Cross") else pair[:1]
        found.append(Key({mine.number: at, other.number: at}, Values.of(shown)))
    return (*found, Key({mine.number: len(pairs)}, Values.of([moment.value])))


def _unique(
    kind: str, facts: Part, versions: Part, bounds: _Bounds, pairs: Sequence[tuple[Node, Node]]
) -> frozenset[int] | None:
    """A fact is one row if only one version can be in force for it."""
    if kind in _ONE_SIDE:
        return facts.unique
    if facts.unique is None or versions.unique is None:
        return None
    equal = {column_id(version) for _, version in pairs if expression_name(version) == "AttributeReference"}
    if bounds.is_exact and versions.unique - {column_id(bounds.begin)} <= equal:
        return facts.unique
    return facts.unique | versions.unique if kind in ("Inner", "Cross") else None


def _trait(bounds: _Bounds, moment: _Moment, pairs: Sequence[tuple[Node, Node]]) -> Trait:
    by = " and ".join(f"{fact.sql()} = {version.sql()}" for fact, version in pairs)
    reason = f"joined as of {moment.value.sql()}" + (f" by {by}" if by else "")
    ending = "versions that end after all rows that have been given" if bounds.end is not None else "all versions"
    return Trait(TEMPORAL, reason, f"rows that the watermarks have not passed, and {ending}")


# --- What a condition says -------------------------------------------------------------------------------------------


def _bounds(walk: Walk, conjuncts: Sequence[Node], facts: Part, versions: Part) -> _Bounds | None:
    ours = {column_id(column) for column in facts.columns}
    compared: list[tuple[Node, Node, bool, bool]] = []  # column of validity, time, whether it is the end, strictness
    for conjunct in conjuncts:
        for smaller, greater, strict in ordered_pairs(conjunct):
            for column, time, is_end in ((smaller, greater, False), (greater, smaller, True)):
                known = _validity(column, versions)
                read = {column_id(one) for one in columns_read(time)}
                if known is not None and known.is_end == is_end and len(read) == 1 and read <= ours:
                    compared.append((column, time, is_end, strict))
    begin = next((one for one in compared if not one[2]), None)
    moment = None if begin is None else _moment(walk, begin[1], facts)
    if begin is None or moment is None:
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
        moment, begin[0], None if end is None else end[0], is_exact, any(_shows(walk, key, compared) for key in ends)
    )


def _shows(walk: Walk, end: int, compared: Sequence[tuple[Node, Node, bool, bool]]) -> bool:
    """Whether a query makes more of the end of versions than to compare it here."""
    here = sum(1 for column, _, _, _ in compared if column_id(column) == end)
    return end in walk.used.used or walk.used.compared.get(end, 0) != here


def _validity(column: Node, versions: Part) -> Validity | None:
    return versions.validity.get(column_id(column)) if expression_name(column) == "AttributeReference" else None


def _moment(walk: Walk, expression: Node, facts: Part) -> _Moment | None:
    """The time of a fact, if it has a watermark."""
    value = expression
    while expression_name(value) == "Cast" and children(value)[0].dataType().typeName() == "date":
        (value,) = children(value)  # a date is compared as its midnight
    (read,) = columns_read(value)
    time = facts.times.get(column_id(read))
    if time is None or time.windows:
        return None
    if expression_name(value) == "AttributeReference":
        return _Moment(value, time.watermark, value)
    shift = shift_of(walk.catalyst, value, read)
    if shift is not None:
        return _Moment(read, time.watermark, read, shift)
    if never_decreases(walk.catalyst, value):
        return _Moment(value, Shifted(Opened(value, read, time.watermark), -MILLISECOND), None)
    return None
