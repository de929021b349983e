"""Partial aggregates as state: one for each group, as of before a pull and as of after it.

A pull merges the partial aggregates of its new rows into the stored ones, so no earlier row is read again, however late
rows come. Functions that return one of their values (such as MIN) are the exception: when a row is retracted for the
first time, all rows are read once more, and from then on the values are stored as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from odfpy.engine.arrangement import ArrangedRows
from odfpy.engine.checkpoint import CheckpointFile, CheckpointRows
from odfpy.engine.spark.analysis.partial_aggregate import PartialAggregate
from odfpy.engine.spark.incremental.properties.plan_info import Fragment, Groups, StatefulInput
from odfpy.engine.spark.incremental.properties.row_rules import CompletenessRule, becomes_complete, is_complete
from odfpy.engine.spark.incremental.state import worth_arranging
from odfpy.engine.spark.incremental.state.arranged_groups import ArrangedGroups, can_be_arranged
from odfpy.engine.spark.incremental.state.changes import Changes, no_rows
from odfpy.engine.spark.incremental.state.hashes import (
    HASH,
    ROWS_AT_ONCE,
    entries_of,
    file_without_hash,
    sorted_entries,
    with_hash,
)
from odfpy.engine.spark.incremental.state.pull import Pull
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns
from odfpy.engine.spark.plan.times import Clock
from odfpy.engine.spark.rows.parallelism import gather, is_gathered
from odfpy.engine.spark.rows.stored import Stored, read_stored, table_rows
from odfpy.stages import stage
from odfpy.state.fingerprints import Entries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class InputRows(Protocol):
    """The rows of the stateful inputs of a fragment during a pull; `StatefulRows` implements it."""

    pull: Pull
    fragment: Fragment

    @property
    def catalyst(self) -> Catalyst:
        """The session."""
        ...

    def name(self, stateful_input: StatefulInput) -> str:
        """Return the name under which the state of a stateful input is stored."""
        ...

    def new(self, stateful_input: StatefulInput) -> Changes | None:
        """Return the changes of a stateful input in this pull."""
        ...

    def history(self, stateful_input: StatefulInput) -> Changes | None:
        """Return all rows of a stateful input before this pull."""
        ...


@dataclass
class GroupRows:
    """The partial aggregates of one stateful input during a pull.

    Attributes:
        rows: the rows of the stateful inputs of its fragment.
        stateful_input: the stateful input, of which `groups` is not None.
    """

    rows: InputRows
    stateful_input: StatefulInput
    _stored: dict[str, Stored] = field(default_factory=dict)

    @property
    def _catalyst(self) -> Catalyst:
        return self.rows.catalyst

    @property
    def _groups(self) -> PartialAggregate:
        if self.stateful_input.groups is None:
            raise TypeError("rows of this stateful input are not groups")
        return self.stateful_input.groups

    @property
    def _name(self) -> str:
        return self.rows.name(self.stateful_input)

    @cached_property
    def _checkpoint_file(self) -> CheckpointFile | None:
        """Return the entry of the last checkpoint for these groups; None if it has none, or there is no checkpoint."""
        checkpoint = self.rows.pull.checkpoint
        if checkpoint is None:
            return None
        in_file = checkpoint.files.get(self._name)
        return checkpoint.arranged.get(self._name) if in_file is None else in_file[1]

    @property
    def _checkpoint_path(self) -> Path | None:
        """Return the file of the last checkpoint with these groups; None if they are elsewhere."""
        checkpoint = self.rows.pull.checkpoint
        return checkpoint.files[self._name][0] if checkpoint is not None and self._name in checkpoint.files else None

    @cached_property
    def _arranged(self) -> ArrangedGroups | None:
        """Return the partial aggregates in the arrangement of the dataset; None if these cannot be arranged."""
        pull, name = self.rows.pull, self._name
        arrangement = pull.arrangement
        if arrangement is None or not can_be_arranged(pull, self.rows.fragment, self.stateful_input, self._groups):
            return None
        known = arrangement.known(name)
        fits = (
            pull.checkpoint is not None
            and name in pull.checkpoint.arranged
            and known is not None
            and known.runs
            and known.only_appends == pull.checkpoint.arranged[name].only_appends
        )
        return ArrangedGroups(arrangement, name, pull.scratch, known if fits else None)

    @cached_property
    def _only_appended_before(self) -> bool:
        if self.rows.pull.checkpoint is None:
            history = self.rows.history(self.stateful_input)
            return history is None or history.is_append_only
        return self._checkpoint_file is None or self._checkpoint_file.only_appends

    @cached_property
    def only_appended(self) -> bool:
        """True if all rows so far, of earlier pulls and of this one, are known to be appended."""
        new = self.rows.new(self.stateful_input)
        return (new is None or new.is_append_only) and self._only_appended_before

    @property
    def by_value(self) -> bool:
        """True if the partial aggregates also have values as keys, so that values can be retracted."""
        return not (self._groups.is_linear or self.only_appended)

    # --- Partial aggregates ---

    @cached_property
    def new(self) -> Node | None:
        """Return the partial aggregates of this pull, merged by group and materialized; None if there are none."""
        changes = self.rows.new(self.stateful_input)
        if changes is None:
            return None
        # Hashes are needed to look up groups, and to arrange them, which only pays for many.
        arranged = self._arranged
        hashed = arranged is not None and (arranged.known is not None or not is_gathered(self._catalyst.spark))
        return self._written(f"new-{self._name}", self._groups_of(changes), hashed=hashed)

    @cached_property
    def old(self) -> Node | None:
        """Return the partial aggregates of all earlier rows, merged by group; None if there are no earlier rows.

        If groups are looked up, only those of which this pull has rows are returned, and perhaps others.

        Raises:
            HistoryNeeded: the partial aggregates, or the values that they need now, are not stored.
        """
        earlier = self._earlier_unmerged
        return earlier if earlier is None or self._looked_up_groups is None else self._merged(earlier)

    @cached_property
    def _earlier_unmerged(self) -> Node | None:
        """Return partial aggregates as in `old`, but not merged: there may be several of one group."""
        pull = self.rows.pull
        if pull.is_first:
            return None
        if pull.checkpoint is not None:
            if self._checkpoint_file is None:
                return None
            if self._can_continue_from(self._checkpoint_file):
                if self._checkpoint_path is not None:
                    return self._still_correctable(self._read(self._checkpoint_path))
                if self._looked_up_groups is not None:
                    return self._looked_up_groups
                if self._is_arranged and self.new is None:
                    return None  # no group is affected
                if self._all_arranged is not None:
                    return self._all_arranged
        return self._all_of_history

    @property
    def _is_arranged(self) -> bool:
        """True if earlier groups are looked up in the arrangement."""
        arranged, file = self._arranged, self._checkpoint_file
        return (
            arranged is not None and arranged.known is not None and file is not None and self._can_continue_from(file)
        )

    def _can_continue_from(self, file: CheckpointFile) -> bool:
        # Without stored values, the minimum of the rows that remain after a retraction is unknown.
        return self._groups.is_linear or file.only_appends == self.only_appended

    @cached_property
    def _looked_up_groups(self) -> Node | None:
        """Return the earlier partial aggregates of the groups with new rows, perhaps several of one group.

        None if they cannot be looked up.
        """
        if self._arranged is None or not self._is_arranged or self.new is None:
            return None
        rows = self._arranged.look_up(self._new_stored.column(HASH))
        if rows is None:
            return None
        path = self.rows.pull.scratch / f"arranged-{self._name}"
        return self._groups.with_group_columns(table_rows(self._catalyst, self._schema, rows, path))

    @cached_property
    def _all_arranged(self) -> Node | None:
        """Return the partial aggregates of all earlier rows, from the arrangement; None if it does not have them."""
        path = None if self._arranged is None else self._arranged.write_all()
        return None if path is None else self._written(f"old-{self._name}", self._merged(self._read(path)))

    @cached_property
    def _all_of_history(self) -> Node | None:
        """Return the partial aggregates of all earlier rows, computed from input history; None for no rows."""
        history = self.rows.history(self.stateful_input)
        return None if history is None else self._written(f"old-{self._name}", self._groups_of(history))

    @property
    def all_groups_before(self) -> Node | None:
        """Return the partial aggregates of all earlier rows, with those of windows closed for corrections.

        Raises:
            HistoryNeeded: as for `old`.
        """
        if self._closed_by is not None:
            return self._all_of_history
        return self._all_arranged or self._all_of_history if self._is_arranged else self.old

    @cached_property
    def _closed_by(self) -> Clock | None:
        """Return the watermarks by which windows are closed even for corrections; None if all are still correctable."""
        pull = self.rows.pull
        return None if pull.correctable is None else pull.correctable.over(self.stateful_input, pull.before)

    def _still_correctable(self, plan: Node) -> Node:
        """Drop the partial aggregates of windows that are closed for corrections."""
        if self._closed_by is None:
            return plan
        return self._catalyst.filter(self._catalyst.expression("Not", is_complete(self._rules, self._closed_by)), plan)

    @cached_property
    def after(self) -> Node | None:
        """Return the partial aggregates after this pull, of all groups or only of looked-up ones, as `old` does."""
        parts = [plan for plan in (self._earlier_unmerged, self.new) if plan is not None]
        if len(parts) < 2:
            return next(iter(parts), None)
        merged = self._merged(self._catalyst.union(parts))
        # Looked-up groups are few and read only once, since the state stores the new ones: do not materialize them.
        return merged if self._looked_up_groups is not None else self._written(f"keep-{self._name}", merged)

    def _merged(self, plan: Node) -> Node:
        return self._groups.merged(gather(self._catalyst, plan), by_value=self.by_value)

    def store_state(self) -> CheckpointRows:
        """Store the partial aggregates for the next pull; none as long as there have been no rows."""
        arranged, file = self._arranged, self._checkpoint_file
        stays = self._is_arranged and (self.new is None or self._looked_up_groups is not None)
        if stays and arranged is not None and arranged.known is not None and file is not None:
            return self._extend_arrangement(arranged, arranged.known, file)
        if self.after is None:
            return CheckpointRows()
        names = (f"keep-{self._name}", f"new-{self._name}", f"old-{self._name}")
        # The first of these that was written has all groups: merged ones, new ones alone, or those of history.
        stored = next((self._stored[name] for name in names if name in self._stored), None)
        if stored is not None:
            return self._store_all_groups(stored)
        return CheckpointRows(
            {} if self._checkpoint_path is None or file is None else {self._name: (self._checkpoint_path, file)}
        )

    def _store_all_groups(self, stored: Stored) -> CheckpointRows:
        """Arrange the partial aggregates of all groups if there are many; otherwise store them in a file.

        Args:
            stored: the partial aggregates of all groups.
        """
        arranged, count = self._arranged, stored.count
        entry = CheckpointFile(self._name, self.only_appended, count)
        new = self._stored.get(f"new-{self._name}")
        if arranged is not None and arranged.pays(count, 0 if new is None else new.count):
            if not arranged.too_many:
                with stage("arrangement"):
                    rebuilt = arranged.make(*self._in_order(stored), self.only_appended)
                if rebuilt is not None:
                    arranged.arrangement.record(rebuilt)
                    return CheckpointRows(arranged={self._name: entry})
            arranged.arrangement.record(ArrangedRows(self._name, self.only_appended, too_many=count))
        elif arranged is not None and (known := arranged.arrangement.known(self._name)) is not None:
            arranged.arrangement.record(replace(known, runs=()))
        file = file_without_hash(stored, self.rows.pull.scratch / f"groups-{self._name}")
        return CheckpointRows({self._name: (file, entry)})

    def _extend_arrangement(
        self, arranged: ArrangedGroups, known: ArrangedRows, file: CheckpointFile
    ) -> CheckpointRows:
        """Add the partial aggregates of this pull to the arrangement; from time to time, merge those of each group."""
        new = self._new_stored if self._looked_up_groups is not None else None
        rows = known.num_rows + (0 if new is None else new.count)
        with stage("arrangement"):
            are_many = rows > worth_arranging.MAX_TIMES * file.count
            if are_many and self.new is not None and self._all_arranged is not None:
                name = f"all-groups-{self._name}"
                all_groups = self._merged(self._catalyst.union([self._all_arranged, self.new]))
                self._written(name, all_groups)
                stored = self._stored[name]
                rebuilt = arranged.make(*self._in_order(stored), self.only_appended)
                if rebuilt is not None:
                    arranged.arrangement.record(rebuilt)
                    compacted = CheckpointFile(self._name, self.only_appended, stored.count)
                    return CheckpointRows(arranged={self._name: compacted})
            arranged.arrangement.record(arranged.extend(known, None if new is None else new.table, self.only_appended))
        return CheckpointRows(arranged={self._name: replace(file, only_appends=self.only_appended)})

    def of(self, plan: Node | None) -> Groups:
        """Return some partial aggregates in the form that operators read; None stands for no rows."""
        if plan is None:
            rows = no_rows(self._catalyst, self.stateful_input.columns)
            plan = self._groups.with_group_columns(self._groups.of_rows(rows, by_value=self.by_value))
        return Groups(plan, self.by_value)

    def over_groups(self, expression: Node) -> Node:
        """Translate an expression over the keys of the stateful input to one over partial aggregates."""
        return self._groups.over_groups(expression)

    def complete(self, plan: Node, now: Clock, was: Clock | None) -> Node:
        """Return partial aggregates of groups that are complete now and, given an earlier clock, were not then.

        Args:
            plan: partial aggregates.
            now: the watermarks after the pull.
            was: the watermarks before the pull, whose complete groups are left out; None to leave out none.
        """
        condition = is_complete(self._rules, now) if was is None else becomes_complete(self._rules, was, now)
        return self._catalyst.filter(condition, plan)

    @property
    def _rules(self) -> list[CompletenessRule]:
        """Return the rules of which any one makes a group complete, over partial aggregates."""
        return [replace(rule, value=self.over_groups(rule.value)) for rule in self.stateful_input.rules.complete_when]

    # --- Files ---

    def _groups_of(self, changes: Changes) -> Node:
        """Return the partial aggregates of some rows, merged by group."""
        weight = None if changes.is_append_only else columns(changes.plan)[-1]
        return self._groups.of_rows(changes.plan, weight, by_value=self.by_value)

    @property
    def _new_stored(self) -> Stored:
        return self._stored[f"new-{self._name}"]

    def _written(self, name: str, plan: Node, *, hashed: bool = False) -> Node:
        """Materialize partial aggregates in a file, with hashes of their groups if requested."""
        frame = self._catalyst.dataframe(plan)
        if self.by_value not in self._groups.schemas:
            self._groups.schemas[self.by_value] = frame.schema
        with stage("groups"):
            path = self.rows.pull.scratch / name
            self._stored[name] = Stored(self._catalyst, self._hashed(plan) if hashed else frame, path)
        return self._with_group_columns(self._stored[name])

    def _in_order(self, stored: Stored) -> tuple[pa.Schema, Iterator[Entries]]:
        """Return stored partial aggregates in the order of their hashes, and their schema."""
        if HASH not in stored.names or stored.count > ROWS_AT_ONCE:
            return sorted_entries(self._hashed(self._with_group_columns(stored)), stored.count)
        entries = entries_of(stored.table.select([*self._schema.names, HASH]))
        return entries.rows.schema, iter([entries])

    def _with_group_columns(self, stored: Stored) -> Node:
        """Return stored partial aggregates, with their columns in the order that files have."""
        plan, names = stored.plan, self._groups.schemas[self.by_value].names
        by_name = {column.name(): column for column in columns(plan)}
        return self._groups.with_group_columns(self._catalyst.project([by_name[name] for name in names], plan))

    def _hashed(self, plan: Node) -> DataFrame:
        return self._catalyst.dataframe(with_hash(self._catalyst, plan, self._groups.keys))

    @property
    def _schema(self) -> StructType:
        """Return the schema of partial aggregates in files."""
        schemas = self._groups.schemas
        if self.by_value not in schemas:
            schemas[self.by_value] = self._catalyst.dataframe(self.of(None).plan).schema
        return schemas[self.by_value]

    def _read(self, path: Path) -> Node:
        return self._groups.with_group_columns(read_stored(self._catalyst, self._schema, [path]))
