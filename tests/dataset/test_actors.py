"""Those who sign: ids, and what they have signed."""

from __future__ import annotations

import pytest

from odfpy.data.multihash import encode_multibase
from odfpy.dataset.identity import ActorId, DatasetId, KeyPair
from odfpy.errors import InvalidValue

# RFC 8032, test 1.
SECRET = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")
SIGNED_NOTHING = bytes.fromhex(
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
)
REFERENCE = "did:key:z6Mko2nqhQ9wYSTS5Giab2j1aHzGnxHimqwmFeEVY8aNsVnN"
"""As the reference implementation prints one."""


def test_a_key_is_printed_as_the_reference_does_and_read_in_any_base():
    actor = ActorId.parse(REFERENCE)
    assert str(actor) == REFERENCE
    assert ActorId.parse("did:key:" + encode_multibase(b"\xed\x01" + actor.public_key)) == actor


def test_the_owner_of_a_dataset_has_the_key_that_is_its_id():
    pair = KeyPair(SECRET)
    assert pair.actor == ActorId(PUBLIC) == ActorId.owner_of(DatasetId(PUBLIC))


def test_signatures_are_those_of_the_standard():
    assert KeyPair(SECRET).sign(b"") == SIGNED_NOTHING
    assert ActorId(PUBLIC).has_signed(b"", SIGNED_NOTHING)


@pytest.mark.parametrize("signature", [b"", SIGNED_NOTHING[:-1], SIGNED_NOTHING[:-1] + b"\0", bytes(64)])
def test_other_signatures_are_none(signature: bytes):
    assert not ActorId(PUBLIC).has_signed(b"", signature)
    assert not ActorId(PUBLIC).has_signed(b"x", SIGNED_NOTHING)
    assert not ActorId(b"\xff" * 32).has_signed(b"", SIGNED_NOTHING)


@pytest.mark.parametrize(
    "text",
    ["", "did:key:", "did:key:z", "did:key:z6Mk", "did:odf:fed01", "did:key:zQ3shP2", REFERENCE + "1", "did:key:z0OIl"],
)
def test_other_texts_are_refused(text: str):
    with pytest.raises(InvalidValue):
        ActorId.parse(text)
