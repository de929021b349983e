"""Schedulers, as a server knows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from odfpy.automation.failing_jobs import last_failures
from odfpy.automation.lock import SchedulerLock
from odfpy.automation.preview import Upcoming, upcoming_of
from odfpy.coordinator.storage.storage import Storage
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import OdfError


class Automations:
    """The schedulers of a server's workspaces."""

    def __init__(self, workspaces: Sequence[Workspace]) -> None:
        self.workspaces = tuple(workspaces)

    def holder(self, storage: Storage) -> str | None:
        """Return the scheduler that works in a workspace, in words."""
        return SchedulerLock(storage.odf / "automation").holder

    def failing(self, workspace: Workspace) -> set[str]:
        """Return ids of jobs' last runs that failed, as far as the scheduler remembers them.

        Args:
            workspace: the workspace.
        """
        return {row["id"] for row in last_failures(workspace)}

    def upcoming(self, datasets: Iterable[StoredDataset]) -> dict[str, list[Upcoming]]:
        """Return the next run of each job of some datasets, by their names.

        Args:
            datasets: the datasets.
        """
        found: dict[str, list[Upcoming]] = {}
        chosen = list(datasets)
        for workspace in self.workspaces:  # each one's memory of runs is read once
            own = [one for one in chosen if one.workspace_folder is workspace.storage]
            with suppress(OdfError):  # without that memory, nobody knows
                for run in upcoming_of(workspace, own, 1) if own else ():
                    found.setdefault(run.dataset, []).append(run)
        return found
