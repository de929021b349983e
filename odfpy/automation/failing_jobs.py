"""Failed scheduled jobs for `odf status`, except for pulls, whose status it determines itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any

from odfpy.automation.runs import FAILED
from odfpy.automation.state import SchedulerState
from odfpy.coordinator.schedules.file import load_schedule
from odfpy.coordinator.schedules.schedule import Job
from odfpy.dataset.identity import DatasetId
from odfpy.errors import OdfError

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace


def last_failures(workspace: Workspace) -> Iterator[dict[str, Any]]:
    """Yield the rows of jobs whose last run failed or was interrupted, among the runs in the scheduler's database.

    Args:
        workspace: the workspace.
    """
    folder = workspace.storage.odf / "automation"
    if not (folder / "state.db").exists():
        return
    with closing(SchedulerState(folder)) as state:
        ended = state.ended()
    reported: set[tuple[str, str]] = set()
    for row in ended:  # newest first
        key = (row["dataset_id"], row["job"])
        if key not in reported and row["outcome"] in FAILED:
            yield row
        reported.add(key)


def failing_jobs(workspace: Workspace) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of failed, still scheduled jobs other than pulls, by id of the dataset.

    Args:
        workspace: the workspace.
    """
    found: dict[str, list[dict[str, Any]]] = {}
    for row in last_failures(workspace):
        if row["job"] != Job.PULL.value and _is_scheduled(workspace, row):
            found.setdefault(row["dataset_id"], []).append(row)
    return found


def _is_scheduled(workspace: Workspace, row: Mapping[str, Any]) -> bool:
    """Return whether the job of a run is still scheduled."""
    folder = workspace.storage.dataset_folder(DatasetId.parse(row["dataset_id"]))
    try:
        schedule = load_schedule(folder)
    except OdfError:
        return True
    return schedule is not None and Job(row["job"]) in schedule.jobs
