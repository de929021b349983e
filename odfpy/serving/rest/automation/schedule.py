"""`/{dataset}/schedule` and `/{dataset}/runs`: the schedule of a dataset, and manually started runs."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request

from odfpy.automation.due import JobKey
from odfpy.automation.state import SchedulerState
from odfpy.coordinator.schedules.file import load_schedule, notify_changed, schedule_text
from odfpy.coordinator.schedules.keeping import drop_schedule, keep_schedule, parse_schedule
from odfpy.coordinator.schedules.schedule import DatasetSchedule, Job
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.names import is_url
from odfpy.errors import InvalidValue, MalformedManifest, UsageError
from odfpy.repository.locations.open import is_path
from odfpy.serving.callers.access import DatasetTarget, Readable, Writable
from odfpy.serving.http.errors import Refused
from odfpy.serving.rest.automation.models import AskedModel, NewScheduleModel, ScheduleModel, UpcomingModel
from odfpy.serving.rest.automation.schedulers import Automations
from odfpy.serving.rest.catalog import CatalogEntry, entry_of
from odfpy.serving.rest.models import answers

router = APIRouter(tags=["automation"])

_WRITES = answers(400, 401, 403, 404, 422)


@router.get("/schedule", responses=answers(401, 404))
def schedule(request: Request, dataset: Readable) -> ScheduleModel:
    """Return the schedule of the dataset, with the next run of each job."""
    return _described(request, dataset)


@router.put("/schedule", responses=_WRITES)
def keep(request: Request, target: Writable, body: NewScheduleModel) -> ScheduleModel:
    """Set the schedule of the dataset; needs the scope write. It can only push to repositories of the workspace."""
    dataset = _existing(target)
    with schedule_faults_as_responses():
        new = parse_schedule(body.yaml)
        _require_repository(new)
        keep_schedule(dataset, new)
    return _described(request, dataset)


@router.put("/schedule/paused", responses=_WRITES)
def pause(
    request: Request, target: Writable, value: Annotated[bool, Query(description="Whether to pause it.")]
) -> ScheduleModel:
    """Pause or resume the schedule of the dataset; needs the scope write."""
    dataset = _existing(target)
    schedule = load_schedule(dataset.folder)
    if schedule is None:
        raise HTTPException(404, "The dataset has no schedule")
    if schedule.is_paused != value:
        keep_schedule(dataset, replace(schedule, paused=True if value else None))
    return _described(request, dataset)


@router.delete("/schedule", responses=_WRITES)
def remove(request: Request, target: Writable) -> ScheduleModel:
    """Remove the schedule of the dataset, if it has one; needs the scope write."""
    dataset = _existing(target)
    drop_schedule(dataset)
    return _described(request, dataset)


@router.post("/runs", status_code=202, responses={**_WRITES, **answers(409)})
def ask(
    request: Request, target: Writable, job: Annotated[Job, Query(description="A job of the schedule.")]
) -> AskedModel:
    """Run a job of the schedule now, in the active scheduler; needs the scope write."""
    dataset = _existing(target)
    schedule = load_schedule(dataset.folder)
    if schedule is None or job not in schedule.jobs:
        raise HTTPException(404, f"The schedule of the dataset has no {job.value}")
    automations: Automations = request.app.state.automations
    if automations.holder(target.storage) is None:
        raise HTTPException(409, "No scheduler is running: start `odf run`, or `odf serve --run`")
    run_id = str(uuid.uuid4())
    with closing(SchedulerState(target.storage.odf / "automation")) as state:
        state.ask(run_id, JobKey(dataset.folder.name, job), time.time())
    notify_changed(target.storage)
    return AskedModel(id=run_id)


@contextmanager
def schedule_faults_as_responses() -> Iterator[None]:
    """Translate errors in a client's schedule into responses.

    Raises:
        Refused: 400, with the error, its position, and a remedy.
    """
    try:
        yield
    except (MalformedManifest, InvalidValue, UsageError) as error:
        raise Refused.of(400, error) from error


def schedule_models(automations: Automations, entries: Sequence[CatalogEntry]) -> list[ScheduleModel]:
    """Convert schedules for a response, with the next run of each job.

    Args:
        automations: the schedulers of the server.
        entries: the datasets.
    """
    now, upcoming = Timestamp.now(), automations.upcoming(entry.dataset for entry in entries)
    return [
        ScheduleModel(
            dataset=entry.name,
            yaml=None if entry.schedule is None else schedule_text(entry.schedule),
            isPaused=entry.schedule is not None and entry.schedule.is_paused,
            maxAge=None if entry.schedule is None or entry.schedule.max_age is None else str(entry.schedule.max_age),
            isLate=entry.is_late(now),
            problem=entry.schedule_fault,
            upcoming=_paused_jobs(entry)
            or [
                UpcomingModel(job=run.job, trigger=run.trigger, at=run.at, local=run.local)
                for run in upcoming.get(entry.name, ())
            ],
        )
        for entry in entries
    ]


def _paused_jobs(entry: CatalogEntry) -> list[UpcomingModel]:
    """Return the jobs of a paused schedule: none of them has a next run."""
    if entry.schedule is None or not entry.schedule.is_paused:
        return []
    jobs = entry.schedule.jobs.items()
    return [UpcomingModel(job=job.value, trigger=trigger.in_words, at=None, local=None) for job, trigger in jobs]


def _described(request: Request, dataset: StoredDataset) -> ScheduleModel:
    automations: Automations = request.app.state.automations
    entry = entry_of(dataset.reloaded())
    if entry is None:
        raise HTTPException(404, "There is no dataset of that name yet")
    (model,) = schedule_models(automations, [entry])
    return model


def _existing(target: DatasetTarget) -> StoredDataset:
    if target.dataset is None:
        raise HTTPException(404, "Dataset not found, or this token may not read it")
    return target.dataset


def _require_repository(schedule: DatasetSchedule) -> None:
    """Check that an uploaded schedule lets this machine neither write to its own folders nor call arbitrary servers."""
    to = schedule.push.to if schedule.push is not None else None
    if to is not None and (is_url(to) or is_path(to)):
        raise UsageError(
            f"Over the network, a schedule pushes only to repositories of the workspace, not to {to}",
            hint="Name one that `odf repo list` shows, or set it with `odf schedule set` on the server.",
        )
