"""Base58: the same as the library's, whose import takes too long for every commit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multiformats import multibase

from odfpy.data import base58
from odfpy.errors import InvalidValue


@given(st.binary(max_size=80))
def test_it_is_what_the_library_makes_of_bytes(data: bytes):
    assert f"z{base58.encode(data)}" == multibase.encode(data, "base58btc")
    assert base58.decode(base58.encode(data)) == data


@pytest.mark.parametrize("text", ["0", "O", "I", "l", "a b", "é", "1" * 201])
def test_other_letters_and_endless_texts_are_refused(text: str):
    with pytest.raises(InvalidValue):
        base58.decode(text)
