"""Commitments: what binds somebody for ever to an answer (the reference implementation's "Commitments", byte for byte).

A commitment holds the hash of the request, with the exact blocks of all datasets it was answered from, and the hash of
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
        kind: which, in the words of the reference's node.
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
        input_hash: of the request.
        output_hash: of the answer.
        sub_queries_hash: of what others have answered on the way.
    """

    input_hash: Multihash
    output_hash: Multihash
    sub_queries_hash: Multihash

    @classmethod
    def to(cls, request: Any, answer: Any, sub_queries: Sequence[Any] = ()) -> Commitment:
        """Return the commitment to an answer; all arguments are JSON trees.

        Args:
            request: the question.
            answer: the answer.
            sub_queries: those that other nodes have answered, empty here.

        Raises:
            MalformedData: something in it is not JSON.
        """
        return cls(hash_of(request), hash_of(answer), hash_of(list(sub_queries)))

    def _message(self) -> bytes:
        return commitment_json(to_tree(self))

    def signed_by(self, pair: KeyPair) -> Proof:
        """Return the signature of the commitment by a key."""
        return Proof.made_by(pair, self._message())

    def check(self, request: Any, sub_queries: Sequence[Any], proof: Proof) -> None:
        """Check that it is to this request, and that whom the proof names has signed it. The answer is not looked at.

        Args:
            request: the question, a tree of JSON.
            sub_queries: those that other nodes have answered.
            proof: the signature.

        Raises:
            InvalidCommitment: it is not, or nobody has.
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
    """Return the hash of a tree of JSON, sha3-256.

    Raises:
        MalformedData: something in it is not JSON.
    """
    return Multihash.of(commitment_json(tree))
