"""Changes in the workspace for a scheduler: schedules and inputs, both detected by modification times of a few files.

A check costs one `stat` for each relevant head, and one for all schedules together. All schedules are checked when
`odf schedule` or `odf add` has changed one, when a dataset was created or deleted, and every ten seconds.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from odfpy.automation.due import InputChanges, JobKey, needs_input_changes
from odfpy.automation.job_planner import Planned
from odfpy.chain.state import ChainState
from odfpy.coordinator.lineage.cycles import is_copy
from odfpy.coordinator.schedules.file import changed_path, load_schedule, schedule_path
from odfpy.coordinator.schedules.form import Target
from odfpy.coordinator.schedules.schedule import DatasetSchedule, Job
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.transform.empty_runs import has_unapplied_query, unread_inputs
from odfpy.coordinator.transform.intervals import InputDiverged, new_intervals, without_data
from odfpy.coordinator.transform.run import require_transform
from odfpy.data.timestamp import NANOS_PER_SECOND
from odfpy.errors import OdfError

SWEEP: Final = 10.0
"""Seconds after which all schedules are checked, even if no change was detected."""

_LOOK: Final = 0.9
"""Seconds between two checks of the heads."""

Stamp = tuple[int, int, int] | None
"""Identifies a version of a file; None if the file does not exist."""


@dataclass
class Watched:
    """A dataset with a schedule.

    Attributes:
        id: id of the dataset, as in the name of its folder.
        folder: folder of the dataset.
        stamp: stamp of the schedule's file.
        planned: the schedule; None if it cannot be read.
        heads: files of the heads that its jobs depend on, with their stamps.
        last_data: time of the latest rows, in seconds since the epoch.
        records: number of rows.
        trouble: why the schedule cannot be read.
    """

    id: str
    folder: Path
    stamp: Stamp
    planned: Planned | None = None
    heads: dict[str, Stamp] = field(default_factory=dict)
    last_data: float | None = None
    records: int = 0
    trouble: str | None = None


class WorkspaceWatcher:
    """Polls a workspace for changes.

    Attributes:
        watched: datasets with schedules, by id.
        stamps: stamps of files that change with schedules and datasets.
        swept: time of the last check of all schedules.
    """

    def __init__(self, storage: Storage, seen_rows: Callable[[JobKey], int], report: Callable[[str], object]) -> None:
        """
        Args:
            storage: the workspace.
            seen_rows: returns the number of rows that a job has already processed.
            report: called once for each schedule that cannot be read.
        """
        self.watched: dict[str, Watched] = {}
        self.stamps: tuple[Stamp, Stamp] = (None, None)
        self.swept: float | None = None
        self._next_look = 0.0
        self._storage = storage
        self._seen_rows = seen_rows
        self._report = report
        self._folder = str(storage.odf / "datasets")
        self._changed = str(changed_path(storage))

    def schedules(self, monotonic: float) -> Iterator[Watched]:
        """Yield the datasets whose schedule is new, changed, or removed (`planned` is None then).

        Args:
            monotonic: current time of the monotonic clock, in seconds.
        """
        stamps = (_stamp(self._changed), _stamp(self._folder))
        if stamps == self.stamps and self.swept is not None and monotonic - self.swept < SWEEP:
            return
        self.stamps, self.swept = stamps, monotonic
        gone = set(self.watched)
        for folder in self._storage.entries():
            stamp = _stamp(str(schedule_path(folder)))
            known = self.watched.get(folder.name)
            if stamp is None:
                continue
            gone.discard(folder.name)
            if known is None or known.stamp != stamp:
                watched = self.watched[folder.name] = self._read(folder, stamp)
                yield watched
            elif known.planned is None:  # it could not be read, and may have been fixed
                watched = self.watched[folder.name] = self._read(folder, stamp, known.trouble)
                if watched.planned is not None:
                    yield watched
        for dataset in gone:
            watched = self.watched.pop(dataset)
            watched.planned = None
            yield watched

    def moved(self, monotonic: float) -> Iterator[Watched]:
        """Yield the datasets that may have changes, since a head has moved; checks once a second.

        Args:
            monotonic: current time of the monotonic clock, in seconds.
        """
        if monotonic < self._next_look:
            return
        self._next_look = monotonic + _LOOK
        known: dict[str, Stamp] = {}
        for watched in self.watched.values():
            for path, stamp in watched.heads.items():
                if path not in known:
                    known[path] = _stamp(path)
                if known[path] != stamp:
                    yield watched
                    break

    def news(self, watched: Watched, now: float) -> Iterator[tuple[JobKey, InputChanges]]:
        """Yield the changes for each job of a dataset that depends on changes.

        Args:
            watched: the dataset.
            now: current time, in seconds since the epoch.
        """
        planned = watched.planned
        if planned is None:
            return
        watched.heads = {path: _stamp(path) for path in watched.heads}  # before the content is read
        try:
            dataset = StoredDataset.load(watched.folder, self._storage)
            state = dataset.state
        except OdfError:  # reported by its runs, and by `odf status`
            return
        paths = self._heads_of(dataset, planned.schedule, is_derivative=planned.is_derivative)
        watched.heads = {path: watched.heads.get(path) or _stamp(path) for path in paths}
        watched.records = state.num_records
        watched.last_data = None if state.last_data_time is None else state.last_data_time.nanos / NANOS_PER_SECOND
        for job, trigger in planned.schedule.jobs.items():
            if not needs_input_changes(job, trigger, is_derivative=planned.is_derivative):
                continue
            key = JobKey(watched.id, job)
            if job is Job.PULL:
                yield key, self._news_of_inputs(dataset, state, now)
            else:
                seen = self._seen_rows(key)
                rows = state.num_records - (seen if seen <= state.num_records else 0)
                yield key, InputChanges(rows, rows > 0, str(state.num_records), now)

    def look_at(self, folder: Path) -> Watched | None:
        """Read the schedule of one dataset; return None if it has none.

        Args:
            folder: folder of the dataset.
        """
        stamp = _stamp(str(schedule_path(folder)))
        return None if stamp is None else self._read(folder, stamp)

    # --- Helpers ---

    def _read(self, folder: Path, stamp: Stamp, reported_trouble: str | None = None) -> Watched:
        """Read a schedule, and report an error unless it has already been reported."""
        watched = Watched(folder.name, folder, stamp)
        try:
            schedule = load_schedule(folder)
            dataset = StoredDataset.load(folder, self._storage)
            target = Target.of(dataset.state, is_copy=is_copy(dataset))
        except OdfError as error:
            watched.trouble = f"not scheduled: {error.message}"
            if watched.trouble != reported_trouble:
                self._report(watched.trouble)
            return watched
        if schedule is None or stamp is None:  # removed in the meantime
            return watched
        watched.planned = Planned(schedule, stamp[2] / NANOS_PER_SECOND, target.is_derivative)
        watched.heads = dict.fromkeys(self._heads_of(dataset, schedule, is_derivative=target.is_derivative))
        return watched

    def _heads_of(self, dataset: StoredDataset, schedule: DatasetSchedule, *, is_derivative: bool) -> list[str]:
        """Return the files of the heads that jobs and freshness of a dataset depend on."""
        wants = [
            job
            for job, trigger in schedule.jobs.items()
            if needs_input_changes(job, trigger, is_derivative=is_derivative)
        ]
        folders = [dataset.folder] if wants or schedule.max_age is not None else []
        if Job.PULL in wants:
            folders += [self._storage.dataset_folder(one) for one in dataset.input_ids]
        return [str(folder / "refs" / "head") for folder in folders]

    def _news_of_inputs(self, dataset: StoredDataset, state: ChainState, now: float) -> InputChanges:
        try:
            intervals = new_intervals(self._storage, dataset, require_transform(dataset, state), state)
        except (InputDiverged, OdfError) as error:  # reported by the run
            return InputChanges(0, any=True, mark=f"{error.code} {error.message}"[:500], noticed=now)
        if without_data(intervals):
            return InputChanges(noticed=now)
        new = [source.interval for source in unread_inputs(dataset, state, intervals)]
        rows = sum(
            interval.new_offset - (-1 if interval.prev_offset is None else interval.prev_offset)
            for interval in new
            if interval.new_offset is not None
        )
        moved = [str(interval.new_block_hash) for interval in new if interval.new_block_hash is not None]
        has_changed = has_unapplied_query(dataset, state)
        mark = " ".join([*moved, "query" * has_changed])
        return InputChanges(rows, bool(moved) or has_changed, mark, now)


def _stamp(path: str) -> Stamp:
    with suppress(OSError):
        found = os.stat(path)  # noqa: PTH116  called a thousand times per second
        return found.st_ino, found.st_size, found.st_mtime_ns
    return None
