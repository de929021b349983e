"""Signatures of blocks: what is signed, and every way in which one can be wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chains.small_datasets import dataset_id, make_dataset

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.required_signers import NotSigned, RequiredSigners
from odfpy.chain.revoked_keys import RevokedKeys
from odfpy.chain.signatures import (
    BLOCK_SIGNATURES,
    HEAD_PATH,
    HEAD_SIGNATURES,
    MAX_SIZE,
    ForgedSignature,
    MalformedSignature,
    SignatureReport,
    SignedBlock,
    decode,
    encode,
    has_signatures,
    path_of,
    read_head_signatures,
    read_signatures,
)
from odfpy.codec.canonical_json import canonical_json
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import ActorId, KeyPair
from odfpy.errors import MalformedData

ALICE, BOB = KeyPair(b"a" * 32), KeyPair(b"b" * 32)
TIME = Timestamp.parse("2024-01-01T12:00:00.123456789Z")
ID = dataset_id()
LAYOUT = make_dataset(DatasetLayout.in_memory(), "one", "two")
FIRST, SECOND, LAST = LAYOUT.chain.in_order()
NOTHING_REVOKED = RevokedKeys(ALICE.dataset_id, (), lambda _: None)


def signed(hashed: HashedBlock = LAST, *keys: KeyPair, kind: str = BLOCK_SIGNATURES) -> SignedBlock:
    about = SignedBlock(dataset_id=ID, block_hash=hashed.hash, sequence_number=hashed.block.sequence_number)
    return about.signed_by(keys or (ALICE,), kind, TIME)


def with_file(data: bytes, path: str = path_of(LAST.hash)) -> DatasetLayout:
    layout = DatasetLayout.in_memory()
    assert layout.side is not None
    layout.side.write(path, data)
    return layout


def test_what_is_signed_is_canonical_json_of_the_block_and_the_time():
    assert (
        signed().message(BLOCK_SIGNATURES, TIME)
        == (
            f'{{"blockHash":"{LAST.hash}","datasetId":"{ID}","kind":"BlockSignatures","sequenceNumber":2,'
            '"time":"2024-01-01T12:00:00.123456789Z"}'
        ).encode()
    )


def test_a_signature_is_read_back_with_its_signers():
    layout = with_file(encode(signed(LAST, ALICE, BOB), BLOCK_SIGNATURES))
    found = read_signatures(layout.side, ID, LAST)
    assert found == signed(LAST, ALICE, BOB)
    assert found.signers == (ALICE.actor, BOB.actor)
    assert read_signatures(layout.side, ID, FIRST) is None
    assert read_signatures(None, ID, LAST) is None


def test_the_head_is_signed_apart_and_an_older_head_is_none():
    layout = with_file(encode(signed(kind=HEAD_SIGNATURES), HEAD_SIGNATURES), HEAD_PATH)
    assert layout.side is not None
    assert has_signatures(layout.side)
    assert read_head_signatures(layout.side, ID, LAST) == signed(kind=HEAD_SIGNATURES)
    assert read_head_signatures(layout.side, ID, SECOND) is None


@pytest.mark.parametrize(
    "page", [b"<html>not found</html>", b"\n<!DOCTYPE html>...", b"\xef\xbb\xbf<?xml version='1.0'?>"]
)
def test_a_web_page_in_the_place_of_signatures_is_none(page: bytes):
    side = with_file(page, HEAD_PATH).side
    assert side is not None
    assert not has_signatures(side)


@pytest.mark.parametrize("text", [b"", b"x", b'{"error": "not found"}', b"{HeadSignature", b"<", b"\xff\xfe"])
def test_what_is_neither_signatures_nor_a_web_page_cannot_be_read(text: bytes):
    """Who cannot read them must not take all for unsigned."""
    side = with_file(text, HEAD_PATH).side
    assert side is not None
    with pytest.raises(MalformedSignature, match=r"Signatures cannot be read: refs/head\.sig"):
        has_signatures(side)


def changed(how: Callable[[Any], None]) -> bytes:
    tree = json.loads(encode(signed(), BLOCK_SIGNATURES))
    how(tree["content"])
    return json.dumps(tree).encode()


FORGERIES: dict[str, bytes] = {
    "of another block": encode(signed(FIRST), BLOCK_SIGNATURES),
    "of another dataset": changed(lambda tree: tree.update(datasetId=str(dataset_id(2)))),
    "of another number": changed(lambda tree: tree.update(sequenceNumber=1)),
    "by another": changed(lambda tree: tree["signatures"][0]["proof"].update(verificationMethod=str(BOB.actor))),
    "at another time": changed(lambda tree: tree["signatures"][0].update(time="2024-01-01T12:00:01Z")),
    "of the head": encode(signed(kind=HEAD_SIGNATURES), BLOCK_SIGNATURES),
    "cut": changed(lambda tree: tree["signatures"][0]["proof"].update(proofValue="uAAAA")),
    "in another base": changed(lambda tree: tree["signatures"][0]["proof"].update(proofValue="z123")),
    "not base64": changed(lambda tree: tree["signatures"][0]["proof"].update(proofValue="u!!")),
    "of another type": changed(lambda tree: tree["signatures"][0]["proof"].update(type="None")),
    "by no key": changed(lambda tree: tree["signatures"][0]["proof"].update(verificationMethod="did:key:zzz")),
}


@pytest.mark.parametrize("data", FORGERIES.values(), ids=FORGERIES)
def test_a_forged_signature_is_an_error_that_names_the_block(data: bytes):
    with pytest.raises(ForgedSignature) as caught:
        read_signatures(with_file(data).side, ID, LAST)
    assert str(LAST.hash) in caught.value.message


DAMAGED = {
    "empty": b"",
    "not JSON": b"<html>",
    "not UTF-8": b"\xff\xfe",
    "deep": b"[" * 10_000,
    "another kind": encode(signed(), HEAD_SIGNATURES),
    "another version": encode(signed(), BLOCK_SIGNATURES).replace(b'"version": 1', b'"version": 2'),
    "a list": b"[]",
    "no content": b'{"kind": "BlockSignatures", "version": 1}',
    "unknown keys": changed(lambda tree: tree.update(more=1)),
    "no hash": changed(lambda tree: tree.update(blockHash="x")),
    "too long": encode(signed(), BLOCK_SIGNATURES) + b" " * MAX_SIZE,
    "too many": changed(lambda tree: tree.update(signatures=tree["signatures"] * 17)),
}


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_file_is_an_error_that_names_it(data: bytes):
    with pytest.raises(MalformedSignature, match=str(LAST.hash)):
        read_signatures(with_file(data).side, ID, LAST)


@given(st.binary(max_size=300), st.integers(0, 700))
def test_whatever_is_in_a_file_it_is_read_or_refused(noise: bytes, at: int):
    data = encode(signed(), BLOCK_SIGNATURES)
    with suppress(MalformedSignature):
        decode(data[:at] + noise + data[at + len(noise) :], BLOCK_SIGNATURES, "file")


def test_a_report_says_who_has_signed_how_many():
    report = SignatureReport.of([None, signed(SECOND, BOB), signed(LAST, ALICE, BOB)])
    assert report == SignatureReport(2, 1, (ALICE.actor, BOB.actor))


@pytest.mark.parametrize(
    ("required", "by", "good"),
    [
        (RequiredSigners("alice", frozenset({ALICE.actor}), owner=False), (ALICE,), True),
        (RequiredSigners("alice", frozenset({ALICE.actor}), owner=False), (BOB, ALICE), True),
        (RequiredSigners("alice", frozenset({ALICE.actor}), owner=False), (BOB,), False),
        (RequiredSigners("alice", frozenset({ALICE.actor}), owner=False), (), False),
        (RequiredSigners("owner", frozenset(), owner=True), (ALICE,), True),
        (RequiredSigners("owner", frozenset(), owner=True), (BOB,), False),
    ],
)
def test_one_of_those_who_must_have_signed_is_enough(required: RequiredSigners, by: tuple[KeyPair, ...], good: bool):
    signatures = signed(LAST, *by) if by else None
    if good:
        required.check(LAST, signatures, NOTHING_REVOKED, "there")
    else:
        with pytest.raises(NotSigned, match=f"{LAST.hash}.* of there .*needs {required.names}"):
            required.check(LAST, signatures, NOTHING_REVOKED, "there")


def test_the_owner_is_called_so():
    required = RequiredSigners("bob", frozenset({BOB.actor}), owner=False)
    with pytest.raises(NotSigned, match="is signed by the owner;"):
        required.check(LAST, signed(LAST, ALICE), NOTHING_REVOKED, "there")
    assert ActorId.owner_of(ALICE.dataset_id) == ALICE.actor


def test_canonical_json_is_that_of_the_standard():
    tree = {"peach": [True, None, 1.0, 1e30, "\u20ac$\u000f\nA'B\"\\"], "\u00f6": 2, "1": {"b": 1, "a": -0.0}}
    assert canonical_json(tree).decode() == (
        '{"1":{"a":0,"b":1},"peach":[true,null,1,1e+30,"\u20ac$\\u000f\\nA\'B\\"\\\\"],"\u00f6":2}'
    )
    for bad in (2**53 + 1, float("nan"), "\ud800"):
        with pytest.raises(MalformedData):
            canonical_json({"x": bad})
