"""Signers of a dataset's blocks, for display and for verification."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

from odfpy.chain import revocations
from odfpy.chain.block import HashedBlock
from odfpy.chain.required_signers import RequiredSigners
from odfpy.chain.revocations import KeyRevocation, RevokedKey, honoured_in
from odfpy.chain.revoked_keys import RevokedKeys, walk_back
from odfpy.chain.signatures import (
    HEAD_PATH,
    MAX_SIZE,
    Signature,
    SignatureReport,
    SignedBlock,
    path_of,
    read_head_signatures,
    read_signatures,
)
from odfpy.chain.stores.ref_store import HEAD
from odfpy.chain.stores.side_files import SideFiles
from odfpy.coordinator.storage.keys import UserKeys
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import ActorId, DatasetId
from odfpy.errors import OdfError
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class Signer:
    """A signer of a block.

    Attributes:
        key: the key of the signer.
        name: the local name of the signer.
        time: time of the signature, according to the signer.
    """

    key: ActorId
    name: str
    time: Timestamp


@dataclass(frozen=True, slots=True)
class BlockSigners:
    """The signers of a block, or the `error` if they cannot be determined."""

    signers: tuple[Signer, ...] = ()
    error: OdfError | None = None


class Signers:
    """The signers of a dataset's blocks."""

    def __init__(self, dataset: StoredDataset) -> None:
        self._side = dataset.layout.side
        self._dataset_id = dataset.handle.id
        self._chain = dataset.chain

    @cached_property
    def _keys(self) -> UserKeys:
        return UserKeys()

    @cached_property
    def _revoked(self) -> RevokedKeys:
        blocks = walk_back((), ()) if not self._statements else walk_back(list(self._chain.iter_blocks()), ())
        return RevokedKeys(self._dataset_id, self._statements, blocks)

    @cached_property
    def _statements(self) -> tuple[KeyRevocation, ...]:
        return statements_about(self._side, self._dataset_id, self._keys)

    def get(self, hashed: HashedBlock) -> BlockSigners:
        """Return the signers of a block; every signature is verified."""
        try:
            signed = read_signatures(self._side, self._dataset_id, hashed)
            if signed is None:
                return BlockSigners()
            counting = self._revoked.counting(signed, hashed).signers
            pairs = zip(signed.signers, signed.signatures, strict=True)
            return BlockSigners(tuple(self._signer(key, one, counts=key in counting) for key, one in pairs))
        except OdfError as error:
            return BlockSigners(error=error)

    def has_revoked(self, block: Multihash) -> bool:
        """Return whether a signature of a block is not effective, since its key was revoked or had expired.

        Raises:
            OdfError: a signature is forged or damaged, or the block is missing.
        """
        if not self._statements:  # nothing has to be verified
            return False
        hashed = self._chain.block(block)
        signed = read_signatures(self._side, self._dataset_id, hashed)
        return signed is not None and self._revoked.counting(signed, hashed) != signed

    def _signer(self, key: ActorId, signature: Signature, *, counts: bool) -> Signer:
        name = self._keys.name_of(key, self._dataset_id)
        return Signer(key, name if counts else f"{name} (not valid: the key was revoked)", signature.time)


def statements_about(side: SideFiles | None, dataset_id: DatasetId, keys: UserKeys) -> tuple[KeyRevocation, ...]:
    """Return the accepted statements about keys in a dataset of the workspace.

    Args:
        side: side files of the dataset, None if there are none.
        dataset_id: id of the dataset.
        keys: the keys of the user.
    """
    stored_keys = (revocations.key_of(f"{revocations.FOLDER}/{name}") for name in _files_of(side))
    return (
        *honoured_in(side, dataset_id, [key for key in stored_keys if key is not None]),
        *keys.revoked.get(dataset_id),
    )


def _files_of(side: SideFiles | None) -> Iterator[str]:
    return iter(()) if side is None else side.names(revocations.FOLDER)


ReportSigner = Callable[[OdfError, HashedBlock, str], None]
"""Receives a finding: the error, its block, and its file."""


def verify_signatures(
    dataset: StoredDataset, blocks: Sequence[HashedBlock], required: RequiredSigners | None, tell: ReportSigner
) -> SignatureReport:
    """Check all signatures of a chain, and that the required signers have signed it.

    Args:
        dataset: the dataset.
        blocks: the blocks of the dataset, oldest first.
        required: the required signers of the newest block, None for no requirement.
        tell: called for each signature that is forged, damaged or made with a revoked or expired key, and for a missing
            one; also for revocations that are not accepted.
    """
    side, dataset_id = dataset.layout.side, dataset.handle.id
    if side is None or not blocks:
        return SignatureReport()
    newest = blocks[-1]
    _verify_revocations(side, dataset_id, newest, tell)
    vouching = {ActorId.owner_of(dataset_id), *(required.keys if required is not None else ())}
    statements = statements_about(side, dataset_id, UserKeys())
    revoked = RevokedKeys(dataset_id, statements, walk_back(blocks, ()), frozenset(vouching))
    counted: list[SignedBlock | None] = []
    signed: SignedBlock | None = None
    for hashed in blocks:
        file = side.describe(path_of(hashed.hash))
        try:
            signed = read_signatures(side, dataset_id, hashed)
            counted.append(None if signed is None else revoked.counting(signed, hashed))
            if signed is not None:
                revoked.require(signed, hashed, file)
        except RevokedKey as error:
            tell(error, hashed, file)
        except OdfError as error:
            signed = None
            counted.append(None)
            tell(error, hashed, file)
    try:
        read_head_signatures(side, dataset_id, newest)
    except OdfError as error:
        tell(error, newest, side.describe(HEAD_PATH))
    if required is not None:
        try:
            required.check(newest, signed, revoked, dataset.layout.refs.describe(HEAD))
        except OdfError as error:
            tell(error, newest, side.describe(path_of(newest.hash)))
    return SignatureReport.of(counted)


def _verify_revocations(side: SideFiles, dataset_id: DatasetId, newest: HashedBlock, tell: ReportSigner) -> None:
    for name in side.names(revocations.FOLDER):
        path = f"{revocations.FOLDER}/{name}"
        key = revocations.key_of(path)
        try:
            data = side.read(path, MAX_SIZE)
            if key is not None and data is not None:
                revocations.require_entitled(revocations.decode(data, path), key, dataset_id, path)
        except OdfError as error:
            tell(error, newest, side.describe(path))
