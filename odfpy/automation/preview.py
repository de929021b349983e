"""The upcoming runs of a workspace, computed from its schedules and the history of its jobs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from odfpy.automation.due import Due, JobHistory, JobKey, due
from odfpy.automation.job_planner import JobPlanner, Planned
from odfpy.automation.runs import time_text
from odfpy.automation.state import SchedulerState
from odfpy.automation.watch import WorkspaceWatcher
from odfpy.coordinator.schedules.cron import zone_named
from odfpy.coordinator.schedules.schedule import Trigger
from odfpy.dataset.names import all_of

if TYPE_CHECKING:
    from odfpy.coordinator.storage.stored_dataset import StoredDataset
    from odfpy.coordinator.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Upcoming:
    """An upcoming run.

    Attributes:
        dataset: name of the dataset.
        job: the job.
        at: its time, in UTC; None if that depends on rows that have not arrived.
        local: the time in the time zone of the schedule.
        trigger: description of the job's trigger.
    """

    dataset: str
    job: str
    at: str | None
    local: str | None
    trigger: str


def upcoming(
    workspace: Workspace, refs: str | Sequence[str], num: int, after: float | None = None
) -> Iterator[Upcoming]:
    """Yield the next runs of each job, assuming that each run starts when it is due.

    Args:
        workspace: the workspace.
        refs: names, ids and patterns of datasets; all if empty.
        num: number of runs for each job.
        after: time at which each job is assumed to have run; None to use its history.
    """
    storage = workspace.storage
    refs = all_of(refs)
    return upcoming_of(workspace, storage.match(refs) if refs else storage.datasets(), num, after)


def upcoming_of(
    workspace: Workspace, datasets: Iterable[StoredDataset], num: int, after: float | None = None
) -> Iterator[Upcoming]:
    """Yield the next runs for given datasets; see `upcoming`.

    Args:
        workspace: the workspace.
        datasets: the datasets; those without a schedule are skipped.
        num: number of runs for each job.
        after: time at which each job is assumed to have run; None to use its history.
    """
    planner = JobPlanner(parallel=1)
    planner.remember(_pasts(workspace))
    watcher = WorkspaceWatcher(workspace.storage, lambda key: planner.history_of(key).seen_rows, lambda _text: None)
    now = time.time()
    earliest = now if after is None else after
    for dataset in datasets:
        watched = watcher.look_at(dataset.folder)
        if watched is None or watched.planned is None or watched.planned.schedule.is_paused:
            continue
        planner.put(watched.id, watched.planned, now)
        for key, news in watcher.news(watched, now):
            planner.set_changes(key, news)
        for job, trigger in watched.planned.schedule.jobs.items():
            key = JobKey(watched.id, job)
            past = planner.history_of(key)
            # A past time may be before the schedule was written, which is nevertheless applied.
            planned = replace(watched.planned, since=min(watched.planned.since, earliest))
            first = planner.due_of(key) if after is None else _next(key, trigger, planned, past, after)
            times: list[float | None] = list(islice(_times(key, trigger, planned, past, first, earliest), num))
            for one in times or [None]:
                yield _upcoming(str(dataset.handle), key, trigger, one)


def _pasts(workspace: Workspace) -> Mapping[JobKey, JobHistory]:
    folder = workspace.storage.odf / "automation"
    if not (folder / "state.db").exists():  # nothing has run, and a preview must not create files
        return {}
    state = SchedulerState(folder)
    try:
        return state.pasts()
    finally:
        state.close()


def _times(
    key: JobKey, trigger: Trigger, planned: Planned, past: JobHistory, first: Due | None, earliest: float
) -> Iterator[float]:
    found = first
    while found is not None:
        yield max(found.at, earliest)
        if trigger.rows is not None:  # future changes are unknown
            return
        found = _next(key, trigger, planned, past, max(found.at, earliest))


def _next(key: JobKey, trigger: Trigger, planned: Planned, past: JobHistory, started: float) -> Due | None:
    """Return the due time of the run after another one."""
    return due(key, trigger, replace(past, started=started, retry_at=None), planned.since, None)


def _upcoming(name: str, key: JobKey, trigger: Trigger, at: float | None) -> Upcoming:
    if at is None:
        return Upcoming(name, key.job.value, None, None, trigger.in_words)
    try:
        local = datetime.fromtimestamp(int(at), zone_named(trigger.timezone)).isoformat()
    except (ValueError, OverflowError, OSError):  # dates end with the year 9999
        return Upcoming(name, key.job.value, None, None, trigger.in_words)
    return Upcoming(name, key.job.value, time_text(int(at)), local, trigger.in_words)
