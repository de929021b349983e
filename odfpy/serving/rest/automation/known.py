"""Schedulers, as a server knows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from odfpy.automation.lock import SchedulerLock
from odfpy.automation.preview import Upcoming, upcoming_of
from odfpy.automation.troubles import last_failures
from odfpy.coordinator.storage.storage import Storage
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import OdfError


class Automations:
    """The schedulers of a server's workspaces."""

    def __init__(self, workspaces: Sequence[Workspace]) -> None:
        self.workspaces = tuple(workspaces)

    def workspace_of(self, dataset: StoredDataset) -> Workspace:
        """Return the workspace that a dataset is in."""
        return next(one for one in self.workspaces if one.storage is dataset.workspace_folder)

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
        """Return the next run of each job of some datasets, by their folders' names.

        Args:
            datasets: the datasets.
        """
        found: dict[str, list[Upcoming]] = {}
        for dataset in datasets:
            with suppress(OdfError):  # a damaged one has no future
                found[dataset.folder.name] = list(upcoming_of(self.workspace_of(dataset), [dataset], 1))
        return found
