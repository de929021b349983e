"""Commitments, which bind their signer to an answer (the reference implementation's "Commitments", byte for byte).

A commitment contains the hash of the request, which includes the exact blocks of all input datasets, and the hash of
the answer; a proof is its signature. Hashes are of canonical JSON, `odfpy.codec.commitment_json`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from odfpy.codec.commitment_json import commitment_json
from odfpy.codec.tree import to_tree
from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import KeyPair
from odfpy.dataset.proof import Proof
from odfpy.errors import IntegrityError


class InvalidCommitment(IntegrityError, code="E720"):
    """A commitment does not match its request, or is not signed with the key that it names.

    Attributes:
        kind: kind of the problem, as the reference's node names it.
    """

    kind: str

    def __init__(self, kind: str, problem: str) -> None:
        super().__init__(
            f"The commitment is invalid and cannot be disputed: {problem}",
            hint="It was changed after signing. Ask for the original document.",
        )
        self.kind = f"InvalidRequest::{kind}"


@dataclass(frozen=True, slots=True)
class Commitment:
    """The signed part of an answer.

    Attributes:
        input_hash: hash of the request.
        output_hash: hash of the answer.
        sub_queries_hash: hash of the list of sub-queries that other nodes answered.
    """

    input_hash: Multihash
    output_hash: Multihash
    sub_queries_hash: Multihash

    @classmethod
    def to(cls, request: Any, answer: Any, sub_queries: Sequence[Any] = ()) -> Commitment:
        """Return the commitment to an answer; all arguments are JSON trees.

        Args:
            request: the request.
            answer: the answer.
            sub_queries: the sub-queries that other nodes answered; none here.

        Raises:
            MalformedData: a value is not JSON.
        """
        return cls(hash_of(request), hash_of(answer), hash_of(list(sub_queries)))

    def _message(self) -> bytes:
        return commitment_json(to_tree(self))

    def signed_by(self, pair: KeyPair) -> Proof:
        """Return the signature of the commitment by a key."""
        return Proof.made_by(pair, self._message())

    def check(self, request: Any, sub_queries: Sequence[Any], proof: Proof) -> None:
        """Check the hashes of request and sub-queries, and the signature; the answer is not checked.

        Args:
            request: the request, a JSON tree.
            sub_queries: the sub-queries that other nodes answered.
            proof: the signature.

        Raises:
            InvalidCommitment: a hash or the signature does not match.
        """
        if hash_of(request) != self.input_hash:
            raise InvalidCommitment("InputHash", "commitment.inputHash doesn't match the hash of input object")
        if hash_of(list(sub_queries)) != self.sub_queries_hash:
            raise InvalidCommitment(
                "SubQueriesHash", "commitment.subQueriesHash doesn't match the hash of subQueries object"
            )
        if not proof.is_of(self._message()):
            raise InvalidCommitment("BadSignature", "Verification equation was not satisfied")


def hash_of(tree: Any) -> Multihash:
    """Return the sha3-256 hash of a JSON tree.

    Raises:
        MalformedData: a value is not JSON.
    """
    return Multihash.of(commitment_json(tree))
