"""The dataset registry of a server: the datasets that it has, by name."""

from __future__ import annotations

from collections.abc import Sequence

from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import OdfError


class ServedRegistry:
    """The datasets of some workspaces; of several of the same name, that of the first workspace.

    What others make, rename or delete is seen at once.

    Attributes:
        storages: the workspaces.
    """

    def __init__(self, storages: Sequence[Storage]) -> None:
        self.storages = tuple(storages)
        self._known: dict[DatasetAlias, StoredDataset] = {}

    def find(self, alias: DatasetAlias) -> StoredDataset | None:
        """The dataset of a name, None if there is none."""
        known = self._known.get(alias)
        if known is not None and _still(known):
            return known.reloaded()
        self.refresh()
        return self._known.get(alias)

    def refresh(self) -> list[StoredDataset]:
        """The datasets that are served, each under a name of its own; a second for ten thousand of them."""
        # Rebuilt as a whole: readers in other threads have the old one or the new one.
        self._known = {dataset.handle.alias: dataset for dataset in reversed(self.all())}
        return list(self._known.values())[::-1]

    def storage_of(self, dataset: StoredDataset) -> Storage:
        """The workspace of a dataset."""
        return next(one for one in self.storages if one.root == dataset.workspace_folder.root)

    def all(self) -> list[StoredDataset]:
        """All datasets, workspace by workspace, each in the order of their names."""
        return [dataset for storage in self.storages for dataset in storage.datasets()]


def _still(dataset: StoredDataset) -> bool:
    """Return whether a dataset is there under its name, and no other workspace's dataset comes before it."""
    try:
        return StoredDataset.load(dataset.folder, dataset.workspace_folder).handle == dataset.handle
    except OdfError:
        return False
