"""One pull of a block (design: "One pull of a stateful step").

1. touched keys: those of the new rows, and those of rows that settle because the watermark moved
2. the block over the rows of these keys as they were, with the watermarks of then
3. the block over the rows of these keys as they are, with the watermarks of now
4. the difference is what the block emits
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from odfpy.engine.spark.catalyst import Catalyst, Node, columns, items
from odfpy.engine.spark.classes.base import RESERVED_PREFIX
from odfpy.engine.spark.classes.row_by_row import carried
from odfpy.engine.spark.incremental.changes import (
    WEIGHT,
    Changes,
    multiset,
    same_nulls,
    together,
    weight_of,
)
from odfpy.engine.spark.incremental.difference import difference
from odfpy.engine.spark.incremental.parts import Block, Gate
from odfpy.engine.spark.incremental.times import Clock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a source.

    Attributes:
        plan: its columns as queries see them, then offset and operation type.
        only_appends: whether all of them are known to be appended.
        count: how many there are.
    """

    plan: Node
    only_appends: bool
    count: int


class Stream(Protocol):
    """A source during a pull."""

    def new(self) -> Rows | None:
        """The rows of this pull, None when there are none."""
        ...

    def old(self) -> Rows | None:
        """The rows of all pulls before, None when there are none."""
        ...


@dataclass(frozen=True, slots=True)
class Pull:
    """What a pull works with.

    Attributes:
        catalyst: the session.
        streams: the sources, by number.
        before: the watermarks of then.
        after: the watermarks of now.
        scratch: a folder for temporary files.
    """

    catalyst: Catalyst
    streams: Sequence[Stream]
    before: Clock
    after: Clock
    scratch: Path


def block_changes(pull: Pull, block: Block) -> DataFrame:
    """What a block emits: columns `c0`, `c1`... of its part, and a weight."""
    run = _Run(pull, block)
    is_first = all(run.old(gate) is None for gate in block.part.gates)
    touched = None if is_first else run.touched()
    after = run.result(_Moment(run, pull.after, touched, is_after=True))
    before = None if is_first else run.result(_Moment(run, pull.before, touched, is_after=False))
    return difference(before, after)


def block_before(pull: Pull, block: Block) -> Node | None:
    """The result of a block as it was before a pull: its columns, offset 0 and `+A`; None when there was none."""
    run = _Run(pull, block)
    if all(run.old(gate) is None for gate in block.part.gates):
        return None
    catalyst = pull.catalyst
    plan = catalyst.plan(run.result(_Moment(run, pull.before, None, is_after=False)))
    marks = [catalyst.alias(catalyst.integer(0), name) for name in ("__odf_offset", "__odf_op")]
    return catalyst.project([*columns(plan), *marks], plan)


@dataclass(frozen=True, slots=True)
class _Touched:
    """Keys that were touched: a plan with one column for each key."""

    plan: Node


@dataclass
class _Run:
    pull: Pull
    block: Block
    _old: dict[int, Changes | None] = field(default_factory=dict)
    _new: dict[int, Changes | None] = field(default_factory=dict)

    @property
    def catalyst(self) -> Catalyst:
        return self.pull.catalyst

    def result(self, moment: _Moment) -> DataFrame:
        part = self.block.part
        frame = self.catalyst.dataframe(self.catalyst.project(part.columns, part.built(moment)))
        return frame.toDF(*(f"c{at}" for at in range(len(part.columns))))

    # --- Rows of gates ---

    def old(self, gate: Gate) -> Changes | None:
        """The rows of a gate before this pull."""
        if gate.number not in self._old:
            self._old[gate.number] = self._through(gate, lambda stream: stream.old())
        return self._old[gate.number]

    def new(self, gate: Gate) -> Changes | None:
        """The changes of a gate in this pull."""
        if gate.number not in self._new:
            self._new[gate.number] = self._through(gate, lambda stream: stream.new())
        return self._new[gate.number]

    def _through(self, gate: Gate, take: object) -> Changes | None:
        """Rows of the sources, taken through the free part below a gate."""
        found: dict[int, Rows | None] = {}

        def leaf(number: int, plan: Node) -> Node:
            if number not in found:
                found[number] = take(self.pull.streams[number])  # type: ignore[operator]
            return leaf_over(self.catalyst, plan, found[number])

        delta = carried(self.catalyst, gate.plan, leaf)
        rows = [one for one in found.values() if one is not None]
        if not rows:
            return None
        by_name = {column.name(): column for column in columns(delta.plan)[len(gate.columns) :]}
        only_appends = all(one.only_appends for one in rows)
        weight = (
            self.catalyst.alias(self.catalyst.integer(1), WEIGHT)
            if only_appends
            else weight_of(self.catalyst, by_name["__odf_op"])
        )
        return Changes(self.catalyst.project([*gate.columns, weight], delta.plan), only_appends)

    # --- Keys ---

    def touched(self) -> _Touched | None:
        """The keys that this pull touches, None when all are."""
        if not any(self.block.keys.values()):
            return None
        frames = [frame for gate in self.block.part.gates for frame in self._touched_at(gate)]
        path = self.pull.scratch / f"touched-{self.block.source}"
        if not frames:
            return None
        merged = reduce(lambda one, other: one.union(other), frames).distinct()
        merged.coalesce(1).write.parquet(str(path))
        return _Touched(self.catalyst.plan(self.catalyst.spark.read.parquet(str(path))))

    def _touched_at(self, gate: Gate) -> list[DataFrame]:
        found = []
        old, new = self.old(gate), self.new(gate)
        if new is not None:
            condition = self.settled(gate, self.pull.after) if gate.waits else None
            found.append(self._keys(gate, new, condition))
        if gate.due:
            settles = self.catalyst.expression(
                "And",
                self.settled(gate, self.pull.after),
                self.catalyst.expression("Not", self.settled(gate, self.pull.before)),
            )
            found += [self._keys(gate, rows, settles) for rows in (old, new) if rows is not None]
        return found

    def _keys(self, gate: Gate, rows: Changes, condition: Node | None) -> DataFrame:
        catalyst = self.catalyst
        plan = rows.plan if condition is None else catalyst.filter(condition, rows.plan)
        keys = [catalyst.alias(key, f"k{at}") for at, key in enumerate(self.block.keys[gate.number])]
        return catalyst.dataframe(catalyst.project(keys, plan))

    def settled(self, gate: Gate, clock: Clock) -> Node:
        """Whether rows of a gate are settled at some time."""
        conditions = [due.condition(clock) for due in gate.due]
        return reduce(lambda one, other: self.catalyst.expression("Or", one, other), conditions)


@dataclass(frozen=True, slots=True)
class _Moment:
    """The rows of the gates before or after a pull, of touched keys only."""

    run: _Run
    clock: Clock
    touched: _Touched | None
    is_after: bool

    def rows(self, gate: Gate) -> Node:
        """The rows of a gate, with its columns."""
        run, catalyst = self.run, self.run.catalyst
        parts = [run.old(gate), run.new(gate) if self.is_after else None]
        found = [part for part in parts if part is not None]
        if not found:
            empty = catalyst.empty_like(gate.columns)
            return catalyst.project(
                [
                    same_nulls(catalyst, below, column)
                    for below, column in zip(columns(empty), gate.columns, strict=False)
                ],
                empty,
            )
        limited = [Changes(self._limited(gate, part.plan), part.only_appends) for part in found]
        return multiset(catalyst, together(catalyst, limited), gate.columns)

    def _limited(self, gate: Gate, plan: Node) -> Node:
        run, catalyst = self.run, self.run.catalyst
        if gate.waits:
            plan = catalyst.filter(run.settled(gate, self.clock), plan)
        keys = run.block.keys[gate.number]
        if self.touched is None or not keys:
            return plan
        pairs = zip(keys, columns(self.touched.plan), strict=True)
        same = [catalyst.expression("EqualNullSafe", key, touched) for key, touched in pairs]
        return catalyst.semi_join(
            plan, self.touched.plan, reduce(lambda one, other: catalyst.expression("And", one, other), same)
        )


def leaf_over(catalyst: Catalyst, leaf: Node, rows: Rows | None) -> Node:
    """A source over other rows: columns and marks keep their identities.

    Args:
        catalyst: the session.
        leaf: the projection that stands for the source in a plan.
        rows: what to read, None for no rows.
    """
    selected = items(leaf.projectList())
    data = [column for column in selected if not column.name().startswith(RESERVED_PREFIX)]
    by_name: Mapping[str, Node] = {column.name(): column for column in selected if column not in data}
    plan = rows.plan if rows is not None else catalyst.empty_like(data)
    found = columns(plan)
    named = [same_nulls(catalyst, below, column) for below, column in zip(found, data, strict=False)]
    carried_columns = [
        by_name["__odf_input"],
        catalyst.alias(found[-2], "__odf_offset"),
        catalyst.alias(found[-1], "__odf_op"),
    ]
    return catalyst.project(named + carried_columns, plan)
