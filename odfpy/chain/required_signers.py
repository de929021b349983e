"""Required signers: policy on the signatures of a copy of a dataset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from odfpy.chain.block import HashedBlock
from odfpy.chain.revocations import KeyRevocation, KnownRevocations
from odfpy.chain.revoked_keys import RevokedKeys
from odfpy.chain.signatures import SignedBlock
from odfpy.dataset.identity import ActorId
from odfpy.errors import IntegrityError
from odfpy.values import dataclass


class NotSigned(IntegrityError, code="E654"):
    """A copy is not signed by a required signer."""


@dataclass(frozen=True, slots=True)
class RequiredSigners:
    """The required signers of a copy: one of them must have signed its newest block, which covers all before it.

    Attributes:
        names: names of the signers, for messages; empty if no signature is required.
        keys: their public keys.
        owner: whether the dataset's own key is accepted, too.
        revoked: revoked and expired keys that are known here.
        learn: records the statements of another repository about such keys; called before anything is rejected, so that
            a stolen key is not accepted elsewhere.
    """

    names: str
    keys: frozenset[ActorId]
    owner: bool
    revoked: KnownRevocations = field(default_factory=KnownRevocations)
    learn: Callable[[tuple[KeyRevocation, ...]], None] = field(default=lambda _: None, compare=False)

    def check(self, newest: HashedBlock, signed: SignedBlock | None, revoked: RevokedKeys, where: str) -> None:
        """Check that a chain is signed as required, by the signatures of its last block.

        Args:
            newest: the block.
            signed: its verified signatures.
            revoked: decides which of the signatures are valid.
            where: location of the chain, for messages.

        Raises:
            NotSigned: the block is not signed as required.
        """
        if not self.names:
            return
        owner = ActorId.owner_of(revoked.dataset_id)
        signers = revoked.counting(signed, newest).signers if signed is not None else ()
        if (self.keys | ({owner} if self.owner else set())).intersection(signers):
            return
        names = ["the owner" if signer == owner else str(signer) for signer in signers]
        signatures = signed.signatures if signed is not None else ()
        ended = [
            revocation for signature in signatures if (revocation := revoked.end_of(signature, newest)) is not None
        ]
        by = f"by {', '.join(names)}" if names else "with no valid key"
        reasons = [f"signed {by}" if signatures else "not signed"]
        reasons += [f"the key {revocation.key} {revocation.in_words(revoked.dataset_id)}" for revocation in ended]
        todo = "commit again with a valid key" if ended else "sign it"
        raise NotSigned(
            f"Block {newest.block.sequence_number} ({newest.hash}) of {where} is {'; '.join(reasons)};"
            f" signatures.require needs {self.names}",
            hint=f"Ask the publisher of the dataset to {todo}, or `odf config set signatures.require` otherwise.",
        )
