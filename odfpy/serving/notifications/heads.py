"""The heads of datasets, watched for changes, including those by other processes.

One task polls the heads of all watched datasets: a file of sixty bytes each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import OdfError


@dataclass(eq=False)
class Followed:
    """A dataset that is watched.

    Attributes:
        dataset: the dataset.
        head: its last block when last polled, None if it has none, or was deleted.
        moved: set when the head has changed, or the server stops; then replaced by a new event.
        followers: number of watchers.
    """

    dataset: StoredDataset
    head: Multihash | None
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    followers: int = 0

    def wake(self) -> None:
        """Wake all watchers."""
        self.moved.set()
        self.moved = asyncio.Event()


class Heads:
    """A watcher of the heads of datasets.

    Attributes:
        is_over: whether the server is stopping.
    """

    def __init__(self, poll: float) -> None:
        """
        Args:
            poll: seconds between two polls.
        """
        self.is_over = False
        self._poll = poll
        self._followed: dict[Any, Followed] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def following(self, dataset: StoredDataset) -> Iterator[Followed]:
        """Watch a dataset; must be called in the event loop."""
        followed = self._followed.get(dataset.folder)
        if followed is None:
            followed = self._followed[dataset.folder] = Followed(dataset, head_of(dataset))
        followed.followers += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._look())
        try:
            yield followed
        finally:
            followed.followers -= 1
            if not followed.followers:
                self._followed.pop(dataset.folder, None)

    def stop(self) -> None:
        """Stop all watchers."""
        self.is_over = True
        for followed in self._followed.values():
            followed.wake()

    async def _look(self) -> None:
        try:
            while self._followed and not self.is_over:
                everything = list(self._followed.values())
                heads = await asyncio.to_thread(_heads_of, everything)
                for followed, head in zip(everything, heads, strict=True):
                    if head != followed.head:
                        followed.head = head
                        followed.wake()
                await asyncio.sleep(self._poll)
        finally:
            self._task = None  # the next watcher starts a new one


def head_of(dataset: StoredDataset) -> Multihash | None:
    """Return the last block of a dataset, None if it has none, is damaged or deleted."""
    with suppress(OdfError):
        return dataset.layout.refs.get(HEAD)
    return None


def _heads_of(everything: list[Followed]) -> list[Multihash | None]:
    return [head_of(item.dataset) for item in everything]


async def wait_for(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event; returns whether it occurred in time."""
    with suppress(asyncio.TimeoutError):
        return await asyncio.wait_for(event.wait(), seconds)
    return False
