"""Signatures of a chain that are invalid since their keys had ended before; see `odfpy.chain.revocations`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from odfpy.chain.block import HashedBlock
from odfpy.chain.revocations import ExpiredKey, KeyRevocation, RevokedKey
from odfpy.chain.signatures import Signature, SignedBlock
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import ActorId, DatasetId
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class RevokedKeys:
    """The revoked and expired keys of a chain, which decide which of its signatures are invalid.

    Attributes:
        dataset_id: id of the dataset.
        statements: honoured statements about keys.
        block_at: returns the block of the chain with a number; None if the chain is shorter.
        vouching: keys whose signature of a block makes up for an invalid one.
    """

    dataset_id: DatasetId
    statements: tuple[KeyRevocation, ...]
    block_at: Callable[[int], Multihash | None]
    vouching: frozenset[ActorId] = frozenset()

    def require(self, signed: SignedBlock, hashed: HashedBlock, where: str, *, now: Timestamp | None = None) -> None:
        """Check that a block is not signed with a key that had ended before.

        If a vouching key has signed it, too, the other signature is ignored.

        Args:
            signed: the verified signatures of the block.
            hashed: the block.
            where: file of the signatures, for messages.
            now: local time, for a block that was not known before: keys that have expired by then are rejected.

        Raises:
            RevokedKey: such a key has signed it, and no other key vouches for it.
        """
        if self.vouching.intersection(self.counting(signed, hashed).signers):
            return
        for signature in signed.signatures:
            time = max(signature.time, hashed.block.system_time)
            for revocation in self._about(signature.signer):
                is_late = now is not None and revocation.expires is not None and now > revocation.expires
                if is_late or self._is_after(revocation, hashed, time):
                    raise self._refused(revocation, hashed, where)

    def counting(self, signed: SignedBlock, hashed: HashedBlock) -> SignedBlock:
        """Return the signatures of a block that are valid."""
        kept = tuple(signature for signature in signed.signatures if self.end_of(signature, hashed) is None)
        return signed if len(kept) == len(signed.signatures) else replace(signed, signatures=kept)

    def end_of(self, signature: Signature, hashed: HashedBlock) -> KeyRevocation | None:
        """Return the statement by which a signature of a block is invalid, None if it is valid."""
        time = max(signature.time, hashed.block.system_time)
        for revocation in self._about(signature.signer):
            if revocation.ends_all or self._is_after(revocation, hashed, time):
                return revocation
        return None

    def _about(self, key: ActorId) -> Iterator[KeyRevocation]:
        return (statement for statement in self.statements if statement.key == str(key))

    def _is_after(self, revocation: KeyRevocation, hashed: HashedBlock, time: Timestamp) -> bool:
        if revocation.since is None:
            return time > revocation.end
        known_hash = self.block_at(revocation.since.sequence_number)
        is_another_history = known_hash is not None and known_hash != revocation.since.block_hash
        return is_another_history or hashed.block.sequence_number > revocation.since.sequence_number

    def _refused(self, revocation: KeyRevocation, hashed: HashedBlock, where: str) -> RevokedKey:
        block = f"Block {hashed.block.sequence_number} ({hashed.hash})"
        message = (
            f"{block} is signed with the key {revocation.key}, which {revocation.in_words(self.dataset_id)}: {where}"
        )
        if revocation.expires is not None:
            hint = (
                "The holder of the key must create another one and commit again: `odf key revoke --reason superseded`."
            )
            return ExpiredKey(message, hint=hint)
        hint = "The signer used a revoked key. Ask the owner of the dataset."
        return RevokedKey(message, hint=hint)


def walk_back(blocks: Sequence[HashedBlock], before: Iterable[HashedBlock]) -> Callable[[int], Multihash | None]:
    """Return a function that returns the hash of the block with a number.

    Args:
        blocks: the newest blocks of the chain, oldest first.
        before: the preceding blocks, newest first; read as far as needed.
    """
    known = {hashed.block.sequence_number: hashed.hash for hashed in blocks}
    rest = iter(before)

    def at(number: int) -> Multihash | None:
        while number not in known and known and number < min(known):
            block = next(rest, None)
            if block is None:
                break
            known[block.block.sequence_number] = block.hash
        return known.get(number)

    return at
