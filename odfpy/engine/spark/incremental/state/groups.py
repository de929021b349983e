"""Groups that are remembered by partial results: what was known of them before a pull, and what is known after it.

Partial results are added up, so no row of a group is needed again, however late others come. Only where a function
gives back one of its values, and a row is taken away for the first time, all rows are read once more: from then on the
values are kept as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

from odfpy.engine.checkpoint import KeptRows
from odfpy.engine.spark.analysis.partial_aggregate import PartialAggregate
from odfpy.engine.spark.incremental.properties.plan_info import (
    CompletenessRule,
    Groups,
    StatefulInput,
    becomes_complete,
    is_complete,
)
from odfpy.engine.spark.incremental.state.changes import Changes, no_rows
from odfpy.engine.spark.incremental.state.pull import Pull
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns
from odfpy.engine.spark.plan.times import Clock
from odfpy.engine.spark.rows.batches import write_parquet
from odfpy.engine.spark.rows.effort import gather, read_plan
from odfpy.stages import stage


class InputRows(Protocol):
    """The rows of the stateful inputs of one fragment during a pull."""

    pull: Pull

    @property
    def catalyst(self) -> Catalyst:
        """The session."""
        ...

    def name(self, stateful_input: StatefulInput) -> str:
        """Return the name of what is kept of a stateful input."""
        ...

    def new(self, stateful_input: StatefulInput) -> Changes | None:
        """Return the changes of a stateful input in this pull."""
        ...

    def history(self, stateful_input: StatefulInput) -> Changes | None:
        """Return all rows of a stateful input before this pull."""
        ...


@dataclass
class GroupRows:
    """The partial results of one stateful input during a pull.

    Attributes:
        rows: the rows of the stateful inputs of its fragment.
        stateful_input: the stateful input, of which `groups` is not None.
    """

    rows: InputRows
    stateful_input: StatefulInput

    @property
    def _catalyst(self) -> Catalyst:
        return self.rows.catalyst

    @property
    def _groups(self) -> PartialAggregate:
        if self.stateful_input.groups is None:
            raise TypeError("rows of this stateful input are no groups")
        return self.stateful_input.groups

    @property
    def _name(self) -> str:
        return self.rows.name(self.stateful_input)

    @cached_property
    def _kept(self) -> tuple[Path, KeptRows] | None:
        return (self.rows.pull.kept or {}).get(self._name)

    @cached_property
    def _only_appended_before(self) -> bool:
        if self.rows.pull.kept is None:
            history = self.rows.history(self.stateful_input)
            return history is None or history.only_appends
        return self._kept is None or self._kept[1].only_appends

    @cached_property
    def only_appended(self) -> bool:
        """True if all rows that there ever were are known to be appended."""
        new = self.rows.new(self.stateful_input)
        return (new is None or new.only_appends) and self._only_appended_before

    @property
    def by_value(self) -> bool:
        """True if values are keys."""
        return not (self._groups.is_linear or self.only_appended)

    # --- Partial results ---

    @cached_property
    def new(self) -> Node | None:
        """Those of the rows of this pull, which are in a file by now."""
        changes = self.rows.new(self.stateful_input)
        return None if changes is None else self._written(f"new-{self._name}", self._of(changes))

    @cached_property
    def old(self) -> Node | None:
        """Those of all rows before.

        Raises:
            HistoryNeeded: they are not known, or not with their values.
        """
        pull = self.rows.pull
        if pull.is_first:
            return None
        if pull.kept is not None:
            if self._kept is None:
                return None
            path, kept = self._kept
            # Kept without values, and now a row is taken away: the least of the others cannot be known from the least
            # of all. So all rows are read once more, and from now on values are kept.
            if self._groups.is_linear or kept.only_appends == self.only_appended:
                return self._correctable(self._read(path))
        return self._of_history

    @cached_property
    def _of_history(self) -> Node | None:
        history = self.rows.history(self.stateful_input)
        return None if history is None else self._written(f"old-{self._name}", self._of(history))

    @property
    def all_old(self) -> Node | None:
        """Those of all rows before, also of windows for which no row counts any more.

        Raises:
            HistoryNeeded: as for `old`.
        """
        return self.old if self._over is None else self._of_history

    @cached_property
    def _over(self) -> Clock | None:
        pull = self.rows.pull
        return None if pull.correctable is None else pull.correctable.over(self.stateful_input, pull.before)

    def _correctable(self, plan: Node) -> Node:
        """Those that rows may still count for: others are not kept any longer."""
        if self._over is None:
            return plan
        return self._catalyst.filter(self._catalyst.expression("Not", is_complete(self._due, self._over)), plan)

    @cached_property
    def after(self) -> Node | None:
        """Those of all rows, with this pull's."""
        found = [plan for plan in (self.old, self.new) if plan is not None]
        if len(found) < 2:
            return next(iter(found), None)
        merged = self._groups.merged(gather(self._catalyst, self._catalyst.union(found)), by_value=self.by_value)
        return self._written(f"keep-{self._name}", merged)

    def keep(self) -> tuple[Path, KeptRows] | None:
        """Return what is kept for the next pull, None as long as there have been no rows."""
        if self.after is None:
            return None
        scratch = self.rows.pull.scratch
        names = (f"keep-{self._name}", f"new-{self._name}", f"old-{self._name}")
        # The first of them has all groups: those merged, those of this pull where there were none before, or those of
        # history where nothing is new.
        files = [path for path in (scratch / name for name in names) if path.exists()]
        path = files[0] if files else self._kept[0] if self._kept is not None else None
        return None if path is None else (path, KeptRows(self._name, self.only_appended))

    def of(self, plan: Node | None) -> Groups:
        """Some of these, or none."""
        if plan is None:
            rows = no_rows(self._catalyst, self.stateful_input.columns)
            plan = self._groups.with_group_columns(self._groups.of_rows(rows, by_value=self.by_value))
        return Groups(plan, self.by_value)

    def over_groups(self, expression: Node) -> Node:
        """An expression over the stateful input's keys, as one over partial results."""
        return self._groups.over_groups(expression)

    def is_complete(self, plan: Node, now: Clock, was: Clock | None) -> Node:
        """Those that are settled by now; only if they had not been by then, where a clock of then is given.

        Args:
            plan: the groups.
            now: the watermarks after the pull.
            was: the watermarks of which complete groups are left out, None for none.
        """
        condition = is_complete(self._due, now) if was is None else becomes_complete(self._due, was, now)
        return self._catalyst.filter(condition, plan)

    @property
    def _due(self) -> list[CompletenessRule]:
        return [
            replace(complete_when, value=self.over_groups(complete_when.value))
            for complete_when in self.stateful_input.complete_when
        ]

    # --- Files ---

    def _of(self, changes: Changes) -> Node:
        weight = None if changes.only_appends else columns(changes.plan)[-1]
        return self._groups.of_rows(changes.plan, weight, by_value=self.by_value)

    def _written(self, name: str, plan: Node) -> Node:
        frame = self._catalyst.dataframe(plan)
        path = self.rows.pull.scratch / name
        with stage("groups"):
            write_parquet(path, frame, even_if_empty=True)
        self._groups.schemas.setdefault(self.by_value, frame.schema)
        return self._read(path)

    def _read(self, path: Path) -> Node:
        catalyst, schemas = self._catalyst, self._groups.schemas
        if self.by_value not in schemas:
            schemas[self.by_value] = catalyst.dataframe(self.of(None).plan).schema
        plan = read_plan(catalyst, schemas[self.by_value], [path])
        return self._groups.with_group_columns(plan)
