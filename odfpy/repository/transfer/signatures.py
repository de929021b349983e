"""Signatures go where the blocks go that they are of: a step of a transfer (see `simple_transfer`).

They are read and checked first, whoever has made them: a forged one ends the transfer before anything else comes. They
are written last, just before the head moves: a transfer that fails leaves the signatures of the head as they were.

Revocations of the keys that have signed go along, also where nothing else is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from typing import Final

from odfpy.chain import revocations
from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceView
from odfpy.chain.required_signers import RequiredSigners
from odfpy.chain.revocations import KeyRevocation, honoured_in
from odfpy.chain.revoked_keys import RevokedKeys, walk_back
from odfpy.chain.signatures import (
    BLOCK_SIGNATURES,
    HEAD_PATH,
    HEAD_SIGNATURES,
    MAX_SIZE,
    SignatureReport,
    SignedBlock,
    decode,
    encode,
    has_signatures,
    path_of,
    read_all_signatures,
    read_head_signatures,
    read_signatures,
)
from odfpy.chain.stores.ref_store import HEAD
from odfpy.chain.stores.side_files import LocalSideFiles, SideFiles
from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import ActorId, DatasetId
from odfpy.errors import OdfError
from odfpy.values import dataclass

_MAX_SIGNERS: Final = 100


@dataclass(frozen=True, slots=True)
class CollectedSignatures:
    """The signatures of some blocks, which have been checked.

    Attributes:
        report: who has signed the blocks.
    """

    report: SignatureReport = field(default_factory=SignatureReport)
    _revocations: tuple[KeyRevocation, ...] = ()  # what their place says of the keys that have signed
    _blocks: tuple[SignedBlock, ...] = ()
    _head: SignedBlock | None = None

    def store(self, target: DatasetLayout) -> None:
        """Write them to a place, if it has room for signatures; its head is about to move to the last of the blocks."""
        if target.side is None:
            return
        revocations.add(target.side, self._revocations)
        target.side.write_all({path_of(signed.block_hash): encode(signed, BLOCK_SIGNATURES) for signed in self._blocks})
        if self._head is not None and not isinstance(target.refs, ReferenceView):
            target.side.write(HEAD_PATH, encode(self._head, HEAD_SIGNATURES))


def collect_signatures(
    source: DatasetLayout,
    blocks: Sequence[HashedBlock],
    dataset_id: DatasetId,
    required: RequiredSigners | None = None,
    target: DatasetLayout | None = None,
) -> CollectedSignatures:
    """The signatures of some blocks, as far as there are any.

    Args:
        source: where they are; it is not trusted.
        blocks: oldest first, the last one is the source's head; they have been validated. None where the source is
            behind the target, and overwrites it.
        dataset_id: of the dataset.
        required: by whom the last block must be signed, and which keys are known to have ended; learns which others
            have, also of blocks that are refused then.
        target: where they go; has the blocks before them.

    Raises:
        ForgedSignature, MalformedSignature: the message names block and file.
        RevokedKey: a block is signed with a key that had been revoked, or had expired.
        NotSigned: `required` does not hold.
    """
    if not blocks:
        return CollectedSignatures()
    side = source.side if source.side is not None and has_signatures(source.side) else None
    newest = blocks[-1]
    found: list[SignedBlock | None] = [None for _ in blocks[:-1]]
    if side is not None:
        found = read_all_signatures(side, dataset_id, blocks[:-1])
    found.append(read_signatures(side, dataset_id, newest))
    keys = list(dict.fromkeys(signer for signed in reversed(found) if signed is not None for signer in signed.signers))
    said = honoured_in(side, dataset_id, _keys_to_ask(side, keys)) if side is not None else ()
    _tell(required, said)
    revoked = _revoked(blocks, dataset_id, said, keys, required, target)
    counting: list[SignedBlock | None] = []
    for hashed, signed in zip(blocks, found, strict=True):
        if signed is not None and side is not None:
            revoked.require(signed, hashed, side.describe(path_of(hashed.hash)))
        counting.append(None if signed is None else revoked.counting(signed, hashed))
    if required is not None:
        required.check(newest, found[-1], revoked, source.refs.describe(HEAD))
    if side is None:
        return CollectedSignatures(SignatureReport(unsigned=len(blocks)))
    return CollectedSignatures(
        SignatureReport.of(counting),
        said,
        tuple(one for one in found if one is not None),
        read_head_signatures(side, dataset_id, newest),
    )


def _revoked(
    blocks: Sequence[HashedBlock],
    dataset_id: DatasetId,
    said: tuple[KeyRevocation, ...],
    keys: Sequence[ActorId],
    required: RequiredSigners | None,
    target: DatasetLayout | None,
) -> RevokedKeys:
    known = required.revoked.get(dataset_id) if required is not None else ()
    there = honoured_in(target.side, dataset_id, _keys_to_ask(target.side, keys)) if target is not None else ()
    before = blocks[0].block.prev_block_hash
    older = target.chain.iter_blocks(before) if target is not None and before is not None else ()
    vouching = {ActorId.owner_of(dataset_id), *(required.keys if required is not None and required.names else ())}
    return RevokedKeys(dataset_id, (*said, *there, *known), walk_back(blocks, older), frozenset(vouching))


def carry_revocations(
    source: DatasetLayout, target: DatasetLayout, head: Multihash, required: RequiredSigners | None = None
) -> None:
    """Bring what a place says of the keys that have signed its head to another that has the same blocks.

    One of the two is on this machine, and has been checked. What goes wrong here is no fault of the transfer.

    Args:
        source: the place that has them.
        target: the place that gets them.
        head: the head of both.
        required: learns which keys have ended.
    """
    said: tuple[KeyRevocation, ...] = ()
    here = next((layout.side for layout in (target, source) if isinstance(layout.side, LocalSideFiles)), None)
    with suppress(OdfError):
        data = None if here is None else here.read(path_of(head), MAX_SIZE)
        signed = None if data is None else decode(data, BLOCK_SIGNATURES, path_of(head))
        if signed is not None and source.side is not None and target.side is not None:
            said = honoured_in(source.side, signed.dataset_id, _keys_to_ask(source.side, signed.signers))
            revocations.add(target.side, said)
    _tell(required, said)


def _tell(required: RequiredSigners | None, said: tuple[KeyRevocation, ...]) -> None:
    if required is not None and said:
        required.learn(said)


def _keys_to_ask(side: SideFiles | None, signers: Sequence[ActorId]) -> list[ActorId]:
    """The keys that a place is asked about: all that it has statements of, where that can be seen; else signers.

    Those of the newest blocks come first. A place that names more of them than anybody has does not get more questions;
    it could leave out what it has to say of them as well.
    """
    if not isinstance(side, LocalSideFiles):
        return list(signers[:_MAX_SIGNERS])
    keys = (revocations.key_of(f"{revocations.FOLDER}/{name}") for name in side.names(revocations.FOLDER))
    return [key for key in keys if key is not None]
