"""Received blocks on top of an existing chain: validate all of them, then store and commit them.

Used by the client of a pull and the server of a push.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.metadata_chain import check_block_bytes, sum_up
from odfpy.chain.new_blocks import validate
from odfpy.chain.state import ChainState
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import DatasetId
from odfpy.errors import IntegrityError
from odfpy.repository.divergence import DatasetsDiverged, EncodedBlock
from odfpy.repository.objects import ObjectOfBlock, copy_blocks, objects_of_blocks
from odfpy.repository.peer_errors import ProtocolViolation
from odfpy.repository.smart_transfer.archive import ArchiveLimits, unpack
from odfpy.repository.smart_transfer.messages import BlocksBatch
from odfpy.repository.transfer.simple import ForeignDataset
from odfpy.repository.transfer.slice_checks import check_slices

MAX_OBJECT_SIZE = 1 << 40
"""Default maximum size of a data file or checkpoint, in bytes."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """Received blocks that may extend a chain.

    Attributes:
        blocks: received blocks that the chain lacks, oldest first.
        base: state of the chain before these blocks.
        state: state of the chain after these blocks.
        dropped: existing blocks to be replaced, oldest first.
        received: all received blocks, including existing ones.
        received_base: state of the chain before the received blocks.
        objects: files referenced by the received blocks, including existing ones.
    """

    blocks: tuple[EncodedBlock, ...]
    base: ChainState
    state: ChainState
    dropped: tuple[HashedBlock, ...]
    received: tuple[HashedBlock, ...]
    received_base: ChainState
    objects: tuple[ObjectOfBlock, ...]

    @property
    def head(self) -> Multihash:
        """Return the hash of the last block."""
        head = self.state.head
        assert head is not None  # noqa: S101 - there is at least one block
        return head

    def missing(self, layout: DatasetLayout) -> list[ObjectOfBlock]:
        """Return the files that a dataset lacks."""
        return [item for item in self.objects if not item.is_in(layout)]


def read_blocks(batch: BlocksBatch, limits: ArchiveLimits) -> list[EncodedBlock]:
    """Unpack the blocks of an archive, and verify their hashes.

    Raises:
        ProtocolViolation: the archive is invalid, too large, or empty.
        HashMismatch, MalformedData: a block is invalid; the message names the block.
    """
    blocks = [EncodedBlock(check_block_bytes(name, data), data) for name, data in unpack(batch, limits)]
    if not blocks:
        raise ProtocolViolation("The archive has no blocks")
    return blocks


def attach_blocks(
    blocks: list[EncodedBlock], existing: list[HashedBlock], *, force: bool, max_object_size: int = MAX_OBJECT_SIZE
) -> Incoming:
    """Determine where new blocks attach to a chain, and validate each of them.

    Args:
        blocks: the blocks after the chain's head, or all blocks of the new chain; oldest first.
        existing: the chain, oldest first; empty for a new dataset.
        force: whether existing blocks may be replaced.
        max_object_size: maximum size of a file.

    Raises:
        ForeignDataset: the blocks belong to another dataset.
        DatasetsDiverged: existing blocks would be lost, and `force` is not set.
        ChainRuleViolation, IntegrityError: a rule is violated; the message names the block.
    """
    common = _common(blocks, existing)
    _require_same_dataset(blocks, existing, common)
    base = sum_up(existing[:common])
    is_whole = blocks[0].hashed.block.prev_block_hash is None
    new = tuple(blocks[common:] if is_whole else blocks)
    dropped = tuple(existing[common:])
    if dropped and not force:
        raise DatasetsDiverged(
            f"{len(dropped)} blocks after block {common - 1} ({base.head}) would be lost",
            hint="--force overwrites the copy there.",
        )
    objects = objects_of_blocks(block.hashed for block in blocks)
    for item in objects:
        if item.size > max_object_size:
            raise IntegrityError(
                f"Block {item.block}: its file {item.name} has {item.size} bytes, {max_object_size} are allowed"
            )
    state = validate((block.hashed for block in new), base)
    received = tuple(block.hashed for block in blocks)
    return Incoming(new, base, state, dropped, received, ChainState() if is_whole else base, tuple(objects))


def _common(blocks: list[EncodedBlock], existing: list[HashedBlock]) -> int:
    """Return the number of existing blocks that are retained."""
    if blocks[0].hashed.block.prev_block_hash is not None:
        return len(existing)  # validation fails if the first block does not follow the last one
    pairs = zip(blocks, existing, strict=False)
    shorter = min(len(blocks), len(existing))
    return next((at for at, (new, old) in enumerate(pairs) if new.hashed.hash != old.hash), shorter)


def _require_same_dataset(blocks: list[EncodedBlock], existing: list[HashedBlock], common: int) -> None:
    if common or not existing:
        return
    theirs, ours = validate([blocks[0].hashed]), sum_up(existing[:1])
    if (theirs.dataset_id, theirs.kind) != (ours.dataset_id, ours.kind):
        raise ForeignDataset(
            f"The dataset there is {theirs.dataset_id}, not {ours.dataset_id}",
            hint="Check the address, or transfer it under another name.",
        )


def require_id(incoming: Incoming, expected: DatasetId | None) -> None:
    """Check the id of the dataset.

    Raises:
        ForeignDataset: the id differs from the expected one.
    """
    if expected is not None and incoming.state.dataset_id != expected:
        raise ForeignDataset(f"The dataset there is {incoming.state.dataset_id}, not {expected}")


def require_files(incoming: Incoming, layout: DatasetLayout, received: Collection[Multihash] = ()) -> None:
    """Check that all files of the received blocks exist, and that slices match their blocks.

    Args:
        incoming: the blocks.
        layout: the dataset that has the files.
        received: newly received files; invalid ones are removed.

    Raises:
        IntegrityError: a file is missing, has another size, or a footer that contradicts its block.
    """
    for item in incoming.missing(layout):
        raise IntegrityError(f"File {item.name} of block {item.block} has not arrived")
    check_slices((block.hashed for block in incoming.blocks), incoming.base, layout, received)


def commit(
    incoming: Incoming,
    layout: DatasetLayout,
    old_head: Multihash | None,
    before: Callable[[DatasetLayout], object] | None = None,
) -> None:
    """Store the blocks, whose files must exist, and move the head.

    Args:
        incoming: the blocks.
        layout: the dataset that gets them.
        old_head: the expected current head.
        before: called just before the head moves, to store further files.

    Raises:
        ConcurrentUpdate: another process has moved the head in the meantime.
    """
    copy_blocks(incoming.blocks, layout)
    if before is not None:
        before(layout)
    layout.refs.compare_and_swap(HEAD, old_head, incoming.head)
