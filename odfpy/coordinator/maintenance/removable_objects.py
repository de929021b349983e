"""Linked objects whose removal is recorded: rows still name them, but no current row needs their bytes.

That an object may go is said twice: by the rows, each of which was taken back or says in its column of
`org.odfpy/removedColumn` that the bytes were let go; and by whoever knows why they may, such as the retention of an
archive. Without the second, nothing goes.
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
    """Says which objects may go though rows link to them."""

    def __call__(self, dataset: StoredDataset, names: Sequence[Multihash]) -> Collection[Multihash]:
        """Return those that may.

        Args:
            dataset: which one; its lock is held.
            names: objects whose rows are all taken back, or say that the bytes were let go, on every branch and tag.

        Raises:
            OdfError: that cannot be told; nothing is removed then.
        """


def removable_objects(dataset: StoredDataset, known: Reached, may_remove: RemovalPolicy) -> Iterator[UnusedPath]:
    """The linked objects of a dataset that are there, and whose removal is recorded and allowed.

    Args:
        dataset: seen from its head.
        known: what its references reach.
        may_remove: allows it.

    Raises:
        OdfError: a slice is missing or cannot be read.
    """
    store = dataset.layout.data
    if known.has_unread_links or not len(known.links):
        return
    names = _unneeded(dataset, known)
    left = map(name_of, names)
    while some := list(islice(left, _AT_ONCE)):
        for name in sorted(set(may_remove(dataset, some)).intersection(some)):
            path = store.file_of(name) if isinstance(store, LocalObjectStore) else None
            if path is not None:
                yield UnusedPath(path, path.stat().st_size, Garbage.LET_GO, name)


def _unneeded(dataset: StoredDataset, known: Reached) -> Names:
    """The objects that are there and linked, and that no current row needs, wherever it is looked from."""
    import numpy as np

    layout = dataset.layout
    names = np.sort(as_names(name for name in layout.data if name in known.links and name not in known.data))
    for reference in layout.refs.names():
        if not len(names):
            break
        blocks = layout.chain.in_order(layout.refs.get(reference))
        names = names[times_kept(names, linked_slices(blocks), layout) <= 0]
    return names
