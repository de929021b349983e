"""Encoding and decoding of the few Flight SQL messages that a client needs, without a library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from odfpy.flight.errors import FlightFailed

_URL: Final = "type.googleapis.com/arrow.flight.protocol.sql."
_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5


def packed(name: str, body: bytes) -> bytes:
    """Pack a Flight SQL message with its type name (`Any`), as in commands.

    Args:
        name: name of the message.
        body: the message.
    """
    return text(1, _URL + name) + data(2, body)


def unpacked(wrapped: bytes) -> bytes:
    """Unpack a message from an `Any`; a message without one is returned unchanged."""
    fields = dict(_fields(wrapped))
    url = fields.get(1)
    return bytes(fields.get(2, b"")) if isinstance(url, bytes) and url.startswith(b"type.googleapis.com/") else wrapped


def text(number: int, value: str | None) -> bytes:
    """Encode a text field; empty for None."""
    return b"" if value is None else data(number, value.encode())


def data(number: int, value: bytes | None) -> bytes:
    """Encode a field of bytes or of a message; empty for None."""
    return b"" if value is None else _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def number(field: int, value: int) -> bytes:
    """Encode a numeric, enumeration or boolean field."""
    return _varint(field << 3 | _VARINT) + _varint(value)


def bytes_of(message: bytes, wanted: int) -> bytes:
    """Return a bytes field; empty if the message lacks it.

    Raises:
        FlightFailed: the bytes are not a message.
    """
    found = dict(_fields(message)).get(wanted, b"")
    return found if isinstance(found, bytes) else b""


def number_of(message: bytes, wanted: int) -> int | None:
    """Return an int64 field; None if the message lacks it.

    Raises:
        FlightFailed: the bytes are not a message.
    """
    found = dict(_fields(message)).get(wanted)
    return (found ^ 1 << 63) - (1 << 63) if isinstance(found, int) else None


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & (1 << 64) - 1
            shift += 7

    try:
        while place != len(message):  # reading beyond the end raises IndexError
            tag = varint()
            kind = tag & 7
            if kind == _VARINT:
                yield tag >> 3, varint()
                continue
            if kind not in {_FIXED_64, _BYTES, _FIXED_32}:
                raise FlightFailed(f"The server sent a malformed Flight SQL message: a field of kind {kind}")
            length = varint() if kind == _BYTES else {_FIXED_64: 8, _FIXED_32: 4}[kind]
            yield tag >> 3, message[place : place + length]
            place += length
    except IndexError as error:
        raise FlightFailed("The server sent a malformed Flight SQL message: it is truncated") from error
