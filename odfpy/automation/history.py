"""The runs of a workspace: those under way, and those that have ended."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from odfpy.automation.runs import Run, recorded_runs
from odfpy.automation.state import SchedulerState
from odfpy.data.timestamp import Timestamp
from odfpy.errors import DatasetNotFound
from odfpy.query.dialects import dialect_named

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace


def last_runs(
    workspace: Workspace,
    *,
    num: int,
    ref: str | None = None,
    only_failed: bool = False,
    since: Timestamp | None = None,
) -> list[dict[str, Any]]:
    """Return the last runs, those under way first, then the newest.

    Args:
        workspace: the workspace.
        num: how many at most.
        ref: name or id of a dataset, also of one that was deleted; any by default.
        only_failed: only those that failed or were interrupted.
        since: only those that have ended since then.
    """
    literal = dialect_named("datafusion").literal
    conditions = []
    dataset_id = None
    if ref is not None:
        try:
            dataset_id = str(workspace.storage.get(ref).handle.id)  # also runs under a former name
            conditions.append(f"dataset_id = {literal(dataset_id)}")
        except DatasetNotFound:
            conditions.append(f"(dataset = {literal(ref)} OR dataset_id = {literal(ref)})")
    if only_failed:
        conditions.append("outcome IN ('failed', 'interrupted')")
    if since is not None:
        conditions.append(f"at >= arrow_cast({literal(str(since))}, 'Timestamp(Millisecond, Some(\"UTC\"))')")
    under_way = [] if only_failed else _under_way(workspace, dataset_id, ref)
    wanted = max(0, num - len(under_way))
    ended = recorded_runs(workspace, num=wanted, condition=" AND ".join(conditions) or None) if wanted else iter(())
    return [*under_way[:num], *map(_plain, ended)]


def _under_way(workspace: Workspace, dataset_id: str | None, ref: str | None) -> list[dict[str, Any]]:
    folder = workspace.storage.odf / "automation"
    if not (folder / "state.db").exists():
        return []
    state = SchedulerState(folder)
    try:
        found = state.unfinished()
    finally:
        state.close()
    now = Timestamp.now().nanos / 1e9
    chosen: list[Run] = [run for run in reversed(found) if ref is None or run.dataset_id == dataset_id]
    return [run.row(None, now) for run in chosen]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: str(Timestamp.from_datetime(value)) if isinstance(value, datetime) else value
        for name, value in row.items()
    }
