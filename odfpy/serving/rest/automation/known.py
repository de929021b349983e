"""Schedules and schedulers, as a server knows them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from odfpy.automation.agenda import Outcome
from odfpy.automation.lock import SchedulerLock
from odfpy.automation.preview import Upcoming, upcoming_of
from odfpy.automation.state import SchedulerState
from odfpy.coordinator.schedules.file import load_schedule, schedule_path
from odfpy.coordinator.schedules.schedule import DatasetSchedule
from odfpy.coordinator.storage.storage import Storage
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.errors import OdfError
from odfpy.serving.rest.catalog import CatalogEntry

_Stamp = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A dataset with a schedule.

    Attributes:
        entry: the dataset.
        schedule: its schedule; None where that cannot be read.
        problem: why it cannot.
    """

    entry: CatalogEntry
    schedule: DatasetSchedule | None
    problem: str | None = None

    def is_late(self, now: Timestamp) -> bool:
        """Return whether its last rows are older than promised.

        Args:
            now: the time.
        """
        return self.schedule is not None and self.schedule.is_late(self.entry.updated_at, now)


class KnownSchedules:
    """The schedules of a server's datasets, each read again when its file has changed. For all threads."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[_Stamp, DatasetSchedule | None, str | None]] = {}
        self._lock = Lock()

    def among(self, entries: Iterable[CatalogEntry]) -> Iterator[Scheduled]:
        """Yield those of some datasets that have a schedule.

        Args:
            entries: the datasets.
        """
        for entry in entries:
            found = self._find(entry.dataset.folder)
            if found is not None:
                yield Scheduled(entry, *found)

    def _find(self, folder: Path) -> tuple[DatasetSchedule | None, str | None] | None:
        try:
            status = os.stat(schedule_path(folder))  # noqa: PTH116  ten thousand of them, for a page
        except OSError:
            return None
        stamp = (status.st_ino, status.st_mtime_ns)
        with self._lock:
            known = self._known.get(folder)
        if known is None or known[0] != stamp:
            known = (stamp, *_read(folder))
            with self._lock:
                self._known[folder] = known
        return known[1], known[2]


def _read(folder: Path) -> tuple[DatasetSchedule | None, str | None]:
    try:
        return load_schedule(folder), None
    except OdfError as error:
        return None, error.message


class Automations:
    """The schedulers of a server's workspaces."""

    def __init__(self, workspaces: Sequence[Workspace]) -> None:
        self.workspaces = tuple(workspaces)
        self.schedules = KnownSchedules()

    def workspace_of(self, dataset: StoredDataset) -> Workspace:
        """Return the workspace that a dataset is in."""
        return next(one for one in self.workspaces if one.storage is dataset.workspace_folder)

    def holder(self, storage: Storage) -> str | None:
        """Return the scheduler that works in a workspace, in words."""
        return SchedulerLock(storage.odf / "automation").holder

    def failing(self, workspace: Workspace) -> set[str]:
        """Return ids of jobs' last runs that failed, as far as the scheduler remembers them.

        Args:
            workspace: the workspace.
        """
        folder = workspace.storage.odf / "automation"
        if not (folder / "state.db").exists():
            return set()
        with closing(SchedulerState(folder)) as state:
            ended = state.ended()
        last: dict[tuple[str, str], tuple[str, str]] = {}
        for row in ended:
            last.setdefault((row["dataset_id"], row["job"]), (row["outcome"], row["id"]))
        good = {outcome.value for outcome in Outcome if outcome.is_good}
        return {run_id for outcome, run_id in last.values() if outcome not in good}

    def upcoming(self, datasets: Iterable[StoredDataset]) -> dict[str, list[Upcoming]]:
        """Return the next run of each job of some datasets, by their folders' names.

        Args:
            datasets: the datasets.
        """
        found: dict[str, list[Upcoming]] = {}
        for dataset in datasets:
            with suppress(OdfError):  # a damaged one has no future
                found[dataset.folder.name] = list(upcoming_of(self.workspace_of(dataset), [dataset], 1))
        return found
