"""One pull of a block (design: "One pull of a stateful step").

1. touched keys: those of the new rows, and those of rows that settle because the watermark moved
2. the block over the rows of these keys as they were, with the watermarks of then
3. the block over the rows of these keys as they are, with the watermarks of now
4. the difference is what the block emits, and rows that can still matter are kept
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.engine.checkpoint import KeptRows
from odfpy.engine.spark.incremental.properties.plan_info import Block, Gate, LookedUp, settled, settles
from odfpy.engine.spark.incremental.state.changes import WEIGHT, Changes, multiset, no_rows, together
from odfpy.engine.spark.incremental.state.difference import difference
from odfpy.engine.spark.incremental.state.groups import Groups
from odfpy.engine.spark.incremental.state.stateful_inputs import GateRows, Pull
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns
from odfpy.engine.spark.plan.times import Clock
from odfpy.engine.spark.rows.batches import write_parquet
from odfpy.engine.spark.rows.effort import gathered_rows, read_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class BlockRun:
    """One block in one pull."""

    def __init__(self, pull: Pull, block: Block) -> None:
        self.pull = pull
        self.block = block
        self.rows = GateRows(pull, block)

    def changes(self) -> DataFrame:
        """What the block emits: columns `c0`, `c1`... of its part, and a weight."""
        if self._only_settles():
            return difference(
                None, self._result(_Moment(self, self.pull.after, None, is_after=True, only_settled=True))
            )
        gained = self._gained()
        if gained is not None:
            return difference(None, gained)
        touched = self._touched()
        after = self._result(_Moment(self, self.pull.after, touched, is_after=True))
        return difference(self._result(_Moment(self, self.pull.before, touched, is_after=False)), after)

    def before(self) -> Node | None:
        """The result as it was before the pull: its columns, offset 0 and `+A`; None when there was none.

        Raises:
            HistoryNeeded: it is made from history.
        """
        if self.pull.is_first:
            return None
        catalyst = self.pull.catalyst
        plan = catalyst.plan(self._result(_Moment(self, self.pull.before, None, is_after=False, in_full=True)))
        offset = Builder(catalyst).cast(catalyst.integer(0), "bigint")  # as those of inputs, which a UNION puts beside
        marks = [catalyst.alias(offset, "__odf_offset"), catalyst.alias(catalyst.integer(0), "__odf_op")]
        return catalyst.project([*columns(plan), *marks], plan)

    def keep(self) -> Mapping[str, tuple[Path, KeptRows]]:
        """Write down what the next pull may need; files by name."""
        found = {}
        for gate in self.block.part.gates:
            if gate.groups is not None:
                if (groups := self.rows.groups(gate).keep()) is not None:
                    found[groups[1].name] = groups
                continue
            kept = self.rows.keep(gate)
            if kept is None:
                continue
            found.update({rows.name: (path, rows) for path, rows in kept.files})
            frame = kept.in_few_partitions()
            if frame is None:
                continue
            frame = frame.withColumn(WEIGHT, frame[WEIGHT].cast("long"))
            file = self.pull.scratch / f"keep-{kept.new_name}"
            if count := write_parquet(file, frame):
                found[kept.new_name] = file, KeptRows(kept.new_name, kept.only_appends, count)
        return found

    def _only_settles(self) -> bool:
        """Whether nothing of before can change, so that what settles now is all there is to emit."""
        gates = self.block.part.gates
        if not gates or self.pull.is_first:
            return self.pull.is_first  # constants come once
        return (
            all(self._only_settles_at(gate) or gate.looked_up is not None for gate in gates)
            and not self.rows.needs_history()
        )

    def _only_settles_at(self, gate: Gate) -> bool:
        return gate.waits and (gate.groups is None or self.rows.on_time(gate))

    def _gained(self) -> DataFrame | None:
        """What new rows add to a result of which each row is made of one row of every gate; None if that is not all."""
        gates = self.block.part.gates
        if not self.block.part.is_product or any(gate.waits or gate.due for gate in gates):
            return None
        parts = [part for gate in gates for part in (self.rows.old(gate), self.rows.new(gate)) if part is not None]
        if not all(part.only_appends for part in parts):
            return None
        frames = [
            self._result(_Moment(self, self.pull.after, None, is_after=True, added=gate.number))
            for gate in gates
            if self.rows.new(gate) is not None
        ]
        return reduce(lambda one, other: one.union(other), frames) if frames else None

    def _result(self, moment: _Moment) -> DataFrame:
        part, catalyst = self.block.part, self.pull.catalyst
        frame = catalyst.dataframe(catalyst.project(part.columns, part.built(moment)))
        return frame.toDF(*(f"c{at}" for at in range(len(part.columns))))

    def multiset(self, gate: Gate, parts: Sequence[Changes]) -> Node:
        """The rows of a gate that some changes amount to, with its columns."""
        catalyst = self.pull.catalyst
        if parts:
            return multiset(catalyst, together(catalyst, parts), gate.columns)
        return no_rows(catalyst, gate.columns)

    # --- Keys ---

    def _touched(self) -> _Touched | None:
        """The keys that this pull touches, None when all are."""
        if not any(self.block.keys.values()):
            return None
        frames = [frame for gate in self.block.part.gates for frame in self._touched_at(gate)]
        if not frames:
            return None
        path = self.pull.scratch / f"touched-{self.block.source}.parquet"
        keys = gathered_rows(reduce(lambda one, other: one.union(other), frames)).distinct()
        if all(gate.groups is not None for gate in self.block.part.gates):
            return _Touched(self.pull.catalyst.plan(keys))  # which are of files
        write_parquet(path, keys, even_if_empty=True)
        return _Touched(read_plan(self.pull.catalyst, keys.schema, [path]))

    def _touched_at(self, gate: Gate) -> list[DataFrame]:
        pull = self.pull
        if gate.groups is not None:
            return self._touched_groups(gate)
        found = []
        old, new = self.rows.old(gate), self.rows.counted(gate)
        if new is not None and gate.looked_up is not None and None in self.block.keys[gate.number]:
            found += self._looking_up(gate.looked_up, new)
        elif new is not None:
            found.append(self._keys(gate, new.plan, settled(gate.due, pull.after) if gate.waits else None))
        if gate.due:
            closes = settles(gate.due, pull.before, pull.after)
            found += [self._keys(gate, rows.plan, closes) for rows in (old, new) if rows is not None]
        return found

    def _touched_groups(self, gate: Gate) -> list[DataFrame]:
        groups, (was, now) = self.rows.groups(gate), (self.pull.before, self.pull.after)
        found = []
        for plan, is_new in ((groups.old, False), (groups.new, True)):
            if plan is None or not (is_new or gate.due):
                continue
            rows = groups.settled(plan, now, None if is_new else was) if gate.due else plan
            found.append(self._keys(gate, rows, over=groups.over_groups))
        return found

    def _looking_up(self, looked_up: LookedUp, changed: Changes) -> list[DataFrame]:
        """The keys of rows that look up what has changed."""
        catalyst = self.pull.catalyst
        gate = next(one for one in self.block.part.gates if one.number == looked_up.by)
        found = [part for part in (self.rows.old(gate), self.rows.new(gate)) if part is not None]
        plans = [catalyst.semi_join(part.plan, changed.plan, looked_up.condition) for part in found]
        return [self._keys(gate, plan, settled(gate.due, self.pull.after)) for plan in plans]

    def _keys(
        self,
        gate: Gate,
        rows: Node,
        condition: Node | None = None,
        over: Callable[[Node], Node] = lambda key: key,
    ) -> DataFrame:
        """The keys of some rows: columns `k0`, `k1`... of a plan over which `over` makes keys expressions."""
        catalyst = self.pull.catalyst
        plan = rows if condition is None else catalyst.filter(condition, rows)
        keys = [catalyst.alias(over(key), f"k{at}") for at, key in enumerate(self.block.keys[gate.number])]
        return catalyst.dataframe(catalyst.project(keys, plan))


@dataclass(frozen=True, slots=True)
class _Touched:
    """Keys that were touched: a plan with one column for each key."""

    plan: Node


@dataclass(frozen=True, slots=True)
class _Moment:
    """The rows of the gates before or after a pull, of touched keys only; or, in full, all there ever were.

    Attributes:
        added: number of a gate of which there are the new rows only, and none of these of gates after it: over all
            gates, each combination of rows of which one is new is there once.
    """

    run: BlockRun
    clock: Clock
    touched: _Touched | None
    is_after: bool
    in_full: bool = False
    only_settled: bool = False
    added: int | None = None

    def groups(self, gate: Gate) -> Groups:
        """The partial results of a gate."""
        groups = self.run.rows.groups(gate)
        plan = groups.after if self.is_after else groups.all_old if self.in_full else groups.old
        if plan is None:
            return groups.of(None)
        if gate.waits:
            # The first rows may come when a watermark has passed them: then they settle now, too.
            has_settled_before = self.only_settled and not self.run.pull.is_first
            plan = groups.settled(plan, self.clock, self.run.pull.before if has_settled_before else None)
        keys = self.run.block.keys[gate.number]
        return groups.of(self._of_touched([key and groups.over_groups(key) for key in keys], plan))

    def only_grew(self, gate: Gate) -> bool:
        """Whether all rows of a log that there ever were are known to be appended."""
        return self.run.rows.only_grew(gate)

    def rows(self, gate: Gate) -> Node:
        """The rows of a gate, with its columns."""
        rows, catalyst = self.run.rows, self.run.pull.catalyst
        old = rows.history(gate) if self.in_full else rows.old(gate)
        new = rows.new(gate) if self.is_after else None
        if self.added is not None:
            old, new = None if gate.number == self.added else old, None if gate.number > self.added else new
        found = [part for part in (old, new) if part is not None]
        return self.run.multiset(
            gate, [Changes(self._limited(catalyst, gate, part.plan), part.only_appends) for part in found]
        )

    def _limited(self, catalyst: Catalyst, gate: Gate, plan: Node) -> Node:
        if gate.waits:
            plan = catalyst.filter(settled(gate.due, self.clock), plan)
        return self._of_touched(self.run.block.keys[gate.number], plan)

    def _of_touched(self, keys: Sequence[Node | None], plan: Node) -> Node:
        catalyst = self.run.pull.catalyst
        if self.touched is None:
            return plan
        pairs = zip(keys, columns(self.touched.plan), strict=True) if keys else ()
        same = [catalyst.expression("EqualNullSafe", key, touched) for key, touched in pairs if key is not None]
        if not same:
            return plan
        return catalyst.semi_join(
            plan, self.touched.plan, reduce(lambda one, other: catalyst.expression("And", one, other), same)
        )
