"""The metadata chain of a dataset: reading, computing its state, appending."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from odfpy.chain.block import HashedBlock
from odfpy.chain.encoding import decode_block
from odfpy.chain.events import MetadataEvent
from odfpy.chain.state import ChainState
from odfpy.chain.stores.object_store import ObjectStore
from odfpy.chain.stores.ref_store import HEAD, RefStore
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.errors import HashMismatch, IntegrityError, MalformedData, ObjectNotFound, ReferenceNotFound

if TYPE_CHECKING:
    from odfpy.chain.new_blocks import NewBlocks


class MetadataChain:
    """Blocks in an object store, and the references to them.

    Attributes:
        blocks: store of the blocks.
        refs: store of the references.
        witness: called with new blocks before they are committed, for example to sign them; it must not fail.
    """

    def __init__(
        self, blocks: ObjectStore, refs: RefStore, witness: Callable[[NewBlocks], None] = lambda _: None
    ) -> None:
        self.blocks = blocks
        self.refs = refs
        self.witness = witness

    def head(self) -> Multihash:
        """Return the hash of the last block.

        Raises:
            ReferenceNotFound: the chain is empty.
        """
        head = self.refs.get(HEAD)
        if head is None:
            raise ReferenceNotFound("The dataset has no head: it is empty or not a dataset")
        return head

    def block(self, name: Multihash) -> HashedBlock:
        """Return a block, checked against its hash.

        Raises:
            ObjectNotFound: the block is missing.
            HashMismatch, MalformedBlock, UnsupportedVersion: the block cannot be read; the message names the file.
        """
        data = self.blocks.read(name)
        try:
            return HashedBlock(name, decode_block(data))
        except MalformedData as error:
            raise error.with_context(self.blocks.describe(name)) from error

    def iter_blocks(self, head: Multihash | None = None, *, until: Multihash | None = None) -> Iterator[HashedBlock]:
        """Yield blocks from the newest to the oldest.

        Args:
            head: the block to start from; the reference `head` by default.
            until: a block to stop before; it must be in the chain.

        Raises:
            IntegrityError: the chain is broken, or does not contain `until`.
        """
        name: Multihash | None = head or self.head()
        number: int | None = None
        while name is not None and name != until:
            try:
                hashed = self.block(name)
            except (HashMismatch, MalformedData, ObjectNotFound) as error:
                if number is None:
                    raise
                raise error.with_context(f"Block {number - 1}") from error
            # Sequence numbers decrease with every step, so the iteration ends whatever the links are.
            if number is not None and hashed.block.sequence_number != number - 1:
                raise IntegrityError(
                    f"Broken chain: block {name} has number {hashed.block.sequence_number} where {number - 1} must be"
                )
            number = hashed.block.sequence_number
            yield hashed
            name = hashed.block.prev_block_hash
        if name is None and until is not None:
            raise IntegrityError(f"Block {until} is not in the chain that ends in {head or self.head()}")

    def in_order(self, head: Multihash | None = None, *, after: Multihash | None = None) -> list[HashedBlock]:
        """Return blocks from the oldest to the newest, starting after the block `after`."""
        return list(self.iter_blocks(head, until=after))[::-1]

    def state(self, head: Multihash | None = None) -> ChainState:
        """Return the state of the chain at a block; blocks in the store were validated when they were added."""
        return sum_up(self.in_order(head))

    def prepare(self, state: ChainState, events: Iterable[MetadataEvent], system_time: Timestamp) -> NewBlocks:
        """Create blocks from events, and check that each may follow; nothing is stored.

        Args:
            state: the state before the first of them.
            events: the events, in order.
            system_time: the time of the blocks.

        Raises:
            ChainRuleViolation: an event may not follow.
        """
        from odfpy.chain.new_blocks import NewBlocks  # only writers need the rules

        new = NewBlocks(state)
        for event in events:
            new.add(event, system_time)
        return new

    def commit(self, new: NewBlocks, *, replacing: Multihash | None = None) -> ChainState:
        """Store prepared blocks, then move the head to the last of them.

        Args:
            new: the blocks.
            replacing: the current head, if the blocks do not follow it but are another history; nothing of the old
                history is removed.

        Raises:
            ConcurrentUpdate: another process has moved the head; the reference is unchanged.
        """
        before = replacing or new.base.head
        if new.state.head is None or new.state.head == before:
            return new.state
        # Readers take no lock, so all blocks are stored before the head refers to them. A process that loses the
        # swap leaves unreachable blocks, which `odf gc` removes.
        for data in new.encoded:
            self.blocks.insert(data)
        # Not after the swap: a crash in between would leave an unsigned head, or an ingest without a record of it.
        self.witness(new)
        self.refs.compare_and_swap(HEAD, before, new.state.head)
        return new.state


def sum_up(blocks: Iterable[HashedBlock], state: ChainState | None = None) -> ChainState:
    """Return the state after consecutive blocks, oldest first, without checking the rules."""
    state = state or ChainState()
    for hashed in blocks:
        state = state.after(hashed)
    return state


def check_block_bytes(name: Multihash, data: bytes) -> HashedBlock:
    """Decode a received block, and check its hash.

    Raises:
        HashMismatch: the bytes do not have the hash.
        MalformedBlock, UnsupportedVersion: the block cannot be read.
    """
    if not name.matches(data):
        raise HashMismatch(f"Block {name}: the {len(data)} bytes received have another hash")
    return HashedBlock(name, decode_block(data))
