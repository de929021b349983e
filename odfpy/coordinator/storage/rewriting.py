"""Another history in the place of the one that a dataset has, and who is derived from what it had.

The new blocks are made and stored first, then the head moves to them in one step: whatever happens before, the dataset
is what it was. Nothing of the old history is removed; `odf gc` does that.

Blocks before the first change stay the very same. Those after it keep their events and their times, so that the same
change gives the same hashes wherever and whenever it is made.
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
    """New blocks on top of a part of a chain that stays.

    Attributes:
        old_head: the head that gives way.
        new: the blocks.
    """

    def __init__(self, chain: MetadataChain, old_head: Multihash, kept: ChainState) -> None:
        self._chain = chain
        self.old_head = old_head
        self.new = NewBlocks(kept)

    @property
    def state(self) -> ChainState:
        """The state after the blocks so far."""
        return self.new.state

    def keep(self, hashed: HashedBlock) -> None:
        """The event of an old block, at its time."""
        event, state = hashed.block.event, self.state
        if isinstance(event, AddData):
            checkpoint = state.checkpoint.physical_hash if state.checkpoint else None
            event = replace(event, prev_checkpoint=checkpoint, prev_offset=state.last_offset)
        if not repeats(event, state):  # others write such blocks, which say nothing
            self.new.add(event, hashed.block.system_time)

    def store(self) -> None:
        """Put the blocks beside the others; no chain has them yet."""
        for data in self.new.encoded:
            self._chain.blocks.insert(data)

    def commit(self) -> ChainState:
        """Store the blocks and move the head.

        Raises:
            ConcurrentUpdate: somebody else has moved it; nothing has changed.
        """
        return self._chain.commit(self.new, replacing=self.old_head)


def rewriting(dataset: StoredDataset, blocks: Sequence[HashedBlock], num_kept: int) -> Rewriting:
    """Begin another history.

    Args:
        dataset: whose lock the caller holds.
        blocks: the whole chain, oldest first.
        num_kept: how many of them stay as they are, the Seed at least.
    """
    kept = dataset.chain.state(blocks[num_kept - 1].hash)
    return Rewriting(dataset.chain, blocks[-1].hash, kept)


def without_data(dataset: StoredDataset) -> Rewriting:
    """A history with all that the dataset is and without any rows, to be made again from the first row on.

    Raises:
        OdfError: the chain is damaged.
    """
    blocks = dataset.chain.in_order()
    data = (AddData, ExecuteTransform)
    first = next((number for number, one in enumerate(blocks) if isinstance(one.block.event, data)), len(blocks))
    made = rewriting(dataset, blocks, first)
    for hashed in blocks[first:]:
        if not isinstance(hashed.block.event, data):
            made.keep(hashed)
    return made


# --- Downstream ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Downstream:
    """The datasets that are derived from a dataset.

    Attributes:
        diverged: datasets that have taken in what is not in its history any more; they are to be made again.
        further: what is derived from these, and so has to be made again too.
    """

    diverged: tuple[DatasetHandle, ...] = ()
    further: tuple[DatasetHandle, ...] = ()

    @property
    def all(self) -> tuple[DatasetHandle, ...]:
        """All that have to be made again."""
        return self.diverged + self.further


def who_keeps_old_history(dataset: StoredDataset, dropped: set[Multihash]) -> tuple[str, ...]:
    """Remarks on who still has the old history: other references, and copies in other places.

    Args:
        dataset: whose history changes, or has changed.
        dropped: the blocks that are not in it any more.
    """
    names = [name for name in dataset.layout.refs.names() if name != HEAD]
    others = [str(ReferenceName.parse(name) or name) for name in names if dropped and _holds(dataset, name, dropped)]
    aliases = Aliases.of(dataset.folder)
    notes = [f"the old history stays for {', '.join(others)}, until that is deleted"] if others else []
    pushed, pulled = aliases.shown("push"), aliases.shown("pull")
    notes += [f"{place} keeps the old history, until it is pushed there with --force" for place in pushed]
    notes += [f"{place}, where it is pulled from, keeps the old history" for place in pulled]
    return tuple(notes)


def _holds(dataset: StoredDataset, name: str, dropped: set[Multihash]) -> bool:
    """Return whether a reference leads to blocks that the head loses; one that is damaged may."""
    try:
        target = dataset.layout.refs.get(name)
        return target is not None and any(one.hash in dropped for one in dataset.chain.iter_blocks(target))
    except OdfError:
        return True


def downstream_of(storage: Storage, dataset: StoredDataset, dropped: set[Multihash]) -> Downstream:
    """Return who has taken in blocks that leave the history of a dataset.

    Args:
        storage: the workspace.
        dataset: whose history changes, or has changed.
        dropped: the blocks that are not in it any more.
    """
    derived: dict[DatasetId, list[StoredDataset]] = {}
    diverged = []
    for other in storage.datasets():
        try:
            inputs, taken_in = other.input_ids, other.state.query_inputs
        except OdfError:  # others report a damaged dataset
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
