"""Ids are public keys; private keys stay private."""

from __future__ import annotations

import copy
import pickle

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from multiformats import multibase
from support.chains.values import ids

from odfpy.dataset.identity import DatasetId, KeyPair
from odfpy.errors import InvalidValue

# RFC 8032, section 7.1, test 1 and 2
RFC_8032 = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
]


@given(ids)
def test_text_and_bytes_both_ways(dataset_id: DatasetId):
    assert DatasetId.parse(str(dataset_id)) == dataset_id
    assert DatasetId.from_bytes(dataset_id.to_bytes()) == dataset_id
    assert str(dataset_id) == "did:odf:fed01" + dataset_id.public_key.hex()


@pytest.mark.parametrize(
    "base", [base for base in multibase.table() if base.status == "final"], ids=lambda base: base.name
)
def test_ids_are_read_in_every_base_of_final_status(base: multibase.Multibase):
    dataset_id = DatasetId(bytes(range(32)))
    assert DatasetId.parse("did:odf:" + base.encode(dataset_id.to_bytes())) == dataset_id


@pytest.mark.parametrize(
    "text",
    ["", "did:odf:", "did:odf:f", "did:odf:fed01", "did:odf:fed01" + "00" * 31, "did:odf:fed01" + "00" * 33,
     "did:odf:fec01" + "00" * 32, "did:odf:" + "00" * 34, "did:key:fed01" + "00" * 32, "Did:odf:fed01" + "00" * 32,
     " did:odf:fed01" + "00" * 32, "did:odf:fed01" + "zz" * 32, "did:odf:fed01" + "00" * 32 + "/..", "did:odf:z" + "1" * 500],
)  # fmt: skip
def test_what_is_no_id_is_refused(text: str):
    with pytest.raises(InvalidValue):
        DatasetId.parse(text)


@pytest.mark.parametrize(
    "data", [b"", b"\xed", b"\xed\x01", bytes(34), b"\xed\x01" + bytes(31), b"\xed\x01" + bytes(33)]
)
def test_what_are_no_bytes_of_an_id_is_refused(data: bytes):
    with pytest.raises(InvalidValue):
        DatasetId.from_bytes(data)


@pytest.mark.parametrize(("private", "public", "message", "signature"), RFC_8032)
def test_keys_and_signatures_are_those_of_ed25519(private: str, public: str, message: str, signature: str):
    pair = KeyPair(bytes.fromhex(private))
    assert pair.dataset_id == DatasetId(bytes.fromhex(public))
    assert pair.sign(bytes.fromhex(message)).hex() == signature


def test_signatures_verify_with_the_id_alone():
    pair = KeyPair.generate()
    public = Ed25519PublicKey.from_public_bytes(pair.dataset_id.public_key)
    public.verify(pair.sign(b"message"), b"message")
    with pytest.raises(InvalidSignature):
        public.verify(pair.sign(b"message"), b"another message")


def test_every_pair_is_new():
    assert len({KeyPair.generate() for _ in range(10)}) == 10


def test_nothing_that_is_printed_shows_the_private_key():
    pair = KeyPair.generate()
    for text in (repr(pair), str(pair), f"{pair}", f"{[pair]}", f"{pair!a}", repr({"pair": pair})):
        assert str(pair.dataset_id) in text
        assert pair.private_key.hex() not in text
        assert repr(pair.private_key)[2:-1] not in text


def test_copies_are_equal_and_as_silent():
    pair = KeyPair.generate()
    for other in (copy.deepcopy(pair), pickle.loads(pickle.dumps(pair))):
        assert other == pair
        assert repr(other) == repr(pair)


@pytest.mark.parametrize("size", [0, 31, 33, 64])
def test_what_is_no_private_key_is_refused_without_being_shown(size: int):
    with pytest.raises(InvalidValue, match="32 bytes") as caught:
        KeyPair(b"\xab" * size)
    assert "ab" * 4 not in str(caught.value)
