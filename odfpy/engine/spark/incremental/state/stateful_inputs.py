"""Rows of the stateful inputs of a fragment: new rows, earlier rows, and those that the next pull needs.

Earlier rows come from the state that the last pull stored, or from the history of the inputs; both give the same
results. The state holds the rows that can matter as long as no row comes late. The history is read when one does, and
for queries in which all rows matter for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.engine.spark.incremental.properties.keys import sources_read
from odfpy.engine.spark.incremental.properties.plan_info import Fragment, Retention, StatefulInput
from odfpy.engine.spark.incremental.properties.row_rules import any_of, is_complete
from odfpy.engine.spark.incremental.state.changes import (
    WEIGHT,
    Changes,
    net,
    union_changes,
    weight_of,
    with_identity_of,
)
from odfpy.engine.spark.incremental.state.groups import GroupRows
from odfpy.engine.spark.incremental.state.log import latest_event_time, log_of, log_over
from odfpy.engine.spark.incremental.state.pull import Pull
from odfpy.engine.spark.incremental.state.sessions import open_sessions
from odfpy.engine.spark.incremental.state.source_rows import SourceRows, leaf_over, net_source_rows
from odfpy.engine.spark.incremental.state.state_files import InputState, StateFile, files_of, num_unchanged, relevant
from odfpy.engine.spark.incremental.state.versions import differing
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns, type_of
from odfpy.engine.spark.plan.step import CARRIED_OPERATION
from odfpy.engine.spark.plan.times import Clock
from odfpy.engine.spark.plan.types import struct_of
from odfpy.engine.spark.row_by_row.carry import carry
from odfpy.engine.spark.rows.batches import has_rows
from odfpy.engine.spark.rows.stored import computed, read_stored, table_rows
from odfpy.stages import stage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_NEVER: Final = 1 << 63


@dataclass
class StatefulRows:
    """The rows of the stateful inputs of one fragment during a pull."""

    pull: Pull
    fragment: Fragment
    _new: dict[int, Changes | None] = field(default_factory=dict)
    _old: dict[int, Changes | None] = field(default_factory=dict)
    _history: dict[int, Changes | None] = field(default_factory=dict)
    _effective: dict[int, Changes] = field(default_factory=dict)
    _from_history: bool | None = None
    _groups: dict[int, GroupRows] = field(default_factory=dict)
    _sources: dict[int, SourceRows | None] = field(default_factory=dict)

    @property
    def catalyst(self) -> Catalyst:
        """The session."""
        return self.pull.catalyst

    def new(self, stateful_input: StatefulInput) -> Changes | None:
        """Return the changes of a stateful input in this pull."""
        if stateful_input.number not in self._new:
            # Read old rows first: the clock of a log continues from the greatest event time of its old rows.
            before = self.old(stateful_input) if stateful_input.log is not None else None
            latest = before.latest if before else None
            if stateful_input.is_read_again or stateful_input.groups is not None:
                new = self._run_stateless_plan(stateful_input, self._new_rows, latest)
            else:
                # Results and state are computed from these rows, so they are materialized; those of a log are in memory
                # already.
                with self._parallelism_of_new_rows(stateful_input):
                    new = self._run_stateless_plan(stateful_input, self._new_rows, latest)
                    new = new if stateful_input.log is not None else self._computed(new)
            self._new[stateful_input.number] = new
        return self._new[stateful_input.number]

    def old(self, stateful_input: StatefulInput) -> Changes | None:
        """Return the rows of a stateful input before this pull that can matter in it.

        Raises:
            HistoryNeeded: they have to be read from the history of the inputs, which the request lacks.
        """
        if self.pull.is_first:
            return None
        if stateful_input.retention is Retention.NOTHING or self.needs_history():
            return self.history(stateful_input)
        if stateful_input.number not in self._old:
            self._old[stateful_input.number] = (
                self._all_arranged_rows(stateful_input)
                if self.is_in_arrangement(stateful_input)
                else self._computed(self._stored_changes(stateful_input, self._files(stateful_input)))
            )
        return self._old[stateful_input.number]

    def compute_new(self, stateful_input: StatefulInput) -> None:
        """Materialize the changes of a stateful input without state, if they are few: they are read several times."""
        if stateful_input.is_read_again:
            self._new[stateful_input.number] = self._computed(self.new(stateful_input))

    def _computed(self, changes: Changes | None) -> Changes | None:
        """Materialize some rows if they are few, since several plans read them."""
        return changes and replace(changes, plan=computed(self.catalyst, changes.plan))

    def groups(self, stateful_input: StatefulInput) -> GroupRows:
        """Return the partial aggregates of a stateful input that has them."""
        if stateful_input.number not in self._groups:
            self._groups[stateful_input.number] = GroupRows(self, stateful_input)
        return self._groups[stateful_input.number]

    def history(self, stateful_input: StatefulInput) -> Changes | None:
        """Return all rows of a stateful input before this pull, from the history of the inputs."""
        if self.pull.is_first:
            return None
        if stateful_input.number not in self._history:
            self._history[stateful_input.number] = self._run_stateless_plan(
                stateful_input, lambda number: self.pull.streams[number].old()
            )
        return self._history[stateful_input.number]

    # --- Stored rows ---

    def name(self, stateful_input: StatefulInput) -> str:
        """Return the name of a stateful input's state."""
        # These words are those of earlier releases: existing checkpoints have them.
        return f"block-{self.fragment.source}-gate-{stateful_input.number}.parquet"

    def _files(self, stateful_input: StatefulInput) -> tuple[StateFile, ...]:
        """Return the state files of a stateful input."""
        checkpoint = self.pull.checkpoint
        return () if checkpoint is None else files_of(checkpoint.files, self.name(stateful_input))

    def is_in_arrangement(self, stateful_input: StatefulInput) -> bool:
        """Return whether, by the last checkpoint, the stored rows of a stateful input are in the arrangement."""
        return self.pull.checkpoint is not None and self.name(stateful_input) in self.pull.checkpoint.arranged

    def _all_arranged_rows(self, stateful_input: StatefulInput) -> Changes | None:
        """Return all rows in the arrangement; if it is missing or damaged, all rows of history."""
        arrangement, name = self.pull.arrangement, self.name(stateful_input)
        path = self.pull.scratch / f"all-{name}"
        known = None if arrangement is None else arrangement.known(name)
        if arrangement is None or known is None or not known.runs or not arrangement.write_all(name, path):
            return self.history(stateful_input)
        return self.of_files(stateful_input, [path], known.only_appends)

    def cached_history(self, stateful_input: StatefulInput) -> Changes | None:
        """Return all rows of a stateful input before this pull, if they have been read from history already."""
        return self._history.get(stateful_input.number)

    def of_files(self, stateful_input: StatefulInput, paths: Sequence[Path], is_append_only: bool) -> Changes:
        """Return rows, with their weights, from files that the engine has written.

        Args:
            stateful_input: the stateful input of the rows.
            paths: the files.
            is_append_only: whether all weights are 1.
        """
        plan = read_stored(self.catalyst, self._stored_schema(stateful_input), paths)
        return self._weighted(stateful_input, plan, is_append_only)

    def of_table(self, stateful_input: StatefulInput, table: pa.Table, path: Path, is_append_only: bool) -> Changes:
        """Return rows, with their weights, from a table.

        Args:
            stateful_input: the stateful input of the rows.
            table: the rows; other columns of the table are ignored.
            path: a file for the rows, if there are many.
            is_append_only: whether all weights are 1.
        """
        plan = table_rows(self.catalyst, self._stored_schema(stateful_input), table, path)
        return self._weighted(stateful_input, plan, is_append_only)

    def _weighted(self, stateful_input: StatefulInput, plan: Node, is_append_only: bool) -> Changes:
        named = [
            with_identity_of(self.catalyst, below, column)
            for below, column in zip(columns(plan), stateful_input.columns, strict=False)
        ]
        weight = self.catalyst.alias(columns(plan)[-1], WEIGHT)
        return Changes(self.catalyst.project([*named, weight], plan), is_append_only)

    def _stored_changes(self, stateful_input: StatefulInput, files: Sequence[StateFile]) -> Changes | None:
        if not files:
            return None
        paths = [path for path, _ in files]
        # Rows of a log have the weight 1, whatever their operation type.
        is_append_only = stateful_input.log is not None or all(rows.only_appends for _, rows in files)
        stored = self.of_files(stateful_input, paths, is_append_only)
        if stateful_input.log is not None:
            stored = replace(stored, latest=latest_event_time(map(str, paths), stateful_input))
        # Unchanged files still have rows that have been dropped since; no result may depend on these.
        return self._without_dropped_rows(stateful_input, stored, self.pull.before)

    def _stored_schema(self, stateful_input: StatefulInput) -> StructType:
        from pyspark.sql.types import LongType

        fields = [(f"c{at}", type_of(column)) for at, column in enumerate(stateful_input.columns)]
        return struct_of([*fields, (WEIGHT, LongType())])

    def needs_history(self) -> bool:
        """Return whether rows that are not in the state can matter: there is no state, or something comes late."""
        if self._from_history is None:
            self._from_history = not self.pull.is_first and (self.pull.checkpoint is None or self._has_late_rows())
        return self._from_history

    def _has_late_rows(self) -> bool:
        # Decided for all inputs at once: a late row on one side of a join needs rows that the other side has dropped.
        late, number = self.pull.late, self.fragment.source
        if number not in late and any(map(self._is_late, self.fragment.info.stateful_inputs)):
            late.add(number)
        return number in late

    def effective_changes(self, stateful_input: StatefulInput) -> Changes | None:
        """Return the changes of a stateful input in this pull, restricted to those that lookups can see."""
        new = self.new(stateful_input)
        if new is None or stateful_input.looked_up is None or stateful_input.looked_up.valid is None:
            return new
        if stateful_input.number not in self._effective:
            with self._parallelism_of_new_rows(stateful_input):
                plan = differing(self.catalyst, stateful_input.columns, new.plan, stateful_input.looked_up.valid)
                self._effective[stateful_input.number] = Changes(computed(self.catalyst, plan), is_append_only=False)
        return self._effective[stateful_input.number]

    def _parallelism_of_new_rows(self, stateful_input: StatefulInput) -> AbstractContextManager[None]:
        """Set the parallelism to the number of new rows of a stateful input, even if its earlier rows are many."""
        sources = [self._new_rows(number) for number in sources_read(stateful_input.plan)]
        return self.pull.parallelism.within(sum(rows.count for rows in sources if rows is not None))

    def _is_late(self, stateful_input: StatefulInput) -> bool:
        """Return whether a change of this pull may concern rows that are no longer stored."""
        if stateful_input.log is not None:
            return self._is_late_in_log(stateful_input)
        if stateful_input.top_rows is not None:
            new = self.new(stateful_input)
            # After a retraction, a row that was not among the first rows, and so was not stored, may be one of them.
            return new is not None and not new.is_append_only
        if not (stateful_input.rules.late_when or stateful_input.rules.drop_when):
            return False
        new = self.effective_changes(stateful_input)
        if new is None or self.on_time(stateful_input):
            return False
        catalyst, clock = self.catalyst, self.pull.before
        conditions = [rule.condition(clock) for rule in stateful_input.rules.late_when]
        if stateful_input.rules.drop_when and not new.is_append_only:
            less = catalyst.expression("LessThan", columns(new.plan)[-1], catalyst.integer(0))
            conditions += [catalyst.expression("And", less, is_complete(stateful_input.rules.drop_when, clock))]
        late = catalyst.filter(any_of(catalyst, conditions), new.plan)
        with stage("late rows"):
            return has_rows(catalyst, late)

    def _is_late_in_log(self, stateful_input: StatefulInput) -> bool:
        """Return whether changes of a log concern rows of the past that are no longer stored."""
        is_whole = stateful_input.top_rows is None or not all(
            rows.only_appends for _, rows in self._files(stateful_input)
        )
        return not is_whole and not (
            self._reads_only_appends(stateful_input) and self._is_after_watermarks(stateful_input)
        )

    def is_append_only(self, stateful_input: StatefulInput) -> bool:
        """Return whether all rows of a log so far are known to be appended."""
        if self.needs_history():
            return self._reads_only_appends(stateful_input, ever=True)
        return self._reads_only_appends(stateful_input) and all(
            rows.only_appends for _, rows in self._files(stateful_input)
        )

    def _reads_only_appends(self, stateful_input: StatefulInput, *, ever: bool = False) -> bool:
        """Return whether all rows of this pull are known to be appended; with `ever`, all earlier rows as well."""
        numbers = sources_read(stateful_input.plan)
        sources = [self._new_rows(number) for number in numbers]
        sources += [self.pull.streams[number].old() for number in numbers if ever]
        return all(rows is None or rows.is_append_only for rows in sources)

    def on_time(self, stateful_input: StatefulInput) -> bool:
        """Return whether all rows of this pull are known to be appended, and later than the watermarks before it."""
        new = self.new(stateful_input)
        return new is None or (new.is_append_only and self._is_after_watermarks(stateful_input))

    def _is_after_watermarks(self, stateful_input: StatefulInput) -> bool:
        """Return whether, by the statistics of the files, all rows of this pull are later than the watermarks."""
        for number in sources_read(stateful_input.plan):
            watermark, rows = self._watermark(number), self._new_rows(number)
            if rows is not None and watermark is not None and (rows.least_time or watermark) <= watermark:
                return False
        return True

    def _new_rows(self, number: int) -> SourceRows | None:
        if number not in self._sources:
            self._sources[number] = self.pull.streams[number].new()
        return self._sources[number]

    def _watermark(self, number: int) -> int | None:
        """Return the watermark of a source before this pull; of a fragment, a bound that no time exceeds."""
        watermarks = self.pull.before.watermarks
        return watermarks[number] if number < len(watermarks) else _NEVER

    def next_state(self, stateful_input: StatefulInput) -> InputState | None:
        """Return the state of a stateful input for the next pull; None if none is stored."""
        if stateful_input.retention is Retention.NOTHING:
            return None
        goes_on = self._has_all_stored_rows(stateful_input)
        files = self._files(stateful_input) if goes_on else ()
        staying = num_unchanged(files) if self.new(stateful_input) is not None else len(files)
        in_files = staying or (goes_on and self.needs_history())
        old = self._stored_changes(stateful_input, files[staying:]) if in_files else self.old(stateful_input)
        new = self.new(stateful_input)
        parts = [
            self._without_dropped_rows(stateful_input, changes, self.pull.after)
            for changes in (old, new)
            if changes is not None
        ]
        name, unchanged = self.name(stateful_input), files[:staying]
        if not parts:
            return InputState(name, unchanged)
        if stateful_input.rules.session is not None:
            scratch = self.pull.scratch / f"since-{name}"
            rows = open_sessions(self.catalyst, stateful_input, parts, self.pull.after, scratch)
            return InputState(name, unchanged, rows, is_append_only=False)
        everything = union_changes(self.catalyst, parts)
        is_append_only = everything.is_append_only
        if stateful_input.log is not None:
            is_append_only = self.is_append_only(stateful_input)
        # Rows of some files can be dropped without reading the others only if no rows are retracted.
        pays = old is not None or not unchanged
        is_known = (is_append_only and all(rows.only_appends for _, rows in unchanged)) or not (
            unchanged or stateful_input.log
        )
        rows = (
            relevant(self.pull.after, stateful_input, everything)
            if pays and is_known
            else net(self.catalyst, everything)
        )
        return InputState(name, unchanged, rows, is_append_only, sum(file.count for _, file in files[staying:]))

    def _has_all_stored_rows(self, stateful_input: StatefulInput) -> bool:
        """Return whether the stored rows still contain every earlier row that has to be stored.

        Dropping a row depends only on the row itself and on the watermark. So a late row on one side of a join does not
        affect the state of the other side.
        """
        if self.pull.is_first or self.pull.checkpoint is None or stateful_input.rules.session is not None:
            return False
        return not self.needs_history() or (stateful_input.log is None and stateful_input.top_rows is None)

    def _without_dropped_rows(self, stateful_input: StatefulInput, rows: Changes, clock: Clock) -> Changes:
        """Return the rows that need to be stored at the given watermarks."""
        if not stateful_input.rules.drop_when:
            return rows
        stays = self.catalyst.expression("Not", is_complete(stateful_input.rules.drop_when, clock))
        return replace(rows, plan=self.catalyst.filter(stays, rows.plan))

    # --- Stateless plans ---

    def _run_stateless_plan(
        self, stateful_input: StatefulInput, take: Callable[[int], SourceRows | None], latest: int | None = None
    ) -> Changes | None:
        """Run rows of the sources through the stateless plan of a stateful input; None if there are no rows.

        Args:
            stateful_input: the stateful input.
            take: returns the rows of a source by its number, None for no rows.
            latest: for a log, the greatest event time of its earlier rows, in microseconds.
        """
        read: dict[int, SourceRows | None] = {}

        def leaf(number: int, plan: Node) -> Node:
            if number not in read:
                rows = take(number)
                if rows is not None and self.pull.nets_rows and stateful_input.log is None:
                    rows = net_source_rows(self.catalyst, plan, rows)
                read[number] = rows
            return (leaf_over if stateful_input.log is None else log_over)(self.catalyst, plan, read[number])

        delta = carry(self.catalyst, stateful_input.plan, leaf)
        if self.pull.correctable is not None:
            delta = self.pull.correctable.limited(stateful_input, delta)
        rows = [source_rows for source_rows in read.values() if source_rows is not None]
        if not rows:
            return None
        if stateful_input.log is not None:
            return log_of(self.catalyst, stateful_input, delta.plan, latest)
        by_name = {column.name(): column for column in columns(delta.plan)[len(stateful_input.columns) :]}
        is_append_only = all(row.is_append_only for row in rows)
        weight = (
            self.catalyst.alias(self.catalyst.integer(1), WEIGHT)
            if is_append_only
            else weight_of(self.catalyst, by_name[CARRIED_OPERATION])
        )
        return Changes(self.catalyst.project([*stateful_input.columns, weight], delta.plan), is_append_only)
