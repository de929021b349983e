"""Manually requested runs: executed by the active scheduler, or here if there is none."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from odfpy.automation.due import JobKey
from odfpy.automation.lock import SchedulerLock
from odfpy.automation.scheduler import Scheduler
from odfpy.automation.state import SchedulerState
from odfpy.coordinator.schedules.file import load_schedule, notify_changed
from odfpy.coordinator.schedules.schedule import Job
from odfpy.errors import DatasetNotFound, UsageError

if TYPE_CHECKING:
    from odfpy.coordinator.storage.storage import StoredDataset
    from odfpy.coordinator.workspace import Workspace

_LOOK: Final = 0.1


def run_now(workspace: Workspace, dataset: StoredDataset, job: Job | None = None) -> Mapping[str, Any]:
    """Run a job of a dataset now, wait for it, and return the row of the run.

    Args:
        workspace: the workspace.
        dataset: the dataset.
        job: the job; by default the only scheduled one, otherwise the pull.

    Raises:
        UsageError: several jobs are scheduled, and none is named.
        DatasetNotFound: the dataset was deleted in the meantime.
        StateUnusable: the scheduler's database is unusable.
    """
    key = JobKey(dataset.folder.name, job or _only_job(dataset))
    folder = workspace.storage.odf / "automation"
    state = SchedulerState(folder)
    request = str(uuid.uuid4())
    try:
        state.ask(request, key, time.time())
        notify_changed(workspace.storage)
        while (row := state.row(request)) is None:
            _require_there(dataset, key.job)
            # A request that still exists has not started; without an active scheduler, run it here.
            if SchedulerLock(folder).holder is None and request in state.requests():
                Scheduler(workspace).work(threading.Event(), once=True, only_requests=True)
            else:
                time.sleep(_LOOK)
    except BaseException:
        state.withdraw(request)
        raise
    finally:
        state.close()
    return row


def _require_there(dataset: StoredDataset, job: Job) -> None:
    if not dataset.folder.is_dir():
        raise DatasetNotFound(f"{dataset.handle} was deleted before its {job.value} began")


def _only_job(dataset: StoredDataset) -> Job:
    schedule = load_schedule(dataset.folder)
    jobs = list(schedule.jobs) if schedule is not None else []
    if len(jobs) > 1 and Job.PULL not in jobs:
        names = " or ".join(job.value for job in jobs)
        raise UsageError(f"{dataset.handle} has several jobs", hint=f"Select one with --job: {names}.")
    return Job.PULL if Job.PULL in jobs or not jobs else jobs[0]
