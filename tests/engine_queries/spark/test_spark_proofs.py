"""Proofs of answers by Spark: made, checked, and with one answer in both dialects where the query is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.engine.spark_here import in_place
from support.fixtures import KAMU

from odfpy.chain.revocations import KnownRevocations
from odfpy.codec.tree import to_tree
from odfpy.coordinator.workspace import Workspace
from odfpy.dataset.identity import KeyPair
from odfpy.query.wire.commitments import Commitment
from odfpy.query.wire.request import Include, QueryRequest
from odfpy.query.wire.response import ask
from odfpy.query.wire.verification import CommittedAnswer, VerificationFailed, verify_answer

pytestmark = pytest.mark.spark

QUERY = "select side, count(*) as n, sum(amount) as total from trades where id > 100 group by side order by side"


def test_answers_of_spark_come_out_again(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_place(monkeypatch, spark)
    workspace = Workspace.init(tmp_path)
    (result,) = workspace.pull([str(KAMU / "trades")], as_name="trades")
    assert result.error is None, result.error
    service, key = workspace.query_service, KeyPair(b"\x01" * 32)

    def answer(engine: str) -> Any:
        return ask(service, QueryRequest.to(QUERY, engine=engine, include=[Include.PROOF])).tree(key)

    document = answer("spark")
    request = verify_answer(service, CommittedAnswer.parse(document), key.actor, revoked=KnownRevocations())
    assert request.query_dialect == "SqlSpark"
    assert document["output"] == answer("datafusion")["output"]
    with pytest.raises(VerificationFailed) as raised:
        verify_answer(service, CommittedAnswer.parse(_forged(document, key)), revoked=KnownRevocations())
    assert raised.value.kind == "VerificationFailed::OutputMismatch"


def _forged(document: Any, key: KeyPair) -> Any:
    """The same question with another answer, well signed."""
    output = {**document["output"], "data": document["output"]["data"][:1]}
    commitment = Commitment.to(document["input"], output)
    parts = {"output": output, "commitment": to_tree(commitment), "proof": to_tree(commitment.signed_by(key))}
    return {**document, **parts}
