"""`/platform/automation`, `/platform/runs` and `/platform/schedules`: automation of all datasets of a server."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response

from odfpy.automation.history import RunFilter, last_runs
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.serving.callers.access import AnyCaller, Caller
from odfpy.serving.callers.tokens import Scope
from odfpy.serving.rest.automation.models import AutomationModel, LateModel, RunModel, ScheduleModel, run_model
from odfpy.serving.rest.automation.schedule import schedule_faults_as_responses, schedule_models
from odfpy.serving.rest.automation.schedulers import Automations
from odfpy.serving.rest.catalog import Catalog, CatalogEntry
from odfpy.serving.rest.datasets import TOTAL
from odfpy.serving.rest.models import answers

router = APIRouter(prefix="/platform", tags=["automation"])

_MAX_COUNT: Final = 100
"""Datasets that are late, and runs that fail, which one answer lists."""

Time = Annotated[str | None, Query(max_length=40, examples=["2026-03-15T06:00:00Z"])]


@router.get("/automation", responses=answers(401))
def automation(request: Request, caller: AnyCaller) -> AutomationModel:
    """Return whether a scheduler is running, and which datasets that the caller may read are late or failing."""
    known: Automations = request.app.state.automations
    now, scheduled = Timestamp.now(), _scheduled(request, caller)
    newest = _last_runs(request, caller, _MAX_COUNT)
    failing = {run_id for workspace in known.workspaces for run_id in known.failing(workspace)}
    failed = _last_runs(request, caller, _MAX_COUNT, only_failed=True) if failing else []
    return AutomationModel(
        scheduler=_scheduler(known, caller),
        numSchedules=len(scheduled),
        running=[run for run in newest if run.outcome == "running"],
        late=[_late(entry) for entry in scheduled if entry.is_late(now)][:_MAX_COUNT],
        failing=[run for run in failed if run.id in failing],
    )


@router.get("/runs", responses=answers(400, 401, 422))
def runs(
    request: Request,
    caller: AnyCaller,
    dataset: Annotated[str | None, Query(max_length=200, description="Name or id of a dataset.")] = None,
    outcome: Annotated[
        str | None, Query(pattern="^failed$", description="`failed`: only runs that failed or were interrupted.")
    ] = None,
    since: Annotated[Time, Query(description="Only runs that ended at this time or later.")] = None,
    until: Annotated[Time, Query(description="Only runs that ended at this time or before, for the next page.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of runs.")] = 100,
) -> list[RunModel]:
    """List the last runs for datasets that the caller may read: current runs first, then the newest."""
    with schedule_faults_as_responses():
        after, before = (None if text is None else Timestamp.parse(text) for text in (since, until))
    only_failed = outcome is not None
    return _last_runs(request, caller, limit, dataset=dataset, only_failed=only_failed, since=after, until=before)


@router.get(
    "/schedules",
    responses={
        200: {"headers": {TOTAL: {"description": "Number of datasets on all pages.", "schema": {"type": "integer"}}}},
        **answers(401, 422),
    },
)
def schedules(
    request: Request,
    response: Response,
    caller: AnyCaller,
    search: Annotated[str, Query(max_length=200, description="Part of the name, case-insensitive.")] = "",
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of datasets.")] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="Number of datasets to skip.")] = 0,
) -> list[ScheduleModel]:
    """List the schedules of datasets that the caller may read, by name, with the next run of each job."""
    fitting = [entry for entry in _scheduled(request, caller) if search.lower() in entry.name.lower()]
    response.headers[TOTAL] = str(len(fitting))
    return schedule_models(request.app.state.automations, fitting[offset : offset + limit])


def _scheduled(request: Request, caller: Caller) -> list[CatalogEntry]:
    """Return the datasets that the caller may read and that have a schedule, including unreadable schedules."""
    catalog: Catalog = request.app.state.catalog
    return [
        entry for entry in catalog.visible_to(caller) if entry.schedule is not None or entry.schedule_fault is not None
    ]


def _last_runs(
    request: Request,
    caller: Caller,
    num: int,
    *,
    dataset: str | None = None,
    only_failed: bool = False,
    since: Timestamp | None = None,
    until: Timestamp | None = None,
) -> list[RunModel]:
    """Return the last runs of all workspaces that the caller may see."""
    known: Automations = request.app.state.automations
    runs: list[RunModel] = []
    for workspace in known.workspaces:
        ids, name = _chosen(request, caller, workspace, dataset)
        chosen = RunFilter(dataset_ids=ids, name=name, only_failed=only_failed, since=since, until=until)
        is_own = caller.may(Scope.READ, workspace.storage)  # callers who may read `odf.runs`, too
        if ids is None or ids or name is not None:
            runs += [run_model(row, is_own=is_own) for row in last_runs(workspace, chosen, num=num)]
    if len(known.workspaces) > 1:
        runs.sort(key=lambda run: (run.outcome == "running", run.at), reverse=True)
    return runs[:num]


def _chosen(
    request: Request, caller: Caller, workspace: Workspace, dataset: str | None
) -> tuple[set[str] | None, str | None]:
    """Return ids of the datasets whose runs are requested, None for all, and the name of one that may be deleted."""
    may_all = caller.may(Scope.READ, workspace.storage)
    if dataset is None and may_all:
        return None, None
    catalog: Catalog = request.app.state.catalog
    entries = [
        candidate for candidate in catalog.visible_to(caller) if candidate.dataset.workspace_folder is workspace.storage
    ]
    ids = {str(entry.dataset.handle.id): entry.name for entry in entries}
    if dataset is None:
        return set(ids), None
    chosen = {candidate for candidate, name in ids.items() if dataset in (candidate, name)}
    if chosen or not may_all:
        return chosen, None
    return {dataset}, dataset


def _scheduler(known: Automations, caller: Caller) -> str | None:
    """Return the running scheduler; where it runs is only shown to callers with write access."""
    for workspace in known.workspaces:
        holder = known.holder(workspace.storage)
        if holder is not None:
            return holder if caller.may(Scope.WRITE, workspace.storage) else "works"
    return None


def _late(entry: CatalogEntry) -> LateModel:
    assert entry.schedule is not None  # noqa: S101  or nothing was promised
    updated = entry.updated_at
    return LateModel(
        dataset=entry.name,
        maxAge=str(entry.schedule.max_age),
        updatedAt=None if updated is None else str(updated),
    )
