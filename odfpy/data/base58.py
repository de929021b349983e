"""Base58 with Bitcoin's alphabet, the usual encoding of keys in `did:key` texts.

`multiformats` has it too, but its import takes longer than a whole commit, and every commit is signed.
"""

from __future__ import annotations

from typing import Final

from odfpy.errors import InvalidValue

ALPHABET: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_MAX_LENGTH: Final = 200


def encode(data: bytes) -> str:
    """Encode bytes as text; each leading zero byte becomes a `1`."""
    number, digits = int.from_bytes(data, "big"), []
    while number:
        number, digit = divmod(number, len(ALPHABET))
        digits.append(ALPHABET[digit])
    zeros = len(data) - len(data.lstrip(b"\0"))
    return ALPHABET[0] * zeros + "".join(reversed(digits))


def decode(text: str) -> bytes:
    """Decode a text.

    Raises:
        InvalidValue: the text has a character outside of the alphabet, or is longer than any key.
    """
    if len(text) > _MAX_LENGTH or any(letter not in ALPHABET for letter in text):
        raise InvalidValue(f"Not base58: {text[:80]!r}")
    number = 0
    for letter in text:
        number = number * len(ALPHABET) + ALPHABET.index(letter)
    zeros = len(text) - len(text.lstrip(ALPHABET[0]))
    return b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")
