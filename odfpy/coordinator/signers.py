"""Who has signed the blocks of a dataset, for people and for verification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from odfpy.chain.block import HashedBlock
from odfpy.chain.ref_store import HEAD
from odfpy.chain.signatures import (
    HEAD_PATH,
    RequiredSigners,
    SignatureReport,
    SignedBlock,
    path_of,
    read_head_signatures,
    read_signatures,
)
from odfpy.coordinator.keys import UserKeys
from odfpy.coordinator.storage import StoredDataset
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import ActorId
from odfpy.errors import OdfError


@dataclass(frozen=True, slots=True)
class Signer:
    """Somebody who has signed a block.

    Attributes:
        key: their key.
        name: what they are called here.
        time: when they have signed, as they say.
    """

    key: ActorId
    name: str
    time: Timestamp


@dataclass(frozen=True, slots=True)
class BlockSigners:
    """Who has signed a block; `error` says why that is not known."""

    signers: tuple[Signer, ...] = ()
    error: OdfError | None = None


class Signers:
    """Looks up who has signed the blocks of a dataset."""

    def __init__(self, dataset: StoredDataset) -> None:
        self._side = dataset.layout.side
        self._dataset_id = dataset.handle.id

    @cached_property
    def _keys(self) -> UserKeys:
        return UserKeys()

    def of(self, hashed: HashedBlock) -> BlockSigners:
        """Who has signed a block; every signature is checked."""
        try:
            signed = read_signatures(self._side, self._dataset_id, hashed)
            found = zip(signed.signers, signed.signatures, strict=True) if signed else ()
            return BlockSigners(
                tuple(Signer(key, self._keys.name_of(key, self._dataset_id), one.time) for key, one in found)
            )
        except OdfError as error:
            return BlockSigners(error=error)


Tell = Callable[[OdfError, HashedBlock, str], None]
"""Told of a finding: what is wrong, with which block, in which file."""


def verify_signatures(
    dataset: StoredDataset, blocks: Sequence[HashedBlock], required: RequiredSigners | None, tell: Tell
) -> SignatureReport:
    """Check all signatures of a chain, and that it is signed by whom it must be.

    Args:
        dataset: which.
        blocks: its blocks, oldest first.
        required: by whom the newest must be signed.
        tell: told of each signature that is forged or damaged, and of the one that is missing.
    """
    side, dataset_id = dataset.layout.side, dataset.handle.id
    if side is None or not blocks:
        return SignatureReport()
    found: list[SignedBlock | None] = []
    for hashed in blocks:
        try:
            found.append(read_signatures(side, dataset_id, hashed))
        except OdfError as error:
            found.append(None)
            tell(error, hashed, side.describe(path_of(hashed.hash)))
    newest = blocks[-1]
    try:
        read_head_signatures(side, dataset_id, newest)
    except OdfError as error:
        tell(error, newest, side.describe(HEAD_PATH))
    if required is not None:
        try:
            required.check(newest, found[-1], dataset_id, dataset.layout.refs.describe(HEAD))
        except OdfError as error:
            tell(error, newest, side.describe(path_of(newest.hash)))
    return SignatureReport.of(found)
