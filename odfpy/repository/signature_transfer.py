"""Signatures go where the blocks go that they are of: a step of a transfer (see `simple_transfer`).

They are checked on the way, whoever has made them: a forged one ends the transfer before anything else comes. They are
written before the head moves, beside blocks that no chain has yet; what an interrupted transfer leaves is harmless.
"""

from __future__ import annotations

from collections.abc import Sequence

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.ref_store import HEAD as HEAD_NAME
from odfpy.chain.side_files import SideFiles
from odfpy.chain.signatures import (
    BLOCK,
    HEAD,
    HEAD_PATH,
    RequiredSigners,
    SignatureReport,
    encode,
    path_of,
    read_all_signatures,
    read_head_signatures,
    read_signatures,
    says_signed,
)
from odfpy.dataset.identity import DatasetId


def copy_signatures(
    source: DatasetLayout,
    target: DatasetLayout,
    blocks: Sequence[HashedBlock],
    dataset_id: DatasetId,
    required: RequiredSigners | None = None,
) -> SignatureReport:
    """Copy the signatures of some blocks, as far as there are any.

    Args:
        source: read only, and not trusted.
        target: written to, if it has room for signatures.
        blocks: oldest first, the last one is the source's head; they have been validated. None where the source is
            behind the target, and overwrites it.
        dataset_id: of both.
        required: by whom the last block must be signed.

    Returns:
        Who has signed the blocks.

    Raises:
        ForgedSignature, MalformedSignature: the message names block and file.
        NotSigned: `required` does not hold.
    """
    if not blocks:
        return SignatureReport()
    side = source.side if source.side is not None and says_signed(source.side) else None
    newest = blocks[-1]
    signed = read_signatures(side, dataset_id, newest)
    if required is not None:
        required.check(newest, signed, dataset_id, source.refs.describe(HEAD_NAME))
    if side is None:
        return SignatureReport(unsigned=len(blocks))
    found = [*read_all_signatures(side, dataset_id, blocks[:-1]), signed]
    if target.side is not None:
        target.side.write_all({path_of(one.block_hash): encode(one, BLOCK) for one in found if one is not None})
    _copy_head(side, target, dataset_id, newest)
    return SignatureReport.of(found)


def _copy_head(side: SideFiles, target: DatasetLayout, dataset_id: DatasetId, head: HashedBlock) -> None:
    signed = read_head_signatures(side, dataset_id, head)
    if signed is not None and target.side is not None:
        target.side.write(HEAD_PATH, encode(signed, HEAD))
