"""Numbers of versions of datasets, which never come to mean something else: clients follow them.

A version is counted along the chain. Where a history is written anew (by a compaction, a forced pull, or a reset and
other commits after it), the same count stands for other rows. So the database of shares remembers the furthest head
that was served of each dataset, tag and branch, before it is served:

    - a head that leads through it, or that it leads through, is of the same history: the numbers go on
    - any other head is of another history, whose numbers begin beyond all that were given

The first number after those that were given is left out, too: followers that have seen everything ask for it next. And
numbers of another history are round: a count of all versions would tell whoever sees some rows only of the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from itertools import takewhile
from typing import Final

from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import OdfError
from odfpy.sharing.store.database import SharingDatabaseError
from odfpy.sharing.store.histories import ServedHistories, ServedHistory

HISTORY_STEP: Final = 1_000_000
"""The numbers of another history begin at the next multiple of this."""

_LOGGER = logging.getLogger("odfpy")


class VersionNumbers:
    """The numbers at which the versions of shared datasets begin. For all threads; several servers agree on them."""

    def __init__(self, histories: Callable[[], ServedHistories]) -> None:
        """
        Args:
            histories: gives the memory of what was served, when it is needed.
        """
        self._histories = histories
        self._last: dict[tuple[str, str], tuple[Multihash, int]] = {}

    def base(self, dataset: StoredDataset, head: Multihash, at: str) -> int:
        """The number of the version before any data. The database is asked only where the head has moved.

        Args:
            dataset: the dataset.
            head: the block up to which it is about to be served.
            at: the tag or branch that is shared; nothing for the head.

        Raises:
            SharingDatabaseError: the database cannot be read.
            OdfError: a block of the dataset cannot be read.
        """
        key = str(dataset.handle.id), at
        last, base = self._last.get(key, (None, 0))
        if last == head:
            return base
        histories = self._histories()
        while True:
            known = histories.find(*key)
            served = _served(dataset, head, known)
            try:
                if served == known or histories.compare_and_swap(*key, known, served):
                    break
            except SharingDatabaseError as error:  # a table is served all the same; the next request tries again
                _LOGGER.warning("%s is shared, but not that it was: %s", dataset.handle, error.message)
                return served.base
        self._last[key] = head, served.base
        return served.base


def _served(dataset: StoredDataset, head: Multihash, known: ServedHistory | None) -> ServedHistory:
    """The history to remember when a dataset is served.

    Args:
        dataset: the dataset.
        head: the block up to which it is served.
        known: the history that was remembered before.
    """
    number = dataset.chain.block(head).block.sequence_number
    if known is None:
        return ServedHistory(str(head), number, 0)
    furthest = Multihash.parse(known.head)
    if _leads_through(dataset, head, furthest, known.sequence_number):
        return ServedHistory(str(head), number, known.base)
    with suppress(OdfError):  # blocks that no reference reaches may be gone
        if _leads_through(dataset, furthest, head, number):
            return known
    beyond = known.base + known.sequence_number + 1  # a block adds one version at most, and the first one none
    return ServedHistory(str(head), number, (beyond // HISTORY_STEP + 1) * HISTORY_STEP)


def _leads_through(dataset: StoredDataset, head: Multihash, block: Multihash, number: int) -> bool:
    """Return whether a block is in the chain that ends with another one.

    Args:
        dataset: the dataset.
        head: the last block of the chain.
        block: the block.
        number: its sequence number.
    """
    blocks = takewhile(lambda one: one.block.sequence_number >= number, dataset.chain.iter_blocks(head))
    return any(one.hash == block for one in blocks)
