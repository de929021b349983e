"""Known places of a workspace: named repositories, and where its datasets are pulled from and pushed to."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.http.url import without_user
from odfpy.repository.registry import Aliases, RepositoryRegistry, resolve_remote
from odfpy.repository.seen_heads import SeenHeads


def seen_heads_of(folder: Path) -> SeenHeads:
    """Return the heads that other places had when a dataset was last pulled or pushed, by its folder."""
    return SeenHeads(folder / "info" / "remotes.yaml")


def was_local_head(dataset: StoredDataset, url: str, head: Multihash) -> bool:
    """Return whether the head of another place was once the head here, before the history was replaced.

    Args:
        dataset: the dataset here.
        url: URL of the other place.
        head: its head.
    """
    return head in dataset.layout.blocks or head == seen_heads_of(dataset.folder).get(url)  # seen before `odf gc`


class KnownRemotes:
    """Stored locations of other copies. Transfers are in `Transfers`, which takes ten times as long to import."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @cached_property
    def registry(self) -> RepositoryRegistry:
        """Return the named repositories."""
        return RepositoryRegistry(self._storage.odf / "repos")

    @staticmethod
    def aliases(dataset: StoredDataset) -> Aliases:
        """Return the places that a dataset is pulled from and pushed to."""
        return Aliases.of(dataset.folder)

    @staticmethod
    def seen_heads(dataset: StoredDataset) -> SeenHeads:
        """Return the heads that other places had at the last pull or push."""
        return seen_heads_of(dataset.folder)

    def pull_command(self, dataset: StoredDataset, remote: str) -> str:
        """Return the command that pulls an existing dataset from a place, whatever its name there."""
        place, name = without_user(remote), str(dataset.handle)
        if place in self.aliases(dataset).shown("pull")[:1]:
            return f"odf pull {name}"
        return f"odf pull {place}" if place.rpartition("/")[2] == name else f"odf pull {place} --as {name}"

    def pull_url(self, dataset: StoredDataset) -> str | None:
        """Return where a copy is pulled from, None for datasets that were made here."""
        aliases = self.aliases(dataset).list("pull")
        return resolve_remote(aliases[0], self.registry) if aliases else None
