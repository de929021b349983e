"""Hashes that say what they are, in bytes and in text."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io

import pytest
from blake3 import blake3
from hypothesis import example, given
from hypothesis import strategies as st
from multiformats import multibase, multihash
from support.chains.values import hashes

from odfpy.data.multihash import (
    ALGORITHMS,
    ARROW0_SHA3_256,
    BLAKE3,
    SHA3_256,
    Multihash,
    decode_multibase,
    encode_multibase,
    read_varint,
    write_varint,
)
from odfpy.errors import IntegrityError, InvalidValue

FINAL_BASES = [base for base in multibase.table() if base.status == "final"]


def test_of_bytes():
    assert str(Multihash.of(b"prev")) == "f1620" + hashlib.sha3_256(b"prev").hexdigest()
    assert str(Multihash.of(b"prev", BLAKE3)) == "f1e20" + blake3(b"prev").hexdigest()


def test_of_a_stream_is_that_of_what_is_left_in_it():
    content = bytes(range(256)) * 10_000
    stream = io.BytesIO(b"read before" + content)
    stream.seek(11)
    assert Multihash.of_stream(stream) == Multihash.of(content)
    assert Multihash.of_stream(io.BytesIO(content), BLAKE3) == Multihash.of(content, BLAKE3)


def test_of_a_slice_is_a_private_algorithm():
    digest = bytes(range(32))
    assert str(Multihash(ARROW0_SHA3_256.code, digest)) == "f9680c00120" + digest.hex()


@given(st.binary())
def test_bytes_are_those_of_multiformats(data: bytes):
    assert Multihash.of(data).to_bytes() == multihash.digest(data, "sha3-256")
    assert Multihash.of(data, BLAKE3).to_bytes() == multihash.wrap(blake3(data).digest(), "blake3")


@given(hashes)
def test_bytes_and_text_both_ways(value: Multihash):
    assert Multihash.from_bytes(value.to_bytes()) == value
    assert Multihash.parse(str(value)) == value


@pytest.mark.parametrize("base", FINAL_BASES, ids=lambda base: base.name)
def test_every_base_of_final_status_is_read(base: multibase.Multibase):
    value = Multihash.of(b"x")
    assert Multihash.parse(base.encode(value.to_bytes())) == value


def test_the_bases_are_the_expected_ones():
    assert {base.code for base in FINAL_BASES} >= set("fFbBzmuU")


@pytest.mark.parametrize("code", ["0", "7", "9", "k", "M", "p"])
def test_other_bases_are_refused(code: str):
    with pytest.raises(InvalidValue):
        decode_multibase(multibase.get(code=code).encode(b"some bytes"))


def test_text_form_is_base16_in_lower_case():
    assert encode_multibase(b"\xab\xcd") == "fabcd"
    assert decode_multibase("fABCD") == b"\xab\xcd"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "f1",
        "fxx",
        "f16 20",
        "f 1620",
        "f+1",
        "f\N{FULLWIDTH DIGIT ONE}2",
        "z0OIl",
        "b1",
        "mAAA*",
        "\N{ROCKET}\N{ROCKET}",
        "x1234",
        "?",
        "\x00",
        "f" * 600,
        "é",
        "f\n12",
    ],
)
def test_what_is_no_multibase_is_refused(text: str):
    with pytest.raises(InvalidValue):
        decode_multibase(text)


@given(st.text(max_size=30))
@example("z")
def test_random_text_is_read_or_refused(text: str):
    for read in (decode_multibase, Multihash.parse):
        with contextlib.suppress(InvalidValue):
            read(text)


@given(st.binary(max_size=140))
def test_random_bytes_are_read_or_refused(data: bytes):
    with contextlib.suppress(InvalidValue):
        assert Multihash.from_bytes(data).to_bytes() == data


@pytest.mark.parametrize(
    ("problem", "data"),
    [
        ("nothing", b""),
        ("no length", b"\x16"),
        ("too short", b"\x16\x20" + bytes(31)),
        ("too long", b"\x16\x20" + bytes(33)),
        ("wrong length for the algorithm", b"\x16\x10" + bytes(16)),
        ("wrong length for a slice", b"\x96\x80\xc0\x01\x10" + bytes(16)),
        ("varint with a needless byte", b"\x96\x00\x20" + bytes(32)),
        ("endless varint", b"\x80" * 20),
        ("far too long", bytes(1000)),
    ],
)
def test_what_is_no_multihash_is_refused(problem: str, data: bytes):
    del problem
    with pytest.raises(InvalidValue):
        Multihash.from_bytes(data)


def test_unknown_algorithms_are_kept_but_cannot_be_checked():
    value = Multihash.from_bytes(b"\x12\x20" + bytes(32))
    assert Multihash.parse(str(value)) == value
    with pytest.raises(IntegrityError, match="Unknown hash algorithm 0x12"):
        value.matches(b"")


def test_a_logical_hash_is_not_over_bytes():
    with pytest.raises(IntegrityError, match="arrow0-sha3-256 is not a hash over bytes"):
        Multihash(ARROW0_SHA3_256.code, bytes(32)).matches(b"")


@pytest.mark.parametrize("algorithm", [SHA3_256, BLAKE3], ids=lambda algorithm: algorithm.name)
def test_matching(algorithm):
    name = Multihash.of(b"data", algorithm)
    assert name.algorithm is algorithm
    assert name.matches(b"data")
    assert not name.matches(b"date")


def test_the_registry_knows_each_algorithm_by_its_code():
    assert {algorithm.code: algorithm.size for algorithm in ALGORITHMS.values()} == {0x16: 32, 0x1E: 32, 0x300016: 32}


@given(st.integers(0, 2**63 - 1))
def test_varints_both_ways(value: int):
    data = write_varint(value)
    assert read_varint(data + b"\xff", 0) == (value, len(data))


def test_base64_is_a_base_too():
    assert decode_multibase("m" + base64.b64encode(b"abc").decode()) == b"abc"
