"""The runs of a workspace: those in progress, and completed ones.

The newest runs are in the scheduler's database, older ones in the dataset of runs. A run that has just ended may be in
both.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from odfpy.automation.runs import FAILED, RUNS
from odfpy.automation.state import SchedulerState
from odfpy.data.timestamp import NANOS_PER_SECOND, Timestamp
from odfpy.errors import DatasetNotFound
from odfpy.query.dialects import dialect_named

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace

_TIME: Final = 'Timestamp(Millisecond, Some("UTC"))'


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """A filter for runs.

    Attributes:
        dataset_ids: ids of datasets; None for all.
        name: name of a deleted dataset whose runs are included.
        only_failed: whether to include only runs that failed or were interrupted.
        since: minimum end time of runs.
        until: maximum end time of runs.
    """

    dataset_ids: Collection[str] | None = None
    name: str | None = None
    only_failed: bool = False
    since: Timestamp | None = None
    until: Timestamp | None = None

    @classmethod
    def of(
        cls, workspace: Workspace, ref: str | None, *, only_failed: bool = False, since: Timestamp | None = None
    ) -> RunFilter:
        """Return a filter for the runs of one dataset, which may be deleted, or of all.

        Args:
            workspace: the workspace.
            ref: name or id of the dataset; None for all.
            only_failed: whether to include only runs that failed or were interrupted.
            since: minimum end time of runs.
        """
        if ref is None:
            return cls(only_failed=only_failed, since=since)
        try:
            found = str(workspace.storage.get(ref).handle.id)  # includes runs under a former name
        except DatasetNotFound:
            return cls(dataset_ids=(ref,), name=ref, only_failed=only_failed, since=since)
        return cls(dataset_ids=(found,), only_failed=only_failed, since=since)

    def takes(self, row: Mapping[str, Any]) -> bool:
        """Return whether a run matches the filter."""
        if self.dataset_ids is not None and row["dataset_id"] not in self.dataset_ids and row["dataset"] != self.name:
            return False
        if self.only_failed and row["outcome"] not in FAILED:
            return False
        at = Timestamp.parse(row["at"])
        return (self.since is None or at >= self.since) and (self.until is None or at <= self.until)

    def condition(self, but: Collection[str]) -> str | None:
        """Return the filter as an SQL condition for the dataset of runs.

        Args:
            but: ids of runs to exclude.
        """
        literal = dialect_named("datafusion").literal
        conditions = []
        if self.dataset_ids is not None:
            ids = ", ".join(map(literal, sorted(self.dataset_ids))) or "NULL"
            name = "" if self.name is None else f" OR dataset = {literal(self.name)}"
            conditions.append(f"(dataset_id IN ({ids}){name})")
        if self.only_failed:
            conditions.append(f"outcome IN ({', '.join(map(literal, FAILED))})")
        for operator, time in ((">=", self.since), ("<=", self.until)):
            if time is not None:
                conditions.append(f"at {operator} arrow_cast({literal(str(time))}, '{_TIME}')")
        if but:
            conditions.append(f"id NOT IN ({', '.join(map(literal, sorted(but)))})")
        return " AND ".join(conditions) or None


ALL: Final = RunFilter()
"""Runs of all datasets."""


def last_runs(workspace: Workspace, chosen: RunFilter = ALL, *, num: int) -> list[dict[str, Any]]:
    """Return the latest runs: running ones first, then newest first.

    Args:
        workspace: the workspace.
        chosen: the filter.
        num: maximum number of items.
    """
    known = _known(workspace)
    found = list(islice((row for row in known if chosen.takes(row)), num))
    missing = num - len(found)
    if missing > 0:
        but = {row["id"] for row in known}
        found += map(_plain, recorded_runs(workspace, num=missing, condition=chosen.condition(but)))
    return found


def check_dataset_known(workspace: Workspace, ref: str) -> None:
    """Check that a dataset exists, or that a deleted one had runs.

    Args:
        workspace: the workspace.
        ref: name or id of the dataset.

    Raises:
        DatasetNotFound: neither; with a suggestion.
    """
    if not last_runs(workspace, RunFilter.of(workspace, ref), num=1):
        workspace.storage.get(ref)


def recorded_runs(workspace: Workspace, *, num: int, condition: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the latest runs in the dataset of runs, newest first.

    Args:
        workspace: the workspace.
        num: maximum number of items.
        condition: SQL condition over the columns.
    """
    RUNS.ingest(workspace)
    return RUNS.records(workspace, num=num, condition=condition)


def _known(workspace: Workspace) -> list[dict[str, Any]]:
    """Return the runs in the scheduler's database."""
    folder = workspace.storage.odf / "automation"
    if not (folder / "state.db").exists():
        return []
    state = SchedulerState(folder)
    try:
        return [*_under_way(state), *state.ended()]
    finally:
        state.close()


def _under_way(state: SchedulerState) -> Iterator[dict[str, Any]]:
    now = Timestamp.now().nanos / NANOS_PER_SECOND
    return (run.row(None, now) for run in reversed(state.unfinished()))


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: str(Timestamp.from_datetime(value)) if isinstance(value, datetime) else value
        for name, value in row.items()
    }
