"""Arranged state: earlier rows that a pull looks up by key in an arrangement, instead of reading the input history.

This applies to two kinds of stateful inputs:

- those without a state, since all their rows matter for ever
- those of which the first rows of each partition are stored, if these are many: in the checkpoint, each pull would read
  and rewrite all of them

Rows are found by Spark's hash of their key. The join with the affected keys then removes rows that only share the hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from odfpy.engine.arrangement import ArrangedRows
from odfpy.engine.checkpoint import CheckpointFile, CheckpointRows
from odfpy.engine.contract import TransformRequestInput
from odfpy.engine.spark.incremental.properties.keys import sources_read
from odfpy.engine.spark.incremental.properties.plan_info import Fragment, Retention, StatefulInput
from odfpy.engine.spark.incremental.state import worth_arranging
from odfpy.engine.spark.incremental.state.arrangement import Arrangement
from odfpy.engine.spark.incremental.state.changes import Changes, union_changes, wide_weight
from odfpy.engine.spark.incremental.state.hashes import (
    entries_of,
    fingerprints,
    is_hashable,
    sorted_entries,
    with_hash,
)
from odfpy.engine.spark.incremental.state.state_files import StateFile
from odfpy.engine.spark.incremental.state.stateful_inputs import StatefulRows
from odfpy.engine.spark.plan.catalyst import Node, columns, type_of
from odfpy.engine.spark.plan.storable_types import can_be_stored
from odfpy.engine.spark.process.shared_files import on_cluster
from odfpy.engine.spark.rows.stored import Stored
from odfpy.engine.spark.rows.write import table_of
from odfpy.stages import stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MAX_NEW_ROWS: Final = 2_000_000
"""The greatest number of new rows that are added to an arrangement in memory; beyond it, the next user rebuilds it."""

_MAX_UNUSED: Final = 50
"""The number of pulls without a lookup after which rows are no longer arranged."""


@dataclass
class ArrangedInputs:
    """The stateful inputs of a fragment whose rows are looked up in an arrangement.

    Attributes:
        fragment: the fragment.
        rows: the rows of its stateful inputs.
    """

    fragment: Fragment
    rows: StatefulRows
    _looked_up: dict[int, Changes] = field(default_factory=dict)
    _arrangeable: dict[int, bool] = field(default_factory=dict)
    _used: set[int] = field(default_factory=set)
    _too_many: set[int] = field(default_factory=set)

    @property
    def _arrangement(self) -> Arrangement | None:
        return self.rows.pull.arrangement

    def known(self, stateful_input: StatefulInput) -> ArrangedRows | None:
        """Return what is known about the earlier rows of a stateful input without reading them."""
        if self._arrangement is None or not self._can_be_arranged(stateful_input):
            return None
        is_elsewhere = not self.rows.is_in_arrangement(stateful_input) or self.rows.needs_history()
        if _stores_top_rows(stateful_input) and is_elsewhere:
            return None
        return self._arrangement.known(self.rows.name(stateful_input))

    def are_arranged(self, stateful_input: StatefulInput) -> bool:
        """Return whether the earlier rows of a stateful input can be looked up."""
        known = self.known(stateful_input)
        return known is not None and bool(known.runs)

    def with_hashes(self, keys: Node) -> Node:
        """Add to the affected keys `k0`, `k1`... the hashes by which rows of stateful inputs are looked up."""
        for stateful_input in self.fragment.info.stateful_inputs:
            if self.are_arranged(stateful_input):
                names = [f"k{at}" for at, _ in self._keys(stateful_input)]
                keys = with_hash(self.rows.catalyst, keys, names, _hash_name(stateful_input))
        return keys

    def old(self, stateful_input: StatefulInput, touched: Stored | None) -> Changes | None:
        """Return the earlier rows of affected keys, and perhaps a few others; None if they cannot be looked up.

        Args:
            stateful_input: the stateful input.
            touched: the keys and their hashes, None for all keys.
        """
        self._used.add(number := stateful_input.number)
        known, arrangement = self.known(stateful_input), self._arrangement
        if touched is None or known is None or not known.runs or arrangement is None:
            return None
        if number not in self._looked_up:
            hashes = touched.column(_hash_name(stateful_input))
            with stage("look up"):
                rows = arrangement.look_up(known.name, np.unique(fingerprints(hashes)))
            if rows is None:
                return None
            # A pull that itself has as many new rows is an exception: those after it look up few rows again.
            is_large_pull = _num_all_new_rows(arrangement) * worth_arranging.WORTH > known.num_rows
            if worth_arranging.are_most(rows.num_rows, known.num_rows) and not is_large_pull:
                self._too_many.add(number)
            path = self.rows.pull.scratch / f"arranged-{known.name}"
            self._looked_up[number] = self.rows.of_table(stateful_input, rows, path, known.only_appends)
        return self._looked_up[number]

    def update(self, stateful_input: StatefulInput) -> None:
        """Update the arrangement of a stateful input without a state for the next pull, or build one if that pays."""
        arrangement = self._arrangement
        if arrangement is None or _stores_top_rows(stateful_input) or not self._can_be_arranged(stateful_input):
            return
        known, history = self.known(stateful_input), self.rows.cached_history(stateful_input)
        if known is None and history is not None:
            known = ArrangedRows(self.rows.name(stateful_input), history.is_append_only)
        if known is None:
            return
        new = self.rows.new(stateful_input)
        is_used = stateful_input.number in self._used
        left = replace(
            known,
            only_appends=known.only_appends and (new is None or new.is_append_only),
            unused=0 if is_used else known.unused + (new is not None),
        )
        if left.runs:
            left = self._extended(arrangement, left, stateful_input, new)
        elif is_used and history is not None:
            left = self._rebuilt(arrangement, left, stateful_input, history, new)
        arrangement.record(left)

    # --- Rows of the state ---

    def extend_stored_rows(self, stateful_input: StatefulInput) -> CheckpointRows | None:
        """Add the rows of this pull to arranged state; None if the state has to be rebuilt from scratch."""
        arrangement, checkpoint, name = self._arrangement, self.rows.pull.checkpoint, self.rows.name(stateful_input)
        known = self.known(stateful_input) if _stores_top_rows(stateful_input) else None
        if arrangement is None or checkpoint is None or known is None or not known.runs:
            return None
        rows = known.num_rows + self._rows_new(stateful_input, arrangement)
        if (
            stateful_input.number in self._too_many
            or rows > worth_arranging.MAX_TIMES * checkpoint.arranged[name].count
        ):
            return None
        extended = self._extended(arrangement, known, stateful_input, self.rows.new(stateful_input))
        if not extended.runs:
            return None
        arrangement.record(extended)
        return CheckpointRows(arranged={name: checkpoint.arranged[name]})

    def arrange(self, stateful_input: StatefulInput, files: Sequence[StateFile]) -> CheckpointRows | None:
        """Arrange the stored rows of a stateful input; None if they stay in their files, since arranging does not pay.

        Args:
            stateful_input: the stateful input.
            files: its stored rows.
        """
        arrangement, name = self._arrangement, self.rows.name(stateful_input)
        if arrangement is None or not _stores_top_rows(stateful_input) or not self._can_be_arranged(stateful_input):
            return None
        count, known = sum(rows.count for _, rows in files), arrangement.known(name)
        too_many = 0 if known is None else known.too_many
        if stateful_input.number in self._too_many and known is not None:
            too_many = known.num_rows
        is_worth_it = count > 0 and worth_arranging.pays(count, too_many)
        if not is_worth_it or not all(rows.only_appends for _, rows in files):
            if too_many:
                arrangement.record(ArrangedRows(name, only_appends=True, too_many=too_many))
            return None
        all_rows = self.rows.of_files(stateful_input, [path for path, _ in files], is_append_only=True)
        with stage("arrangement"):
            schema, parts = sorted_entries(self._hashed(stateful_input, all_rows), count)
            rebuilt = arrangement.rebuilt(ArrangedRows(name, only_appends=True), schema, parts)
        if not rebuilt.runs:
            return None
        arrangement.record(rebuilt)
        return CheckpointRows(arranged={name: CheckpointFile(name, only_appends=True, count=count)})

    # --- Rows of history ---

    def _extended(
        self, arrangement: Arrangement, known: ArrangedRows, stateful_input: StatefulInput, new: Changes | None
    ) -> ArrangedRows:
        if stateful_input.number in self._too_many:
            return replace(known, runs=(), too_many=known.num_rows)
        if known.unused > _MAX_UNUSED or self._rows_new(stateful_input, arrangement) > _MAX_NEW_ROWS:
            return replace(known, runs=())
        if new is None:
            return known
        table = table_of(self._hashed(stateful_input, new))
        return arrangement.extended(known, entries_of(table))

    def _rebuilt(
        self,
        arrangement: Arrangement,
        known: ArrangedRows,
        stateful_input: StatefulInput,
        history: Changes,
        new: Changes | None,
    ) -> ArrangedRows:
        rows = self._rows_before(stateful_input, arrangement)
        if not worth_arranging.pays(rows, known.too_many):
            return known
        all_rows = union_changes(self.rows.catalyst, [changes for changes in (history, new) if changes is not None])
        frame = self._hashed(stateful_input, all_rows)
        schema, parts = sorted_entries(frame, rows)
        return arrangement.rebuilt(known, schema, parts)

    def _hashed(self, stateful_input: StatefulInput, changes: Changes) -> DataFrame:
        """Return rows in the layout of the engine's files, with the hashes of their keys."""
        catalyst = self.rows.catalyst
        *data, weight = columns(changes.plan)
        keys = {f"k{at}": key for at, key in self._keys(stateful_input)}
        selected = [catalyst.alias(column, f"c{at}") for at, column in enumerate(data)]
        selected.append(wide_weight(catalyst, weight))
        selected += [catalyst.alias(key, name) for name, key in keys.items()]
        plan = with_hash(catalyst, catalyst.project(selected, changes.plan), [*keys])
        left = [column for column in columns(plan) if column.name() not in keys]
        return catalyst.dataframe(catalyst.project(left, plan))

    # --- Conditions for arranging rows ---

    def _keys(self, stateful_input: StatefulInput) -> list[tuple[int, Node]]:
        keys = enumerate(self.fragment.keys[stateful_input.number])
        return [(at, key) for at, key in keys if key is not None]

    def _can_be_arranged(self, stateful_input: StatefulInput) -> bool:
        number = stateful_input.number
        if number not in self._arrangeable:
            self._arrangeable[number] = self._is_plain(stateful_input) and self._has_hashable_keys(stateful_input)
        return self._arrangeable[number]

    def _is_plain(self, stateful_input: StatefulInput) -> bool:
        pull = self.rows.pull
        is_looked_at_by_time = stateful_input.rules.complete_when or stateful_input.looked_up or stateful_input.log
        is_by_key = stateful_input.is_read_again or _stores_top_rows(stateful_input)
        if not is_by_key or is_looked_at_by_time or pull.correctable is not None:
            return False
        return not on_cluster(pull.catalyst.spark) and all(map(can_be_stored, stateful_input.columns))

    def _has_hashable_keys(self, stateful_input: StatefulInput) -> bool:
        """Return whether equal keys have equal hashes, across all stateful inputs of the fragment."""
        keys = self._keys(stateful_input)
        for at, key in keys:
            wanted = type_of(key)
            others = (input_keys[at] for input_keys in self.fragment.keys.values())
            if not is_hashable(wanted) or any(type_of(other) != wanted for other in others if other is not None):
                return False
        return bool(keys)

    def _rows_before(self, stateful_input: StatefulInput, arrangement: Arrangement) -> int:
        offsets = [source.prev_offset for source in self._inputs(stateful_input, arrangement)]
        return sum(last + 1 for last in offsets if last is not None)

    def _rows_new(self, stateful_input: StatefulInput, arrangement: Arrangement) -> int:
        return _num_new_rows(self._inputs(stateful_input, arrangement))

    def _inputs(self, stateful_input: StatefulInput, arrangement: Arrangement) -> list[TransformRequestInput]:
        """Return the inputs that a stateful input reads; all of them, if it reads the result of a fragment."""
        inputs = arrangement.request.query_inputs
        numbers = sources_read(stateful_input.plan)
        return [inputs[at] for at in numbers] if all(at < len(inputs) for at in numbers) else [*inputs]


def _stores_top_rows(stateful_input: StatefulInput) -> bool:
    return stateful_input.retention is Retention.TOP_ROWS


def _num_all_new_rows(arrangement: Arrangement) -> int:
    return _num_new_rows(arrangement.request.query_inputs)


def _num_new_rows(inputs: Sequence[TransformRequestInput]) -> int:
    intervals = [source.offset_interval for source in inputs]
    return sum(rows.num_rows for rows in intervals if rows is not None)


def _hash_name(stateful_input: StatefulInput) -> str:
    return f"h{stateful_input.number}"
