"""The schedulers of a server's workspaces."""

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
        """Describe the scheduler that runs in a workspace."""
        return SchedulerLock(storage.odf / "automation").holder

    def failing(self, workspace: Workspace) -> set[str]:
        """Return ids of jobs whose last run failed, as far as the scheduler remembers.

        Args:
            workspace: the workspace.
        """
        return {row["id"] for row in last_failures(workspace)}

    def upcoming(self, datasets: Iterable[StoredDataset]) -> dict[str, list[Upcoming]]:
        """Return the next run of each job of some datasets, by name.

        Args:
            datasets: the datasets.
        """
        by_dataset: dict[str, list[Upcoming]] = {}
        chosen = list(datasets)
        for workspace in self.workspaces:  # each one's history of runs is read once
            own = [dataset for dataset in chosen if dataset.workspace_folder is workspace.storage]
            with suppress(OdfError):  # without that history, the next runs are unknown
                for run in upcoming_of(workspace, own, 1) if own else ():
                    by_dataset.setdefault(run.dataset, []).append(run)
        return by_dataset
