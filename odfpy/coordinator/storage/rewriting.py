"""Rewriting of history: replace blocks of a dataset, and find the affected derivatives.

The new blocks are created and stored first, then the head moves to them atomically: until then, the dataset is
unchanged. Blocks of the old history are removed by `odf gc`.

Blocks before the first change are reused. Later ones keep their events and times, so that the same change always has
the same hashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import AddData, ExecuteTransform
from odfpy.chain.metadata_chain import MetadataChain
from odfpy.chain.new_blocks import NewBlocks
from odfpy.chain.references import ReferenceName
from odfpy.chain.rules import repeats
from odfpy.chain.state import ChainState
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.storage.results import DatasetHandle
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import DatasetId
from odfpy.errors import OdfError
from odfpy.repository.registry import Aliases


class Rewriting:
    """New blocks on top of an unchanged part of a chain.

    Attributes:
        old_head: the head to replace.
        new: the new blocks.
    """

    def __init__(self, chain: MetadataChain, old_head: Multihash, kept: ChainState) -> None:
        self._chain = chain
        self.old_head = old_head
        self.new = NewBlocks(kept)

    @property
    def state(self) -> ChainState:
        """Return the state after the new blocks."""
        return self.new.state

    def keep(self, hashed: HashedBlock) -> None:
        """Add the event of an old block with its original time."""
        event, state = hashed.block.event, self.state
        if isinstance(event, AddData):
            checkpoint = state.checkpoint.physical_hash if state.checkpoint else None
            event = replace(event, prev_checkpoint=checkpoint, prev_offset=state.last_offset)
        if not repeats(event, state):  # skips redundant blocks of other writers
            self.new.add(event, hashed.block.system_time)

    def store(self) -> None:
        """Store the blocks, without adding them to a chain."""
        for data in self.new.encoded:
            self._chain.blocks.insert(data)

    def commit(self) -> ChainState:
        """Store the blocks and move the head.

        Raises:
            ConcurrentUpdate: another process has moved the head; nothing has changed.
        """
        return self._chain.commit(self.new, replacing=self.old_head)


def rewriting(dataset: StoredDataset, blocks: Sequence[HashedBlock], num_kept: int) -> Rewriting:
    """Begin a rewrite of a dataset's history.

    Args:
        dataset: the dataset; its lock is required.
        blocks: the whole chain, oldest first.
        num_kept: the number of unchanged blocks, at least the Seed.
    """
    kept = dataset.chain.state(blocks[num_kept - 1].hash)
    return Rewriting(dataset.chain, blocks[-1].hash, kept)


def without_data(dataset: StoredDataset) -> Rewriting:
    """Begin a history with the metadata of a dataset but without rows, from which it is rebuilt.

    Raises:
        OdfError: the chain is damaged.
    """
    blocks = dataset.chain.in_order()
    data = (AddData, ExecuteTransform)
    first = next(
        (number for number, hashed_block in enumerate(blocks) if isinstance(hashed_block.block.event, data)),
        len(blocks),
    )
    rewritten = rewriting(dataset, blocks, first)
    for hashed in blocks[first:]:
        if not isinstance(hashed.block.event, data):
            rewritten.keep(hashed)
    return rewritten


# --- Downstream ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Downstream:
    """The derivatives affected by a rewrite.

    Attributes:
        diverged: derivatives that have read removed blocks, and must be rebuilt.
        further: derivatives of these, which must be rebuilt, too.
    """

    diverged: tuple[DatasetHandle, ...] = ()
    further: tuple[DatasetHandle, ...] = ()

    @property
    def all(self) -> tuple[DatasetHandle, ...]:
        """Return all datasets that must be rebuilt."""
        return self.diverged + self.further


def who_keeps_old_history(dataset: StoredDataset, dropped: set[Multihash]) -> tuple[str, ...]:
    """Return remarks on remaining copies of the old history: in other references, and at remotes.

    Args:
        dataset: the dataset whose history changes, or has changed.
        dropped: the blocks removed from the history.
    """
    names = [name for name in dataset.layout.refs.names() if name != HEAD]
    others = [str(ReferenceName.parse(name) or name) for name in names if dropped and _holds(dataset, name, dropped)]
    aliases = Aliases.of(dataset.folder)
    notes = [f"the old history stays for {', '.join(others)}, until that is deleted"] if others else []
    pushed, pulled = aliases.shown("push"), aliases.shown("pull")
    notes += [f"{place} keeps the old history until you push with --force" for place in pushed]
    notes += [f"{place}, where it is pulled from, keeps the old history" for place in pulled]
    return tuple(notes)


def _holds(dataset: StoredDataset, name: str, dropped: set[Multihash]) -> bool:
    """Return whether a reference reaches dropped blocks; True for damaged references."""
    try:
        target = dataset.layout.refs.get(name)
        return target is not None and any(block.hash in dropped for block in dataset.chain.iter_blocks(target))
    except OdfError:
        return True


def downstream_of(storage: Storage, dataset: StoredDataset, dropped: set[Multihash]) -> Downstream:
    """Return the derivatives affected by blocks that are removed from the history of a dataset.

    Args:
        storage: the workspace.
        dataset: the dataset whose history changes, or has changed.
        dropped: the blocks removed from the history.
    """
    derived: dict[DatasetId, list[StoredDataset]] = {}
    diverged = []
    for other in storage.datasets():
        try:
            inputs, taken_in = other.input_ids, other.state.query_inputs
        except OdfError:  # damaged datasets are reported elsewhere
            continue
        for item in inputs:
            derived.setdefault(item, []).append(other)
        if any(item.dataset_id == dataset.handle.id and item.last_block_hash in dropped for item in taken_in):
            diverged.append(other.handle)
    further: dict[DatasetHandle, None] = {}
    waiting = list(diverged)
    while waiting:
        for other in derived.get(waiting.pop(0).id, ()):
            if other.handle not in further and other.handle not in diverged:
                further[other.handle] = None
                waiting.append(other.handle)
    return Downstream(tuple(diverged), tuple(further))
