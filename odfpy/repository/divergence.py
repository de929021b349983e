"""Divergence of two metadata chains: the blocks that only one of them has.

Both chains are walked backwards from their heads in parallel, by sequence number, until they meet. So only blocks that
differ are read, and the walk ends at the common ancestor.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import BinaryIO

from odfpy.chain.block import HashedBlock
from odfpy.chain.encoding import MAX_BLOCK_SIZE
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.metadata_chain import check_block_bytes
from odfpy.chain.state import new_data_of
from odfpy.chain.stores.object_store import CHUNK, ObjectStore, ObjectTooLarge
from odfpy.data.multihash import Multihash
from odfpy.errors import HashMismatch, IntegrityError, InvalidValue, MalformedData, OdfError, TransferError
from odfpy.http.limits import Pace
from odfpy.values import dataclass


class DatasetsDiverged(TransferError, code="E601"):
    """Both sides have blocks that the other side lacks."""


MAX_BYTES = 256 * 1024 * 1024
"""Maximum total size of the blocks in which two chains differ, in bytes; they are held in memory."""

MAX_BYTES_PER_BLOCK = 4096
"""Additional bytes allowed for each block of the walk; most blocks have less than a thousand."""


@dataclass(frozen=True, slots=True)
class EncodedBlock:
    """A block with its encoding, which is transferred unchanged."""

    hashed: HashedBlock
    data: bytes

    @property
    def number(self) -> int:
        """Return the sequence number."""
        return self.hashed.block.sequence_number


@dataclass(frozen=True, slots=True)
class Divergence:
    """The common ancestor of two chains, and the blocks after it in each chain.

    Attributes:
        ancestor: hash of the last common block, None if there is none.
        ancestor_number: sequence number of the ancestor, -1 if there is none.
        source: blocks of the source after the ancestor, oldest first.
        target: blocks of the target after the ancestor, oldest first.
    """

    ancestor: Multihash | None
    ancestor_number: int
    source: tuple[EncodedBlock, ...]
    target: tuple[EncodedBlock, ...]

    def num_gone(self, seen: Multihash | None) -> int:
        """Return the number of blocks that the source has removed from its history, and that the target still has.

        Args:
            seen: the last seen head of the source, None if there is none.
        """
        return next((block.number - self.ancestor_number for block in self.target if block.hashed.hash == seen), 0)


def compare_chains(
    source: DatasetLayout,
    source_head: Multihash,
    target: DatasetLayout,
    target_head: Multihash | None,
) -> Divergence:
    """Walk back from two heads until the chains meet.

    Args:
        source: the first dataset.
        source_head: head of the first dataset.
        target: the second dataset.
        target_head: head of the second dataset, None if it is empty.

    Raises:
        ObjectNotFound, HashMismatch, MalformedData, IntegrityError: a block is missing or invalid; the message has its
            location.
    """
    ours = _Walk(source.blocks, source_head)
    theirs = _Walk(target.blocks, target_head)
    while ours.name != theirs.name:
        (ours if ours.number >= theirs.number else theirs).step()
    return Divergence(ours.name, ours.number, ours.passed(), theirs.passed())


def records_of(blocks: Iterable[HashedBlock]) -> int:
    """Return the number of rows in the slices of blocks."""
    slices = (new_data_of(block.block.event) for block in blocks)
    return sum(item.offset_interval.num_rows for item in slices if item is not None)


class _Walk:
    """A walk back along one chain.

    Attributes:
        name: hash of the current block, None before the first block.
        number: sequence number of the current block, -1 before the first block. It decreases with every step, so that
            the walk terminates even if links are wrong.
    """

    def __init__(self, blocks: ObjectStore, head: Multihash | None) -> None:
        self.name = head
        self.number = -1
        self._blocks = blocks
        self._passed: list[EncodedBlock] = []
        self._size = 0
        self._here: EncodedBlock | None = None
        if head is not None:
            self._here = self._read(head)
            self.number = self._here.number

    def step(self) -> None:
        """Move to the previous block."""
        assert self.name is not None  # noqa: S101 - two walks that have both ended are at the same position
        here = self._here or self._read(self.name)
        previous = here.hashed.block.prev_block_hash
        if here.number != self.number or (previous is None) != (here.number == 0):
            found = "is the first block" if previous is None else f"names {previous} as the previous block"
            expected = f" where {self.number} must be" if here.number != self.number else ""
            raise IntegrityError(
                f"Broken chain: {self._blocks.describe(self.name)} {found}, and has number {here.number}{expected}"
            )
        self._passed.append(here)
        self._here, self.name, self.number = None, previous, self.number - 1

    def passed(self) -> tuple[EncodedBlock, ...]:
        """Return the visited blocks, oldest first."""
        return tuple(reversed(self._passed))

    def _read(self, name: Multihash) -> EncodedBlock:
        block = read_block(self._blocks, name)
        self._size += len(block.data)
        if self._size > MAX_BYTES + len(self._passed) * MAX_BYTES_PER_BLOCK:
            count = len(self._passed) + 1
            raise ObjectTooLarge(
                f"{self._blocks.describe(name)}: the last {count} blocks of this chain have {self._size} bytes, more"
                " than the limit",
                hint="Blocks usually have about a kilobyte; ask the publisher of the dataset.",
            )
        return block


def read_block(blocks: ObjectStore, name: Multihash) -> EncodedBlock:
    """Read a block from an untrusted source: limit its size, verify its hash, and decode it.

    Raises:
        ObjectNotFound, HashMismatch, MalformedData, IntegrityError: the block is missing or invalid; the message has
            its location.
    """
    where = blocks.describe(name)
    try:
        with blocks.open(name) as stream:
            data = _read_at_most(stream, MAX_BLOCK_SIZE)
        return EncodedBlock(check_block_bytes(name, data), data)
    except (HashMismatch, MalformedData, ObjectTooLarge) as error:
        raise error.with_context(where) from error
    except InvalidValue as error:
        raise IntegrityError(f"{where}: {error.message}") from error
    except OSError as error:
        raise OdfError(f"Cannot read {where}: {error.strerror or error}") from error


def _read_at_most(stream: BinaryIO, limit: int) -> bytes:
    data, pace, begin = bytearray(), Pace(), time.monotonic()
    while chunk := stream.read(CHUNK):
        pace.wait(time.monotonic() - begin, len(chunk))
        data += chunk
        begin = time.monotonic()
        if len(data) > limit:
            raise ObjectTooLarge(f"More than the {limit} bytes that a block can have")
    return bytes(data)
