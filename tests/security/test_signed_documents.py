"""A document that is hashed or signed says one thing to everybody, or is refused."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.chains.signing import ALICE, TIME, statement
from support.chains.small_datasets import make_dataset
from support.servers.serving import ask, serving, workspace_at

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.signatures import (
    BLOCK_SIGNATURES,
    HEAD_SIGNATURES,
    ForgedSignature,
    MalformedSignature,
    decode,
    encode,
)
from odfpy.codec.exact_json import AmbiguousJson, load_exact
from odfpy.codec.tree import to_tree
from odfpy.dataset.identity import KeyPair
from odfpy.dataset.proof import Proof
from odfpy.query.wire.commitments import Commitment, hash_of
from odfpy.query.wire.verification import CommittedAnswer, MalformedAnswer
from odfpy.serving.server import DatasetServer

QUESTION = {"query": "select 1 as n", "queryDialect": "SqlDataFusion", "datasets": []}
ANSWER = {"data": [{"n": 1.5}], "dataFormat": "JsonAoS"}
HASH = "f1620" + "0" * 64


def document() -> dict[str, Any]:
    """An answer that somebody has committed to."""
    commitment = Commitment.to(QUESTION, ANSWER)
    return {
        "input": QUESTION,
        "output": ANSWER,
        "subQueries": [],
        "commitment": to_tree(commitment),
        "proof": to_tree(commitment.signed_by(ALICE)),
    }


def first_output_forged(text: str) -> str:
    """The attack: who reads the first `output` sees what nobody has signed; who reads the last sees what was signed."""
    return text.replace('"output"', '"output": {"data": [{"n": 1000000}], "dataFormat": "JsonAoS"}, "output"')


TRICKS: dict[str, Callable[[str], str]] = {
    "a forged output first": first_output_forged,
    "a forged output, spelt in another way": lambda text: first_output_forged(text).replace(
        '"output"', '"\\u006futput"', 1
    ),
    "a forged question first": lambda text: text.replace('"input"', '"input": {"query": "select 2"}, "input"'),
    "a forged row first": lambda text: text.replace('"n": 1.5', '"n": 9, "n": 1.5'),
    "a signer twice": lambda text: text.replace('"type"', '"type": "None", "type"'),
    "digits that no double has": lambda text: text.replace("1.5", "1.50000000000000000001"),
    "a fraction of no size": lambda text: text.replace("1.5", "1.5e-400"),
    "a fraction beyond all": lambda text: text.replace("1.5", "1.5e400"),
    "a part that nobody knows": lambda text: text.replace('"input"', '"more": 1, "input"'),
    "a part of the signature that nobody knows": lambda text: text.replace('"type"', '"more": 1, "type"'),
    "a part of the commitment that nobody knows": lambda text: text.replace('"inputHash"', '"more": 1, "inputHash"'),
    "a version that is not a number": lambda text: text.replace('"input"', '"version": true, "input"'),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatasetServer]:
    with serving(workspace_at(tmp_path_factory.mktemp("node"))) as server:
        yield server


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_server_and_command_line_refuse_what_others_could_read_otherwise(
    trick: Callable[[str], str], server: DatasetServer
) -> None:
    text = trick(json.dumps(document()))
    assert text != json.dumps(document())
    answer = ask(f"{server.url}/verify", method="POST", body=text.encode(), content_type="application/json")
    assert answer.status in (400, 422)
    assert "ok" not in answer.json, "it is not even looked at"
    with pytest.raises(MalformedAnswer):
        CommittedAnswer.load(text.encode())


def test_what_was_signed_is_read_as_it_was() -> None:
    read = CommittedAnswer.load(json.dumps(document()).encode())
    read.check_signature()
    assert read.output == ANSWER


@pytest.mark.parametrize(
    "text", ["0.1", "1e16", "1.50", "-0.0", "5e-324", "1.7976931348623157e308", "12345678901234567890", "-7", "0"]
)
def test_numbers_that_survive_are_read(text: str) -> None:
    assert load_exact(f"[{text}]") == json.loads(f"[{text}]")


@pytest.mark.parametrize(
    "text",
    ["0.1000000000000000055511151231257827", "1e400", "1e-400", "0.30000000000000001", "-0", "1." + "0" * 500, "NaN"],
)
def test_numbers_that_do_not_survive_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        load_exact(f"[{text}]")


def test_each_double_is_hashed_as_it_is_written() -> None:
    assert hash_of(load_exact("[1e16, 0.1]")) == hash_of([1e16, 0.1])
    assert hash_of(load_exact("[1]")) != hash_of(load_exact("[1.0]"))


# --- Signatures of blocks and heads ---


@pytest.mark.parametrize("kind", [BLOCK_SIGNATURES, HEAD_SIGNATURES])
@pytest.mark.parametrize(
    "trick",
    [
        lambda text: text.replace('"blockHash"', f'"blockHash": "{HASH}", "blockHash"'),
        lambda text: text.replace('"version"', '"version": 2, "version"'),
        lambda text: text.replace('"version": 1', '"version": true'),
        lambda text: text.replace('"version": 1', '"version": 1.0'),
        lambda text: text.replace('"type"', '"more": 1, "type"'),
        lambda text: text.replace('"time"', '"more": 1, "time"'),
        lambda text: text.replace('"version"', '"more": 1, "version"'),
        lambda text: text.replace('"sequenceNumber": 2', '"sequenceNumber": 2.0'),
    ],
)
def test_files_of_signatures_say_one_thing(kind: str, trick: Callable[[str], str]) -> None:
    head = make_dataset(DatasetLayout.in_memory(), "one", "two").chain.in_order()[-1]
    text = encode(statement(head).signed_by([ALICE], kind, TIME), kind).decode()
    assert trick(text) != text
    with pytest.raises(MalformedSignature):
        decode(trick(text).encode(), kind, "file")


def test_a_signature_has_one_text() -> None:
    """The last letter of 86 carries four bits that nobody needs: with others, it was another text of the same."""
    good = Proof.made_by(ALICE, b"message")
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    others = [letter for letter in letters if letter != good.proof_value[-1]]
    decoded = base64.urlsafe_b64decode(good.proof_value[1:] + "==")
    same = [letter for letter in others if base64.urlsafe_b64decode(good.proof_value[1:-1] + letter + "==") == decoded]
    assert len(same) == 15
    assert good.is_of(b"message")
    assert not any(
        Proof(good.type, good.verification_method, good.proof_value[:-1] + letter).is_of(b"message") for letter in same
    )
    assert not Proof(good.type, good.verification_method, good.proof_value + "==").is_of(b"message")


def test_a_forged_file_stays_a_forged_one() -> None:
    first, last = make_dataset(DatasetLayout.in_memory(), "one").chain.in_order()
    signed = decode(
        encode(statement(first).signed_by([KeyPair(b"x" * 32)], BLOCK_SIGNATURES, TIME), BLOCK_SIGNATURES),
        BLOCK_SIGNATURES,
        "file",
    )
    with pytest.raises(ForgedSignature):
        signed.check(BLOCK_SIGNATURES, statement(last).dataset_id, last.hash, last.block.sequence_number, "file")


def test_members_are_told() -> None:
    with pytest.raises(AmbiguousJson, match="'a' twice"):
        load_exact(b'{"a": 1, "b": {}, "a": 2}')


def test_files_in_other_encodings_are_read_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(document()), encoding="utf-16")
    assert CommittedAnswer.load(path.read_bytes()).output == ANSWER
