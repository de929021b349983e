"""By whom a copy of a dataset must be signed."""

from __future__ import annotations

from odfpy.chain.block import HashedBlock
from odfpy.chain.revocations import KnownRevocations
from odfpy.chain.signatures import SignedBlock
from odfpy.dataset.identity import ActorId, DatasetId
from odfpy.errors import IntegrityError
from odfpy.values import dataclass


class NotSigned(IntegrityError, code="E654"):
    """A copy is not signed by whom the settings want it to be."""


@dataclass(frozen=True, slots=True)
class RequiredSigners:
    """By whom a copy must be signed: one of some, on its newest block, which vouches for all before it.

    Attributes:
        names: who they are, for messages; empty where nobody must have signed.
        keys: their keys.
        owner: whether the dataset's own key is good, too.
        revoked: what is known here of keys that count no more.
    """

    names: str
    keys: frozenset[ActorId]
    owner: bool
    revoked: KnownRevocations | None = None

    def check(self, newest: HashedBlock, signed: SignedBlock | None, dataset_id: DatasetId, where: str) -> None:
        """Check that a chain that ends in a block is signed as it must be.

        Args:
            newest: the block.
            signed: its signatures that count, which have been checked.
            dataset_id: the dataset.
            where: the place that it is in, for the message.

        Raises:
            NotSigned: it is not.
        """
        signers, owner = signed.signers if signed else (), ActorId.owner_of(dataset_id)
        if not self.names:
            return
        if not (self.keys | ({owner} if self.owner else set())).intersection(signers):
            names = ("the owner" if signer == owner else str(signer) for signer in signers)
            by = f"signed by {', '.join(names)}" if signers else "not signed"
            raise NotSigned(
                f"Block {newest.block.sequence_number} ({newest.hash}) of {where} is {by}; signatures.require wants"
                f" {self.names}",
                hint="Ask whoever publishes the dataset to sign it, or `odf config set signatures.require` otherwise.",
            )
