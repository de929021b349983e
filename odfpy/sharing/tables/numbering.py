"""Version numbers of datasets. They never change their meaning, since clients follow them.

Versions are counted along the chain. If a history is rewritten (by a compaction, a forced pull, or a reset followed by
other commits), the same count refers to other rows. So the database of shares remembers the furthest head of each
dataset, tag and branch before it is served:

    - a head that is an ancestor or a descendant of it belongs to the same history: numbering continues
    - any other head belongs to another history, whose numbers begin after all numbers used before

One more number is skipped: followers that have read everything request it next. The first number of a new history is
rounded up: a count of all versions would reveal hidden versions to readers who may only see some rows.
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
"""The numbers of another history begin at the next multiple of this number."""

_LOGGER = logging.getLogger("odfpy")


class VersionNumbers:
    """The first version numbers of shared datasets. Thread-safe; several servers agree on them."""

    def __init__(self, histories: Callable[[], ServedHistories]) -> None:
        """
        Args:
            histories: returns the store of served histories, on first use.
        """
        self._histories = histories
        self._last: dict[tuple[str, str], tuple[Multihash, int]] = {}

    def base(self, dataset: StoredDataset, head: Multihash, at: str) -> int:
        """Return the number of the version before any data. The database is only queried if the head has moved.

        Args:
            dataset: the dataset.
            head: the block that is about to be served.
            at: the shared tag or branch; empty for the head.

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
            except SharingDatabaseError as error:  # a table is served nevertheless; the next request retries
                _LOGGER.warning("%s is shared, but not that it was: %s", dataset.handle, error.message)
                return served.base
        self._last[key] = head, served.base
        return served.base


def _served(dataset: StoredDataset, head: Multihash, known: ServedHistory | None) -> ServedHistory:
    """Return the history to remember when a dataset is served.

    Args:
        dataset: the dataset.
        head: the block that is served.
        known: the history remembered so far.
    """
    number = dataset.chain.block(head).block.sequence_number
    if known is None:
        return ServedHistory(str(head), number, 0)
    furthest = Multihash.parse(known.head)
    if _leads_through(dataset, head, furthest, known.sequence_number):
        return ServedHistory(str(head), number, known.base)
    with suppress(OdfError):  # unreachable blocks may have been removed
        if _leads_through(dataset, furthest, head, number):
            return known
    beyond = known.base + known.sequence_number + 1  # each block adds at most one version, and the first block none
    return ServedHistory(str(head), number, (beyond // HISTORY_STEP + 1) * HISTORY_STEP)


def _leads_through(dataset: StoredDataset, head: Multihash, block: Multihash, number: int) -> bool:
    """Return whether a block is an ancestor of another one.

    Args:
        dataset: the dataset.
        head: the last block of the chain.
        block: the block.
        number: its sequence number.
    """
    blocks = takewhile(lambda hashed: hashed.block.sequence_number >= number, dataset.chain.iter_blocks(head))
    return any(ancestor.hash == block for ancestor in blocks)
