"""Known locations of a workspace: named repositories, and the pull and push locations of its datasets."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.http.url import without_user
from odfpy.repository.registry import Aliases, RepositoryRegistry, resolve_remote
from odfpy.repository.seen_heads import SeenHeads


def seen_heads_of(folder: Path) -> SeenHeads:
    """Return the remote heads seen at the last pull or push of the dataset in a folder."""
    return SeenHeads(folder / "info" / "remotes.yaml")


def was_local_head(dataset: StoredDataset, url: str, head: Multihash) -> bool:
    """Return whether a remote head was once the local head, before the local history was replaced.

    Args:
        dataset: the local dataset.
        url: URL of the remote dataset.
        head: the remote head.
    """
    return head in dataset.layout.blocks or head == seen_heads_of(dataset.folder).get(url)  # seen before `odf gc`


class KnownRemotes:
    """Stored locations of other copies. Transfers are in `Transfers`, whose import takes ten times as long."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @cached_property
    def registry(self) -> RepositoryRegistry:
        """Return the named repositories."""
        return RepositoryRegistry(self._storage.odf / "repos")

    @staticmethod
    def aliases(dataset: StoredDataset) -> Aliases:
        """Return the locations that a dataset is pulled from and pushed to."""
        return Aliases.of(dataset.folder)

    @staticmethod
    def seen_heads(dataset: StoredDataset) -> SeenHeads:
        """Return the remote heads seen at the last pull or push."""
        return seen_heads_of(dataset.folder)

    def pull_command(self, dataset: StoredDataset, remote: str) -> str:
        """Return the command that pulls a dataset from a remote, which may use another name for it."""
        place, name = without_user(remote), str(dataset.handle)
        if place in self.aliases(dataset).shown("pull")[:1]:
            return f"odf pull {name}"
        return f"odf pull {place}" if place.rpartition("/")[2] == name else f"odf pull {place} --as {name}"

    def pull_url(self, dataset: StoredDataset) -> str | None:
        """Return the URL that a copy is pulled from, None for datasets that were created here."""
        aliases = self.aliases(dataset).list("pull")
        return resolve_remote(aliases[0], self.registry) if aliases else None
