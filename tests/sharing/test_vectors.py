"""Deletion vectors, read back by a decoder of the specification; the kernel reads them in tests/serving/sharing."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.sharing.files.vectors import inline_vector

ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def decoded(vector: dict[str, Any]) -> list[int]:
    """The numbers of the rows that do not count."""
    text, data = vector["pathOrInlineDv"], b""
    assert len(text) % 5 == 0
    for start in range(0, len(text), 5):
        word = 0
        for letter in text[start : start + 5]:
            word = word * 85 + ALPHABET.index(letter)
        data += word.to_bytes(4, "big")
    data = data[: vector["sizeInBytes"]]
    magic, maps, key, cookie, count = struct.unpack_from("<iQIII", data)
    assert (magic, maps, key, cookie) == (1681511377, 1, 0, 12346)
    roaring, found = data[16:], []
    for number in range(count):
        high, less_one = struct.unpack_from("<HH", roaring, 8 + 4 * number)
        (place,) = struct.unpack_from("<I", roaring, 8 + 4 * count + 4 * number)
        if less_one < 4096:
            low = list(struct.unpack_from(f"<{less_one + 1}H", roaring, place))
        else:
            bits = int.from_bytes(roaring[place : place + 8192], "little")
            low = [bit for bit in range(65536) if bits >> bit & 1]
            assert len(low) == less_one + 1
        found += [high * 65536 + one for one in low]
    assert len(found) == vector["cardinality"]
    return found


def live_but(rows: int, dead: list[int]) -> npt.NDArray[np.bool_]:
    live = np.ones(rows, np.bool_)
    live[dead] = False
    return live


@given(st.integers(1, 300_000).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), max_size=50))))
def test_rows_come_back(found: tuple[int, set[int]]) -> None:
    rows, dead = found
    assert decoded(inline_vector(live_but(rows, sorted(dead)))) == sorted(dead)


@pytest.mark.parametrize("count", [4095, 4096, 4097, 65536, 65537])
def test_containers_of_both_kinds(count: int) -> None:
    dead = [3, *range(65536, 65536 + count), 400_000]
    assert decoded(inline_vector(live_but(500_000, dead))) == dead


def test_a_word_of_the_alphabet_of_zeromq() -> None:
    from odfpy.sharing.files.vectors import _z85

    assert _z85(bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])) == "HelloWorld"  # of its specification
