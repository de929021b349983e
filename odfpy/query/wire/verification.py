"""Checking answers that somebody has committed to: what binds them, and whether they come out again.

A document is the JSON of an answer with a proof, as REST gives it and `odf sql --commit` writes it; the rows (`output`)
may be missing. The first part that is not as it should be is told, with the kinds of the reference's node.
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
"""Of the files that `odf sql --commit` writes."""

_PARTS: Final = ("input", "subQueries", "commitment", "proof")
_OPTIONAL: Final = ("version", "output")
_GONE: Final = "Pull the dataset."


class MalformedAnswer(MalformedData, code="E721"):
    """A file or text is not an answer with a proof."""


class VerificationFailed(IntegrityError, code="E722"):
    """A signed answer cannot be reproduced, or the query cannot be run again.

    Attributes:
        kind: why, in the words of the reference's node.
        details: what belongs to it, as the reference names it.
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
    """An answer that somebody has committed to.

    Attributes:
        request: the question, as it was signed.
        sub_queries: what others have answered on the way.
        commitment: what was signed.
        proof: the signature.
        output: the answer, None where it is not part of the document.
    """

    request: Any
    sub_queries: tuple[Any, ...]
    commitment: Commitment
    proof: Proof
    output: Any = None

    @classmethod
    def load(cls, data: bytes, *, sub_queries: list[Any] | None = None) -> CommittedAnswer:
        """Read a document. Command line and server read it here, so that both see the same in it.

        Args:
            data: the text of it.
            sub_queries: what its `subQueries` are where it has none; None where it must have them.

        Raises:
            MalformedAnswer: it is not JSON, or not such a document.
            UnsupportedVersion: a newer release has written it.
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
        if to_tree(commitment) != tree["commitment"]:  # hashes can be written in several ways, and are signed in one
            raise MalformedAnswer("commitment: this is not the form in which it was signed", hint=_expected())
        return cls(tree["input"], tuple(tree["subQueries"]), commitment, proof, tree.get("output"))

    def check_signature(self, signer: ActorId | None = None) -> None:
        """Check that everything in it is what was signed. Nothing is run.

        Args:
            signer: by whom it must be; by anybody if None.

        Raises:
            InvalidCommitment: a part is not what was signed.
            WrongSigner: somebody else has signed it.
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
        """Return the answer as JSON, as files have it."""
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
    """Check that an answer is what was signed, and that it comes out again; gives the question.

    Args:
        service: is asked again, as of the same blocks.
        document: the answer.
        signer: by whom it must be; by anybody if None.
        revoked: keys that are known to have ended.
        control: stops it from elsewhere.
        limits: how much the answer may be.

    Raises:
        InvalidCommitment, WrongSigner, MalformedAnswer: it is not what was signed; see `check_signature`.
        EndedKey: the key counts no more; see `require_valid_key`.
        VerificationFailed: a dataset or block is not there, or the answer is another one.
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
    """Check that the key of a proof has not ended, as far as anybody knows here.

    Blocks have an order that no thief can change; a proof has not. Who holds a key can sign an answer about old blocks
    whenever they like. So nothing that a key has signed counts once it has ended, whatever the reason.

    Args:
        key: the key.
        revoked: what the user knows.
        states: the datasets that the answer is from; beside those that are here lies what their owners say.
        service: has them; None where there are none.

    Raises:
        EndedKey: it has.
    """
    statements: list[tuple[DatasetId | None, KeyRevocation]] = [(None, one) for one in revoked.everywhere()]
    for state in states:
        statements += [(state.id, one) for one in revoked.get(state.id)]
        with suppress(DatasetNotFound):
            side = None if service is None else service.resolver.find(state.id).layout.side
            statements += [(state.id, one) for one in honoured_in(side, state.id, [key])]
    now = Timestamp.now()
    for dataset_id, one in statements:
        if one.key == str(key) and one.has_come(now):
            raise EndedKey(one.key, one.in_words(dataset_id))


def require_block(service: QueryService, state: DatasetState) -> None:
    """Check that a dataset and its block are there.

    Raises:
        VerificationFailed: they are not.
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
    """Return whether a text begins as JSON does, and ends too early."""
    is_json = data.lstrip()[:1] in (b"{", b"[")
    return is_json and isinstance(error, json.JSONDecodeError) and error.pos >= len(data.decode("utf-8", "replace")) - 1
