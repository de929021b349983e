"""Signatures and revocations that a client uploads to a node: verified, then stored next to existing ones.

Existing signatures and statements are never replaced. What is signed with a revoked or expired key is rejected.
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
"""Maximum keys per dataset about which statements are accepted."""


@dataclass
class IncomingSignatures:
    """Uploaded signatures of a dataset.

    Attributes:
        dataset_id: id of the dataset.
        known: keys that the operator knows to be revoked or expired.
        now: current time.
        block_at: returns the block of a number in the chain, including blocks that are about to follow.
    """

    dataset_id: DatasetId
    known: KnownRevocations
    now: Timestamp
    block_at: Callable[[int], Multihash | None]
    _signed: list[tuple[str, str, HashedBlock, SignedBlock]] = field(default_factory=list)
    _statements: list[KeyRevocation] = field(default_factory=list)

    def take_statements(self, path: str, data: bytes, key: ActorId) -> None:
        """Check a file of statements about a key.

        Args:
            path: path of the file in the dataset.
            data: content of the file.
            key: the key that it is about.

        Raises:
            MalformedSignature, UnentitledRevocation: it is invalid.
        """
        found = revocations.decode(data, path)
        revocations.require_entitled(found, key, self.dataset_id, path)
        self._statements += found

    def take(self, path: str, data: bytes, hashed: HashedBlock) -> None:
        """Check a file of signatures of a block, or of a head at that block.

        Args:
            path: path of the file in the dataset.
            data: content of the file.
            hashed: the block with its hash.

        Raises:
            ForgedSignature, MalformedSignature: it is invalid.
        """
        kind = HEAD_SIGNATURES if path == HEAD_PATH else BLOCK_SIGNATURES
        signed = decode(data, kind, path)
        signed.check(kind, self.dataset_id, hashed.hash, hashed.block.sequence_number, path)
        self._signed.append((path, kind, hashed, signed))

    def require(self, side: SideFiles | None, newest: Multihash | None = None) -> None:
        """Check that nothing is signed with a revoked or expired key.

        Args:
            side: side files of the dataset, with its known statements.
            newest: the block that becomes the head: its signatures vouch for all earlier blocks, and count as of today.

        Raises:
            RevokedKey: something is signed with such a key.
        """
        keys = {signer for *_, signed in self._signed for signer in signed.signers}
        said = (*honoured_in(side, self.dataset_id, keys), *self.known.get(self.dataset_id), *self._statements)
        revoked = RevokedKeys(self.dataset_id, said, self.block_at, frozenset({ActorId.owner_of(self.dataset_id)}))
        for path, _, hashed, signed in self._signed:
            revoked.require(signed, hashed, path, now=self.now if hashed.hash == newest else None)

    def store(self, layout: DatasetLayout) -> int:
        """Store everything that was checked; returns the number of files.

        Raises:
            OdfError: it cannot be written.
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
        """Return existing signatures; damaged ones, or those of an earlier head, are ignored."""
        data = side.read(path, MAX_SIZE)
        with suppress(OdfError):
            if data is not None:
                signed = decode(data, kind, path)
                signed.check(kind, self.dataset_id, hashed.hash, hashed.block.sequence_number, path)
                return signed
        return None


def _together(known: SignedBlock | None, new: SignedBlock, dataset_id: DatasetId) -> SignedBlock:
    """Merge signatures, one for each signer: existing ones are kept, and nobody can replace the owner."""
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
        source: side files that contain them.
        dataset_id: id of the dataset.
        signed: signatures by path, None where there are none.

    Raises:
        OdfError: they cannot be read.
    """
    keys = {signer for one in signed.values() if one is not None for signer in one.signers}
    files: dict[str, bytes] = {}
    for key in sorted(keys):
        said = honoured_in(source, dataset_id, [key])
        if said:
            files[revocations.path_of(key)] = revocations.encode(said)
    kinds = {path: HEAD_SIGNATURES if path == HEAD_PATH else BLOCK_SIGNATURES for path in signed}
    return files | {path: encode(one, kinds[path]) for path, one in signed.items() if one is not None}
