"""The runs of a workspace: those under way, and those that have ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from odfpy.automation.runs import recorded_runs
from odfpy.automation.state import SchedulerState
from odfpy.data.timestamp import NANOS_PER_SECOND, Timestamp
from odfpy.errors import DatasetNotFound
from odfpy.query.dialects import dialect_named

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace

_FAILED: Final = ("failed", "interrupted")


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
    chosen = _Chosen(_id_of(workspace, ref), ref, only_failed, since)
    under_way, ended = _remembered(workspace)
    rows = {row["id"]: row for row in ended if chosen.has(row)}  # some of them may not be in the dataset yet
    for row in recorded_runs(workspace, num=num, condition=chosen.condition):
        rows.setdefault(row["id"], _plain(row))
    newest = sorted(rows.values(), key=lambda row: str(row["at"]), reverse=True)
    return [*filter(chosen.has, under_way), *newest][:num]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The runs that are asked for: in SQL, and one by one."""

    dataset_id: str | None
    ref: str | None
    only_failed: bool
    since: Timestamp | None

    @property
    def condition(self) -> str | None:
        literal = dialect_named("datafusion").literal
        parts = []
        if self.dataset_id is not None:  # also runs under a former name
            parts.append(f"dataset_id = {literal(self.dataset_id)}")
        elif self.ref is not None:
            parts.append(f"(dataset = {literal(self.ref)} OR dataset_id = {literal(self.ref)})")
        if self.only_failed:
            parts.append(f"outcome IN ({', '.join(map(literal, _FAILED))})")
        if self.since is not None:
            parts.append(f"at >= arrow_cast({literal(str(self.since))}, 'Timestamp(Millisecond, Some(\"UTC\"))')")
        return " AND ".join(parts) or None

    def has(self, row: Mapping[str, Any]) -> bool:
        if self.dataset_id is not None and row["dataset_id"] != self.dataset_id:
            return False
        if self.dataset_id is None and self.ref is not None and self.ref not in (row["dataset"], row["dataset_id"]):
            return False
        if self.only_failed and row["outcome"] not in _FAILED:
            return False
        return self.since is None or Timestamp.parse(row["at"]) >= self.since


def _id_of(workspace: Workspace, ref: str | None) -> str | None:
    """The id of a dataset; None if it is not there any more, so that only its name is known."""
    try:
        return None if ref is None else str(workspace.storage.get(ref).handle.id)
    except DatasetNotFound:
        return None


def _remembered(workspace: Workspace) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of runs under way, and of the last ones that have ended, the newest first."""
    folder = workspace.storage.odf / "automation"
    if not (folder / "state.db").exists():
        return [], []
    state = SchedulerState(folder)
    try:
        now = Timestamp.now().nanos / NANOS_PER_SECOND
        return [run.row(None, now) for run in reversed(state.unfinished())], state.ended()
    finally:
        state.close()


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: str(Timestamp.from_datetime(value)) if isinstance(value, datetime) else value
        for name, value in row.items()
    }
