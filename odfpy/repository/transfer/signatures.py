"""Signatures of blocks, which are transferred together with their blocks; a step of a transfer (see `transfer.simple`).

They are first read and verified: a forged one aborts the transfer before anything is copied. They are written last,
just before the head moves: a failed transfer leaves the signatures of the head unchanged. Revocations of the signers'
keys are transferred, too, even if nothing else is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field, replace
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
    """The verified signatures of blocks.

    Attributes:
        report: signers of the blocks.
    """

    report: SignatureReport = field(default_factory=SignatureReport)
    _revocations: tuple[KeyRevocation, ...] = ()  # statements of the source about the signers' keys
    _blocks: tuple[SignedBlock, ...] = ()
    _head: SignedBlock | None = None

    def store(self, target: DatasetLayout) -> None:
        """Write the signatures to a dataset, if supported; its head must move to the last block next."""
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
    head: HashedBlock | None = None,
) -> CollectedSignatures:
    """Read and verify the existing signatures of blocks.

    Args:
        source: the dataset with the signatures; it is not trusted.
        blocks: validated blocks, oldest first; the last one is the source's head. Empty if the source is behind the
            target, and overwrites it.
        dataset_id: id of the dataset.
        required: required signers of the last block, and known revoked and expired keys; newly found ones are added,
            even if blocks are then rejected.
        target: the target dataset, with the preceding blocks.
        head: the source's head, which must be signed as required if `blocks` is empty; its signatures are then
            collected.

    Raises:
        ForgedSignature, MalformedSignature: a signature is invalid; the message names block and file.
        RevokedKey: a block is signed with a revoked or expired key.
        NotSigned: a required signature is missing.
    """
    if not blocks:
        if head is None:
            return CollectedSignatures()
        # The signature of the target's head would name a dropped block, to which a repair would move the head back.
        return replace(collect_signatures(source, [head], dataset_id, required, target), report=SignatureReport())
    side = source.side if source.side is not None and has_signatures(source.side) else None
    newest = blocks[-1]
    signatures: list[SignedBlock | None] = [None for _ in blocks[:-1]]
    if side is not None:
        signatures = read_all_signatures(side, dataset_id, blocks[:-1])
    signatures.append(read_signatures(side, dataset_id, newest))
    keys = list(
        dict.fromkeys(signer for signed in reversed(signatures) if signed is not None for signer in signed.signers)
    )
    statements = honoured_in(side, dataset_id, _keys_to_ask(side, keys)) if side is not None else ()
    _learn_revocations(required, statements)
    revoked = _revoked(blocks, dataset_id, statements, keys, required, target)
    counted: list[SignedBlock | None] = []
    for hashed, signed in zip(blocks, signatures, strict=True):
        if signed is not None and side is not None:
            revoked.require(signed, hashed, side.describe(path_of(hashed.hash)))
        counted.append(None if signed is None else revoked.counting(signed, hashed))
    if required is not None:
        required.check(newest, signatures[-1], revoked, source.refs.describe(HEAD))
    if side is None:
        return CollectedSignatures(SignatureReport(unsigned=len(blocks)))
    return CollectedSignatures(
        SignatureReport.of(counted),
        statements,
        tuple(signed_block for signed_block in signatures if signed_block is not None),
        read_head_signatures(side, dataset_id, newest),
    )


def _revoked(
    blocks: Sequence[HashedBlock],
    dataset_id: DatasetId,
    source_statements: tuple[KeyRevocation, ...],
    keys: Sequence[ActorId],
    required: RequiredSigners | None,
    target: DatasetLayout | None,
) -> RevokedKeys:
    known_statements = required.revoked.get(dataset_id) if required is not None else ()
    target_statements = (
        honoured_in(target.side, dataset_id, _keys_to_ask(target.side, keys)) if target is not None else ()
    )
    before = blocks[0].block.prev_block_hash
    older = target.chain.iter_blocks(before) if target is not None and before is not None else ()
    vouching = {ActorId.owner_of(dataset_id), *(required.keys if required is not None and required.names else ())}
    return RevokedKeys(
        dataset_id,
        (*source_statements, *target_statements, *known_statements),
        walk_back(blocks, older),
        frozenset(vouching),
    )


def carry_revocations(
    source: DatasetLayout, target: DatasetLayout, head: Multihash, required: RequiredSigners | None = None
) -> None:
    """Transfer statements about the keys that have signed a head between datasets with the same blocks.

    One of the two is local and verified. Errors here do not make the transfer fail.

    Args:
        source: the dataset with the statements.
        target: the dataset that receives them.
        head: hash of the head of both.
        required: records revoked and expired keys.
    """
    statements: tuple[KeyRevocation, ...] = ()
    local_side = next((layout.side for layout in (target, source) if isinstance(layout.side, LocalSideFiles)), None)
    with suppress(OdfError):
        data = None if local_side is None else local_side.read(path_of(head), MAX_SIZE)
        signed = None if data is None else decode(data, BLOCK_SIGNATURES, path_of(head))
        if signed is not None and source.side is not None and target.side is not None:
            statements = honoured_in(source.side, signed.dataset_id, _keys_to_ask(source.side, signed.signers))
            revocations.add(target.side, statements)
    _learn_revocations(required, statements)


def _learn_revocations(required: RequiredSigners | None, statements: tuple[KeyRevocation, ...]) -> None:
    if required is not None and statements:
        required.learn(statements)


def _keys_to_ask(side: SideFiles | None, signers: Sequence[ActorId]) -> list[ActorId]:
    """Return the keys to query for statements: all keys that have any, if they can be listed; otherwise the signers.

    Signers of the newest blocks come first. The number is limited: a remote that lists too many keys could as well
    withhold its statements.
    """
    if not isinstance(side, LocalSideFiles):
        return list(signers[:_MAX_SIGNERS])
    keys = (revocations.key_of(f"{revocations.FOLDER}/{name}") for name in side.names(revocations.FOLDER))
    return [key for key in keys if key is not None]
