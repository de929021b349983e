"""Signatures and revocations uploaded to a node: verify them, then store them next to existing ones.

Existing signatures and statements are never replaced. Signatures by revoked or expired keys are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from odfpy.chain import revocations
from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.revocations import KeyRevocation, KnownRevocations, honoured_in
from odfpy.chain.revoked_keys import RevokedKeys
from odfpy.chain.signatures import (
    BLOCK_SIGNATURES,
    HEAD_PATH,
    HEAD_SIGNATURES,
    MAX_SIGNATURES,
    MAX_SIZE,
    MalformedSignature,
    Signature,
    SignedBlock,
    decode,
    encode,
)
from odfpy.chain.stores.side_files import SideFiles
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import ActorId, DatasetId
from odfpy.errors import OdfError

MAX_KEYS = 1000
"""Maximum number of keys per dataset with statements."""


@dataclass
class IncomingSignatures:
    """Uploaded signatures of a dataset.

    Attributes:
        dataset_id: id of the dataset.
        known: keys known to the operator as revoked or expired.
        now: current time.
        block_at: returns the hash of the block with a number, including blocks that are about to be added.
    """

    dataset_id: DatasetId
    known: KnownRevocations
    now: Timestamp
    block_at: Callable[[int], Multihash | None]
    _signed: list[tuple[str, str, HashedBlock, SignedBlock]] = field(default_factory=list)
    _statements: list[KeyRevocation] = field(default_factory=list)

    def take_statements(self, path: str, data: bytes, key: ActorId) -> None:
        """Check and add a file of statements about a key.

        Args:
            path: path of the file in the dataset.
            data: content of the file.
            key: the key concerned.

        Raises:
            MalformedSignature, UnentitledRevocation: the file is invalid.
        """
        found = revocations.decode(data, path)
        revocations.require_entitled(found, key, self.dataset_id, path)
        self._statements += found

    def take(self, path: str, data: bytes, hashed: HashedBlock) -> None:
        """Check and add a file of signatures of a block, or of a head at the block.

        Args:
            path: path of the file in the dataset.
            data: content of the file.
            hashed: the block.

        Raises:
            ForgedSignature, MalformedSignature: the file is invalid.
        """
        kind = HEAD_SIGNATURES if path == HEAD_PATH else BLOCK_SIGNATURES
        signed = decode(data, kind, path)
        signed.check(kind, self.dataset_id, hashed.hash, hashed.block.sequence_number, path)
        self._signed.append((path, kind, hashed, signed))

    def require(self, side: SideFiles | None, newest: Multihash | None = None) -> None:
        """Check that no signature is by a revoked or expired key.

        Args:
            side: side files of the dataset, with existing statements.
            newest: hash of the block that becomes the head: its signatures vouch for all earlier blocks, and are
                checked as of now.

        Raises:
            RevokedKey: a signature is by a revoked or expired key.
        """
        keys = {signer for *_, signed in self._signed for signer in signed.signers}
        said = (*honoured_in(side, self.dataset_id, keys), *self.known.get(self.dataset_id), *self._statements)
        revoked = RevokedKeys(self.dataset_id, said, self.block_at, frozenset({ActorId.owner_of(self.dataset_id)}))
        for path, _, hashed, signed in self._signed:
            revoked.require(signed, hashed, path, now=self.now if hashed.hash == newest else None)

    def store(self, layout: DatasetLayout) -> int:
        """Store all added files, and return their number.

        Raises:
            OdfError: a file cannot be written.
        """
        side = layout.side
        if not self._signed and not self._statements:
            return 0
        assert side is not None  # noqa: S101 - folders support side files
        self._require_room(side)
        revocations.add(side, self._statements)
        files = {
            path: encode(_together(self._there(side, path, kind, hashed), signed, self.dataset_id), kind)
            for path, kind, hashed, signed in self._signed
        }
        side.write_all(files)
        return len(files) + len({statement.key for statement in self._statements})

    def _require_room(self, side: SideFiles) -> None:
        there = set(side.names(revocations.FOLDER)) if self._statements else set()
        new = {revocations.path_of(statement.actor).rpartition("/")[2] for statement in self._statements}
        if len(there | new) > MAX_KEYS:
            raise MalformedSignature(
                f"Revocations of more than {MAX_KEYS} keys", hint="Ask the operator of the server."
            )

    def _there(self, side: SideFiles, path: str, kind: str, hashed: HashedBlock) -> SignedBlock | None:
        """Return existing signatures; ignore damaged ones, and those of an earlier head."""
        data = side.read(path, MAX_SIZE)
        with suppress(OdfError):
            if data is not None:
                signed = decode(data, kind, path)
                signed.check(kind, self.dataset_id, hashed.hash, hashed.block.sequence_number, path)
                return signed
        return None


def _together(known: SignedBlock | None, new: SignedBlock, dataset_id: DatasetId) -> SignedBlock:
    """Merge signatures, one for each signer: existing ones are retained, and the owner cannot be displaced."""
    found: dict[ActorId, Signature] = {}
    for signed in (known, new):
        for signer, one in zip(signed.signers, signed.signatures, strict=True) if signed is not None else ():
            found.setdefault(signer, one)
    owner = ActorId.owner_of(dataset_id)
    kept = sorted(found, key=lambda signer: signer != owner)[:MAX_SIGNATURES]
    return replace(new, signatures=tuple(one for signer, one in found.items() if signer in kept))


def files_of(source: SideFiles, dataset_id: DatasetId, signed: Mapping[str, SignedBlock | None]) -> dict[str, bytes]:
    """Return files to upload: signatures by path, preceded by the statements about their signers.

    Args:
        source: side files with the statements.
        dataset_id: id of the dataset.
        signed: signatures by path, None for unsigned blocks.

    Raises:
        OdfError: the statements cannot be read.
    """
    keys = {signer for one in signed.values() if one is not None for signer in one.signers}
    files: dict[str, bytes] = {}
    for key in sorted(keys):
        said = honoured_in(source, dataset_id, [key])
        if said:
            files[revocations.path_of(key)] = revocations.encode(said)
    kinds = {path: HEAD_SIGNATURES if path == HEAD_PATH else BLOCK_SIGNATURES for path in signed}
    return files | {path: encode(one, kinds[path]) for path, one in signed.items() if one is not None}
