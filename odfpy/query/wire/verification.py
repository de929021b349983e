"""Verification of answers with a commitment: of the signature, and by running the query again.

A document is the JSON of an answer with a proof, as returned by REST and written by `odf sql --commit`; the rows
(`output`) are optional. Verification reports the first invalid part, with the kinds of the reference's node.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from odfpy.chain.revocations import KeyRevocation, KnownRevocations, honoured_in
from odfpy.codec.exact_json import AmbiguousJson, load_exact
from odfpy.codec.tree import TreeError, from_tree, to_tree
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import ActorId, DatasetId
from odfpy.dataset.proof import Proof
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import DatasetNotFound, IntegrityError, InvalidValue, MalformedData, NotFound, UnsupportedVersion
from odfpy.query.service import QueryService
from odfpy.query.wire.commitments import Commitment, InvalidCommitment, hash_of
from odfpy.query.wire.request import DatasetState, QueryRequest
from odfpy.query.wire.response import ResponseLimits, ask

VERSION: Final = 1
"""Version of the files that `odf sql --commit` writes."""

_PARTS: Final = ("input", "subQueries", "commitment", "proof")
_OPTIONAL: Final = ("version", "output")
_GONE: Final = "Pull the dataset."


class MalformedAnswer(MalformedData, code="E721"):
    """A file or text is not an answer with a proof."""


class VerificationFailed(IntegrityError, code="E722"):
    """A signed answer cannot be reproduced, or the query cannot be run again.

    Attributes:
        kind: kind of the failure, as the reference's node names it.
        details: details of the failure, as the reference names them.
    """

    kind: str
    details: dict[str, str]

    def __init__(self, kind: str, problem: str, hint: str, **details: str) -> None:
        super().__init__(problem, hint=hint)
        self.kind = f"VerificationFailed::{kind}"
        self.details = details


class EndedKey(VerificationFailed, code="E726"):
    """An answer is signed with a key that was revoked, or has expired."""

    def __init__(self, key: str, how: str) -> None:
        """
        Args:
            key: the key.
            how: when it has ended, and why.
        """
        super().__init__(
            "EndedKey",
            f"The answer is signed with the key {key}, which {how}. Nothing proves that it was signed before.",
            "Request the answer again, signed with another key.",
            key=key,
        )


class WrongSigner(IntegrityError, code="E723"):
    """An answer is signed with another key than expected."""


@dataclass(frozen=True, slots=True)
class CommittedAnswer:
    """An answer with a commitment.

    Attributes:
        request: the request, as it was signed.
        sub_queries: sub-queries that other nodes answered.
        commitment: the signed commitment.
        proof: the signature.
        output: the answer, None if it is not part of the document.
    """

    request: Any
    sub_queries: tuple[Any, ...]
    commitment: Commitment
    proof: Proof
    output: Any = None

    @classmethod
    def load(cls, data: bytes, *, sub_queries: list[Any] | None = None) -> CommittedAnswer:
        """Parse a document. Command line and server both use this function, so that they interpret it identically.

        Args:
            data: the text of the document.
            sub_queries: default for a missing `subQueries`; None if it is required.

        Raises:
            MalformedAnswer: the document is not JSON, or not an answer with a proof.
            UnsupportedVersion: the document was written by a newer release.
        """
        try:
            tree = load_exact(data)
        except AmbiguousJson as error:
            raise MalformedAnswer(f"This is not an answer with a proof: {error}", hint=_expected()) from error
        except (ValueError, RecursionError) as error:
            what = "it is truncated" if _is_cut(data, error) else "it is not JSON"
            raise MalformedAnswer(f"This is not an answer with a proof: {what}", hint="Get the file again.") from error
        if sub_queries is not None and isinstance(tree, dict):
            tree.setdefault("subQueries", sub_queries)
        return cls.parse(tree)

    @classmethod
    def parse(cls, tree: Any) -> CommittedAnswer:
        """Parse an answer from a JSON tree."""
        if not isinstance(tree, dict):
            raise MalformedAnswer("This is not an answer with a proof: it is not an object", hint=_expected())
        version = tree.get("version", VERSION)
        if type(version) is not int:
            raise MalformedAnswer(f"version: expected a whole number, not {version!r}", hint=_expected())
        if version != VERSION:
            raise UnsupportedVersion(
                f"The answer is written in version {version!r}, this release knows {VERSION}",
                hint="Use a newer release of odfpy.",
            )
        missing = [part for part in _PARTS if part not in tree]
        if missing:
            raise MalformedAnswer(
                f"This is not an answer with a proof: it has no {', no '.join(missing)}", hint=_expected()
            )
        unknown = [part for part in tree if part not in (*_PARTS, *_OPTIONAL)]
        if unknown:
            raise MalformedAnswer(f"An answer with a proof has no part {unknown[0]!r}", hint=_expected())
        if not isinstance(tree["subQueries"], list):
            raise MalformedAnswer("subQueries: expected a list", hint=_expected())
        try:
            commitment: Commitment = from_tree(Commitment, tree["commitment"], ("commitment",))
            proof: Proof = from_tree(Proof, tree["proof"], ("proof",))
        except TreeError as error:
            raise MalformedAnswer(error.message, hint=error.hint or _expected()) from error
        if to_tree(commitment) != tree["commitment"]:  # hashes have several notations, but only one is signed
            raise MalformedAnswer("commitment: this is not the form in which it was signed", hint=_expected())
        return cls(tree["input"], tuple(tree["subQueries"]), commitment, proof, tree.get("output"))

    def check_signature(self, signer: ActorId | None = None) -> None:
        """Check that the document matches its signature. Nothing is run.

        Args:
            signer: the required signer; None for any.

        Raises:
            InvalidCommitment: a part differs from what was signed.
            WrongSigner: the signer is another one.
        """
        self.commitment.check(self.request, self.sub_queries, self.proof)
        if signer is not None and self.proof.signer != signer:
            raise WrongSigner(
                f"The answer is signed by {self.proof.signer}, not by {signer}",
                hint="Ask its sender for their key.",
            )
        if self.output is not None and hash_of(self.output) != self.commitment.output_hash:
            raise InvalidCommitment("OutputHash", "commitment.outputHash doesn't match the hash of output object")

    def tree(self) -> dict[str, Any]:
        """Return the answer as JSON, in the format of files."""
        tree: dict[str, Any] = {"version": VERSION, "input": self.request}
        if self.output is not None:
            tree["output"] = self.output
        return tree | {
            "subQueries": list(self.sub_queries),
            "commitment": to_tree(self.commitment),
            "proof": to_tree(self.proof),
        }


def verify_answer(
    service: QueryService,
    document: CommittedAnswer,
    signer: ActorId | None = None,
    *,
    revoked: KnownRevocations,
    control: CancellationToken | None = None,
    limits: ResponseLimits | None = None,
) -> QueryRequest:
    """Verify the signature of an answer and reproduce it; return its request.

    Args:
        service: the query service, which runs the query at the same blocks.
        document: the answer.
        signer: the required signer; None for any.
        revoked: known revocations of keys.
        control: cancels the query from another thread.
        limits: limits on the size of the answer.

    Raises:
        InvalidCommitment, WrongSigner, MalformedAnswer: the signature does not match; see `check_signature`.
        EndedKey: the key has ended; see `require_valid_key`.
        VerificationFailed: a dataset or block does not exist, or the answer differs.
        OdfError: the query cannot be run.
    """
    document.check_signature(signer)
    try:
        request = QueryRequest.parse(document.request)
    except TreeError as error:
        raise MalformedAnswer(error.message, hint=error.hint) from error
    require_valid_key(document.proof.signer, revoked, request.datasets or (), service)
    for state in request.datasets or ():
        require_block(service, state)
    answer = ask(service, request, control=control, limits=limits, is_checked=True)
    pinned = {(state.id, state.block_hash) for state in request.datasets or ()}
    for state in answer.request.datasets or ():
        if (state.id, state.block_hash) not in pinned:
            raise MalformedAnswer(
                f"The signed query does not name the block of {state.alias}",
                hint="Such an answer proves nothing: request one with a proof.",
            )
    actual, expected = hash_of(answer.output()), document.commitment.output_hash
    if actual != expected:
        raise VerificationFailed(
            "OutputMismatch",
            "Query was reproduced but resulted in output hash different from expected. This means that the output was"
            " either falsified, or the query reproducibility was not guaranteed by the system.",
            "The file is evidence against its signer.",
            expected_hash=str(expected),
            actual_hash=str(actual),
        )
    return request


def require_valid_key(
    key: ActorId, revoked: KnownRevocations, states: Iterable[DatasetState], service: QueryService | None
) -> None:
    """Check that the key of a proof has not ended, as far as it is known here.

    Blocks have an order that a thief cannot change, but proofs have none: whoever holds a key can sign an answer about
    old blocks at any time. So all signatures of a key are invalid once it has ended, for whatever reason.

    Args:
        key: the key.
        revoked: revocations known to the user.
        states: the input datasets of the answer; local datasets contain the revocations of their owners.
        service: the query service with local datasets, if any.

    Raises:
        EndedKey: the key has ended.
    """
    statements: list[tuple[DatasetId | None, KeyRevocation]] = [
        (None, revocation) for revocation in revoked.everywhere()
    ]
    for state in states:
        statements += [(state.id, revocation) for revocation in revoked.get(state.id)]
        with suppress(DatasetNotFound):
            side = None if service is None else service.resolver.find(state.id).layout.side
            statements += [(state.id, revocation) for revocation in honoured_in(side, state.id, [key])]
    now = Timestamp.now()
    for dataset_id, one in statements:
        if one.key == str(key) and one.has_come(now):
            raise EndedKey(one.key, one.in_words(dataset_id))


def require_block(service: QueryService, state: DatasetState) -> None:
    """Check that a dataset and its block exist.

    Raises:
        VerificationFailed: the dataset or the block does not exist.
    """
    try:
        dataset = service.resolver.find(state.id)
    except DatasetNotFound as error:
        raise VerificationFailed(
            "DatasetNotFound",
            "Unable to reproduce the query as one of the input datasets cannot be found. The owner of dataset either"
            " deleted it or made private or this node requires additional configuration in order to locate it.",
            f"{state.alias} ({state.id}) is not here. {_GONE}",
            dataset_id=str(state.id),
        ) from error
    block = state.block_hash
    try:
        if block is not None and service.resolver.find_block(dataset, str(block)) == block:
            return
    except (NotFound, InvalidValue):
        pass
    if block is not None:
        raise VerificationFailed(
            "DatasetBlockNotFound",
            "Unable to reproduce the query as one of the input datasets does not contain a block with specified hash."
            " Under normal circumstances a block can disappear only when the owner of dataset performs"
            " history-altering operation such as reset or hard compaction. There is also a probability that block hash"
            " was spoofed in the original request to falsify the results.",
            f"{state.alias} has no block {block} here. {_GONE}",
            dataset_id=str(state.id),
            block_hash=str(block),
        )


def _expected() -> str:
    return "It is a file of `odf sql --commit`, or the answer of a node to a query with include=Proof."


def _is_cut(data: bytes, error: BaseException) -> bool:
    """Return whether a text begins as JSON but is truncated."""
    is_json = data.lstrip()[:1] in (b"{", b"[")
    return is_json and isinstance(error, json.JSONDecodeError) and error.pos >= len(data.decode("utf-8", "replace")) - 1
