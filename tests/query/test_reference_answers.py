"""Layouts, schemas and commitments are those of the reference's node, in its recorded answers."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from support.fixtures import FIXTURES, KAMU

from odfpy.codec.tree import from_tree, to_tree
from odfpy.data.slices.slice import read_slice
from odfpy.dataset.identity import KeyPair
from odfpy.dataset.proof import Proof
from odfpy.query.wire.commitments import Commitment, InvalidCommitment, hash_of
from odfpy.query.wire.layouts import DataFormat, laid_out
from odfpy.query.wire.schema_formats import SchemaFormat, write_schema

NODE = KeyPair(b"\x7b" * 32)


def answer(name: str) -> Any:
    return json.loads((FIXTURES / "rest" / f"{name}.json").read_text())["response"]


def rows_of(dataset: str) -> pa.Table:
    """All rows of a dataset of the reference, by offset."""
    return pa.concat_tables(map(read_slice, (KAMU / dataset / "data").iterdir())).sort_by("offset")


COLUMNS = ["offset", "op", "event_time", "id", "side", "amount"]


@pytest.fixture(scope="module")
def trades() -> pa.Table:
    return rows_of("trades").select(COLUMNS).slice(0, 2)


@pytest.mark.parametrize("layout", DataFormat)
def test_layouts(trades: pa.Table, layout: DataFormat):
    assert laid_out(trades, layout) == answer(f"query-{layout.value}")["output"]["data"]


@pytest.mark.parametrize("form", SchemaFormat)
def test_schemas(trades: pa.Table, form: SchemaFormat):
    assert write_schema(trades.schema, form) == answer(f"schema-{form.value}")["output"]["schema"]


def test_values_of_all_types():
    table = rows_of("types").slice(0, 3)
    assert laid_out(table, DataFormat.ARRAY_OF_STRUCTURES) == answer("query-types")["output"]["data"]


# --- Commitments ------------------------------------------------------------------------------------------------------


def committed() -> tuple[dict[str, Any], Commitment, Proof]:
    response = answer("query-proof")
    return response, from_tree(Commitment, response["commitment"]), from_tree(Proof, response["proof"])


def test_hashes_and_signature():
    response, commitment, proof = committed()
    assert Commitment.to(response["input"], response["output"]) == commitment
    assert commitment.signed_by(NODE) == proof
    commitment.check(response["input"], response["subQueries"], proof)
    assert to_tree(commitment) == response["commitment"]


def changed(kind: str) -> tuple[Any, Commitment, Any, Proof]:
    response, commitment, proof = committed()
    request, sub_queries = response["input"], response["subQueries"]
    match kind:
        case "InputHash":
            request = request | {"limit": 7}
        case "SubQueriesHash":
            sub_queries = [{}]
        case "BadSignature":
            commitment = Commitment(commitment.input_hash, hash_of({}), commitment.sub_queries_hash)
    return request, commitment, sub_queries, proof


@pytest.mark.parametrize("kind", ["InputHash", "SubQueriesHash", "BadSignature"])
def test_each_part_is_bound(kind: str):
    request, commitment, sub_queries, proof = changed(kind)
    with pytest.raises(InvalidCommitment) as raised:
        commitment.check(request, sub_queries, proof)
    assert raised.value.kind == f"InvalidRequest::{kind}"


@pytest.mark.parametrize("name", ["verify-bad-input", "verify-bad-signature"])
def test_messages_are_those_of_the_reference(name: str):
    document = json.loads((FIXTURES / "rest" / f"{name}.json").read_text())
    body = document["request"]["body"]
    with pytest.raises(InvalidCommitment) as raised:
        from_tree(Commitment, body["commitment"]).check(
            body["input"], body["subQueries"], from_tree(Proof, body["proof"])
        )
    assert {"kind": raised.value.kind, "message": raised.value.message} == document["response"]["error"]


@pytest.mark.parametrize("field", ["type", "verification_method", "proof_value"])
def test_a_proof_by_somebody_else_is_none(field: str):
    response, commitment, proof = committed()
    other = commitment.signed_by(KeyPair(b"\x01" * 32))
    values = {name: getattr(proof, name) for name in ("type", "verification_method", "proof_value")}
    values[field] = "EcdsaSecp256k1Signature2019" if field == "type" else getattr(other, field)
    with pytest.raises(InvalidCommitment, match="Verification equation"):
        commitment.check(response["input"], [], Proof(**values))
