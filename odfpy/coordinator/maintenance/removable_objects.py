"""Linked objects whose removal is recorded: rows still name them, but no current row needs their content.

Two conditions must hold. Each row that links to the object is retracted, or records in its column of
`org.odfpy/removedColumn` that the content was removed. And a policy, such as the retention rules of an archive, permits
the removal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from odfpy.chain.links.linked_objects import linked_slices, times_kept
from odfpy.chain.stores.object_store import LocalObjectStore
from odfpy.coordinator.maintenance.reachable import Garbage, Reached, UnusedPath
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.data.hash_set import as_names, name_of
from odfpy.data.multihash import Multihash

if TYPE_CHECKING:
    from odfpy.data.hash_set import Names

_AT_ONCE: Final = 10_000


class RemovalPolicy(Protocol):
    """A policy that decides which linked objects may be removed."""

    def __call__(self, dataset: StoredDataset, names: Sequence[Multihash]) -> Collection[Multihash]:
        """Return the names of the objects that may be removed.

        Args:
            dataset: the dataset, whose lock is held.
            names: objects all of whose rows, on every branch and tag, are retracted or record the removal.

        Raises:
            OdfError: the policy cannot be evaluated; nothing is removed.
        """


def removable_objects(dataset: StoredDataset, known: Reached, may_remove: RemovalPolicy) -> Iterator[UnusedPath]:
    """Yield existing linked objects of a dataset whose removal is recorded and permitted.

    Args:
        dataset: the dataset, opened at its head.
        known: the objects reached by its references.
        may_remove: the policy.

    Raises:
        OdfError: a slice is missing or cannot be read.
    """
    store = dataset.layout.data
    if known.has_unread_links or not len(known.links):
        return
    names = _unneeded(dataset, known)
    left = map(name_of, names)
    while batch := list(islice(left, _AT_ONCE)):
        for name in sorted(set(may_remove(dataset, batch)).intersection(batch)):
            path = store.file_of(name) if isinstance(store, LocalObjectStore) else None
            if path is not None:
                yield UnusedPath(path, path.stat().st_size, Garbage.RELEASED, name)


def _unneeded(dataset: StoredDataset, known: Reached) -> Names:
    """Return the existing linked objects that no current row of any reference needs."""
    import numpy as np

    layout = dataset.layout
    names = np.sort(as_names(name for name in layout.data if name in known.links and name not in known.data))
    for reference in layout.refs.names():
        if not len(names):
            break
        blocks = layout.chain.in_order(layout.refs.get(reference))
        names = names[times_kept(names, linked_slices(blocks), layout) <= 0]
    return names
