"""The heads of datasets, and their moves, also by other processes.

One task looks at the heads of all datasets that somebody follows: a file of sixty bytes each.
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
    """A dataset that somebody follows.

    Attributes:
        dataset: the dataset.
        head: its last block when it was last looked at, None when it has none, or is gone.
        moved: set when the head is another one, or the server stops; then there is a new event.
        followers: how many follow it.
    """

    dataset: StoredDataset
    head: Multihash | None
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    followers: int = 0

    def wake(self) -> None:
        """Let all followers look."""
        self.moved.set()
        self.moved = asyncio.Event()


class Heads:
    """The heads that somebody follows.

    Attributes:
        is_over: whether the server stops.
    """

    def __init__(self, poll: float) -> None:
        """
        Args:
            poll: seconds between two looks.
        """
        self.is_over = False
        self._poll = poll
        self._followed: dict[Any, Followed] = {}
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def following(self, dataset: StoredDataset) -> Iterator[Followed]:
        """Follow a dataset; call it in the event loop."""
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
        """Let everybody who follows end."""
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
            self._task = None  # whoever comes next begins anew


def head_of(dataset: StoredDataset) -> Multihash | None:
    """The last block of a dataset, None when it has none, is damaged or gone."""
    with suppress(OdfError):
        return dataset.layout.refs.get(HEAD)
    return None


def _heads_of(everything: list[Followed]) -> list[Multihash | None]:
    return [head_of(item.dataset) for item in everything]


async def wait_for(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event; gives whether it has come in time."""
    with suppress(asyncio.TimeoutError):
        return await asyncio.wait_for(event.wait(), seconds)
    return False
