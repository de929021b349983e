"""Notes on keys that a pull has learnt to be revoked or expired."""

from __future__ import annotations

from collections.abc import Iterable

from odfpy.chain.revocations import FOLDER, KeyRevocation, honoured_in, key_of
from odfpy.chain.stores.side_files import LocalSideFiles
from odfpy.coordinator.storage.keys import UserKeys
from odfpy.coordinator.storage.storage import StoredDataset


def known_revocations(dataset: StoredDataset) -> frozenset[KeyRevocation]:
    """Return the honoured statements about keys that a dataset has in this workspace.

    Raises:
        OdfError: they cannot be read.
    """
    side = dataset.layout.side
    if not isinstance(side, LocalSideFiles):
        return frozenset()
    keys = [key for name in side.names(FOLDER) if (key := key_of(f"{FOLDER}/{name}")) is not None]
    return frozenset(honoured_in(side, dataset.handle.id, keys))


def revocation_notes(dataset: StoredDataset, before: Iterable[KeyRevocation]) -> list[str]:
    """Return a note on each key about which a dataset has new statements.

    Args:
        dataset: the dataset.
        before: the statements that it had before.

    Raises:
        OdfError: they cannot be read.
    """
    known, dataset_id = UserKeys(), dataset.handle.id
    new = sorted(known_revocations(dataset) - frozenset(before), key=lambda one: (one.since is None, one.time))
    by_key = {one.key: one for one in new}  # a general statement rather than one from a block on
    return [f"the key {known.name_of(one.actor, dataset_id)} {one.in_words(dataset_id)}" for one in by_key.values()]
