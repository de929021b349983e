"""Repair of references and signatures. These are not named by a hash, so remotes are only trusted to a limited extent.

- A damaged or dangling tag or branch is fetched from a remote. So is the head, unless its local signature suffices. If
  local blocks continue from the fetched block, the user must decide.
- Signatures are fetched if they are valid, for blocks whose local signatures are damaged or missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.chain.signatures import (
    BLOCK_SIGNATURES,
    HEAD_PATH,
    HEAD_SIGNATURES,
    MAX_SIZE,
    SignedBlock,
    decode,
    encode,
    has_signatures,
    path_of,
    read_all_signatures,
    read_head_signatures,
    read_signatures,
)
from odfpy.chain.stores.ref_store import HEAD, LocalRefStore
from odfpy.chain.stores.side_files import SideFiles
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.errors import IntegrityError, OdfError
from odfpy.files import make_way_for
from odfpy.repository.divergence import read_block

Remotes = Sequence[tuple[str, DatasetLayout]]
"""Remotes of the dataset: names and layouts."""


# --- References ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReferenceRepair:
    """Repair of the references of a dataset; requires its lock."""

    dataset: StoredDataset
    remotes: Remotes

    def restored(self, name: str) -> bool:
        """Restore a reference if it is damaged or dangling; return whether it was restored.

        Raises:
            IntegrityError: a signature or remote has the reference, but local blocks continue from its block.
            OdfError: the reference cannot be written.
        """
        refs = self.dataset.layout.refs
        assert isinstance(refs, LocalRefStore)  # noqa: S101 - a dataset of a workspace, seen from its head
        current: Multihash | None = None
        with suppress(OdfError):
            current = refs.get(name)
        # A reference that has only lost its block is correct. A dangling head does not go back to what was once pushed.
        if current is not None and (current in self.dataset.layout.blocks or self._is_somewhere(current)):
            return False
        for block in self._signed_head() if name == HEAD and current is not None else self._candidates(name):
            if block != current and self._is_somewhere(block):
                if not _is_tag(name):
                    self._require_last(name, block)
                refs.restore(name, block)
                return True
        return False

    def _candidates(self, name: str) -> Iterator[Multihash]:
        if name == HEAD:
            yield from self._signed_head()
        for _, remote in self.remotes:
            with suppress(OdfError):
                block = remote.refs.get(name)
                if block is not None:
                    yield block

    def _signed_head(self) -> Iterator[Multihash]:
        """Yield the block to which the head was last moved according to its signature."""
        if (signed := self._head_signatures()) is not None:
            yield signed.block_hash

    def _head_signatures(self) -> SignedBlock | None:
        side = self.dataset.layout.side
        with suppress(OdfError):
            data = None if side is None else side.read(HEAD_PATH, MAX_SIZE)
            if side is not None and data is not None:
                signed = decode(data, HEAD_SIGNATURES, side.describe(HEAD_PATH))
                block = self.dataset.chain.block(signed.block_hash)
                return read_head_signatures(side, self.dataset.handle.id, block)
        return None

    def _is_somewhere(self, block: Multihash) -> bool:
        for layout in (self.dataset.layout, *(remote for _, remote in self.remotes)):
            with suppress(OdfError):
                read_block(layout.blocks, block)
                return True
        return False

    def _require_last(self, name: str, block: Multihash) -> None:
        """Check that local successors of a block are reachable from another reference, or were abandoned by a reset."""
        layout = self.dataset.layout
        reached: set[Multihash] = set()
        for other in layout.refs.names():
            with suppress(OdfError):
                reached.update(hashed.hash for hashed in layout.chain.iter_blocks(layout.refs.get(other)))
        since = self._signed_at(block) if name == HEAD else None
        after = [
            hashed.hash
            for hashed in self._blocks_here()
            if hashed.block.prev_block_hash == block
            and hashed.hash not in reached
            and (since is None or hashed.block.system_time > since)
        ]
        # Moving the reference back silently would drop blocks committed after the last push, and `odf gc` would remove
        # them.
        if after:
            raise IntegrityError(
                f"Damaged reference: {layout.refs.describe(name)}; {'its signature' if since else 'another repository'}"
                f" has it at {block}, and blocks here continue from there, such as {after[0]}",
                hint="Write the hash of the block that it was at into the file.",
            )

    def _signed_at(self, block: Multihash) -> Timestamp | None:
        """Return when the head was signed at a block, None if it was not: earlier successors were abandoned.

        Later successors may have been committed without a signature, which does not update the head's signature.
        """
        signed = self._head_signatures()
        if signed is None or signed.block_hash != block:
            return None
        return max((signature.time for signature in signed.signatures), default=None)

    def _blocks_here(self) -> Iterator[HashedBlock]:
        blocks = self.dataset.layout.blocks
        for name in blocks:
            with suppress(OdfError):
                yield read_block(blocks, name).hashed


def _is_tag(name: str) -> bool:
    reference = ReferenceName.parse(name)
    return reference is not None and reference.kind is ReferenceKind.TAG


# --- Signatures ------------------------------------------------------------------------------------------------------


def restored_signatures(dataset: StoredDataset, blocks: Sequence[HashedBlock], remotes: Remotes) -> Iterator[str]:
    """Fetch signatures for blocks whose local signatures are damaged or missing; yield the paths of the written files.

    Args:
        dataset: the dataset; its lock is required.
        blocks: blocks of the dataset.
        remotes: the remotes of the dataset.

    Raises:
        OdfError: a file cannot be written.
    """
    side, dataset_id = dataset.layout.side, dataset.handle.id
    if side is None:
        return
    wanted = [block for block in blocks if not _is_good(side, dataset_id, block)]
    head = next((block for block in blocks if block.hash == dataset.layout.refs.get(HEAD)), None)
    for _, remote in remotes:
        if remote.side is None or not _says_signed(remote.side):
            continue
        restorable = _good_ones(remote.side, dataset_id, wanted) if wanted else []
        for hashed, signed in restorable:
            yield _write(dataset.folder, side, path_of(hashed.hash), encode(signed, BLOCK_SIGNATURES))
            wanted.remove(hashed)
        if head is not None and not _is_good_head(side, dataset_id, head):
            with suppress(OdfError):
                of_head = read_head_signatures(remote.side, dataset_id, head)
                if of_head is not None:
                    yield _write(dataset.folder, side, HEAD_PATH, encode(of_head, HEAD_SIGNATURES))


def _is_good(side: SideFiles, dataset_id: DatasetId, hashed: HashedBlock) -> bool:
    try:
        return read_signatures(side, dataset_id, hashed) is not None
    except OdfError:
        return False


def _is_good_head(side: SideFiles, dataset_id: DatasetId, head: HashedBlock) -> bool:
    try:
        return read_head_signatures(side, dataset_id, head) is not None
    except OdfError:
        return False


def _says_signed(side: SideFiles) -> bool:
    try:
        return has_signatures(side)
    except OdfError:
        return False


def _good_ones(
    side: SideFiles, dataset_id: DatasetId, blocks: Sequence[HashedBlock]
) -> list[tuple[HashedBlock, SignedBlock]]:
    """Return the valid signatures of a remote; an invalid one does not affect the others."""
    try:
        signed_blocks = read_all_signatures(side, dataset_id, blocks)
    except OdfError:
        if len(blocks) == 1:
            return []
        # An invalid signature fails its whole batch. Bisection isolates it with few batches; each batch is one request
        # to a node.
        half = len(blocks) // 2
        return [*_good_ones(side, dataset_id, blocks[:half]), *_good_ones(side, dataset_id, blocks[half:])]
    return [(hashed, signed) for hashed, signed in zip(blocks, signed_blocks, strict=True) if signed is not None]


def _write(folder: Path, side: SideFiles, path: str, data: bytes) -> str:
    try:
        make_way_for(folder / path)
    except OSError as error:
        raise OdfError(f"Cannot write {folder / path}: {error.strerror}") from error
    side.write(path, data)
    return str(folder / path)
