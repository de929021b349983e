"""Signatures go where the blocks go that they are of: a step of a transfer (see `simple_transfer`).

They are read and checked first, whoever has made them: a forged one ends the transfer before anything else comes. They
are written last, just before the head moves: a transfer that fails leaves the signatures of the head as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.ref_store import HEAD as HEAD_NAME
from odfpy.chain.references import ReferenceView
from odfpy.chain.signatures import (
    BLOCK,
    HEAD,
    HEAD_PATH,
    RequiredSigners,
    SignatureReport,
    SignedBlock,
    encode,
    path_of,
    read_all_signatures,
    read_head_signatures,
    read_signatures,
    says_signed,
)
from odfpy.dataset.identity import DatasetId


@dataclass(frozen=True, slots=True)
class CollectedSignatures:
    """The signatures of some blocks, which have been checked.

    Attributes:
        report: who has signed the blocks.
    """

    report: SignatureReport = field(default_factory=SignatureReport)
    _blocks: tuple[SignedBlock, ...] = ()
    _head: SignedBlock | None = None

    def store(self, target: DatasetLayout) -> None:
        """Write them to a place, if it has room for signatures; its head is about to move to the last of the blocks."""
        if target.side is None:
            return
        target.side.write_all({path_of(signed.block_hash): encode(signed, BLOCK) for signed in self._blocks})
        if self._head is not None and not isinstance(target.refs, ReferenceView):
            target.side.write(HEAD_PATH, encode(self._head, HEAD))


def collect_signatures(
    source: DatasetLayout,
    blocks: Sequence[HashedBlock],
    dataset_id: DatasetId,
    required: RequiredSigners | None = None,
) -> CollectedSignatures:
    """The signatures of some blocks, as far as there are any.

    Args:
        source: where they are; it is not trusted.
        blocks: oldest first, the last one is the source's head; they have been validated. None where the source is
            behind the target, and overwrites it.
        dataset_id: of the dataset.
        required: by whom the last block must be signed.

    Raises:
        ForgedSignature, MalformedSignature: the message names block and file.
        NotSigned: `required` does not hold.
    """
    if not blocks:
        return CollectedSignatures()
    side = source.side if source.side is not None and says_signed(source.side) else None
    newest = blocks[-1]
    signed = read_signatures(side, dataset_id, newest)
    if required is not None:
        required.check(newest, signed, dataset_id, source.refs.describe(HEAD_NAME))
    if side is None:
        return CollectedSignatures(SignatureReport(unsigned=len(blocks)))
    found = [*read_all_signatures(side, dataset_id, blocks[:-1]), signed]
    return CollectedSignatures(
        SignatureReport.of(found),
        tuple(one for one in found if one is not None),
        read_head_signatures(side, dataset_id, newest),
    )
