"""The dataset registry of a server: its datasets by name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import OdfError

_SETTLED: Final = 1_000_000_000
"""Nanoseconds after which a further change of a folder has a different time, despite the clock's resolution."""


class ServedRegistry:
    """The datasets of some workspaces; if several have one of the same name, that of the first workspace.

    Datasets that other processes create, rename or delete are noticed immediately.

    Attributes:
        storages: the workspaces.
    """

    def __init__(self, storages: Sequence[Storage]) -> None:
        self.storages = tuple(storages)
        self._found = _Found({}, ())

    def find(self, alias: DatasetAlias) -> StoredDataset | None:
        """Return the dataset of a name, None if there is none."""
        listing = self._found
        known = listing.datasets.get(alias)
        if known is not None and _still(known) and self._is_first(known, listing.stamps):
            return known.reloaded()
        self.refresh()
        return self._found.datasets.get(alias)

    def refresh(self) -> list[StoredDataset]:
        """Return the served datasets, each under a unique name; takes a second for ten thousand of them."""
        stamps = tuple(map(_stamp, self.storages))  # before the names: changes in between are noticed the next time
        known = {dataset.handle.alias: dataset for dataset in reversed(self.all())}
        self._found = _Found(known, stamps)  # one assignment: readers in other threads see the old or the new one
        return list(known.values())[::-1]

    def _is_first(self, dataset: StoredDataset, stamps: Sequence[int | None]) -> bool:
        """Return whether the workspaces before a dataset's own have unchanged names; this is cheap."""
        for storage, stamp in zip(self.storages, stamps, strict=True):
            if storage.root == dataset.workspace_folder.root:
                return True
            if stamp is None or _stamp(storage) != stamp:
                return False
        return True

    def storage_of(self, dataset: StoredDataset) -> Storage:
        """Return the workspace of a dataset."""
        return next(storage for storage in self.storages if storage.root == dataset.workspace_folder.root)

    def all(self) -> list[StoredDataset]:
        """Return all datasets, workspace by workspace, each sorted by name."""
        return [dataset for storage in self.storages for dataset in storage.datasets()]


@dataclass(frozen=True, slots=True)
class _Found:
    """The result of a scan of the workspaces.

    Attributes:
        datasets: datasets by name.
        stamps: stamps of the workspaces, taken before the scan.
    """

    datasets: dict[DatasetAlias, StoredDataset]
    stamps: tuple[int | None, ...]


def _still(dataset: StoredDataset) -> bool:
    """Return whether a dataset still exists under its name."""
    try:
        return StoredDataset.load(dataset.folder, dataset.workspace_folder).handle == dataset.handle
    except OdfError:
        return False


def _stamp(storage: Storage) -> int | None:
    """Return a number that changes with the names in a workspace; None if a change happened just now."""
    changed = storage.names_changed
    return changed if time.time_ns() - changed > _SETTLED else None
