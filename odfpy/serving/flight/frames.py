"""Parsers of HTTP/2 frames and gRPC messages, as far as needed to limit a Flight connection.

A frame has a header of nine bytes: length, type, flags, stream (RFC 9113, 4.1). A call is a stream; the payload of its
DATA frames is a sequence of messages, each after five bytes: whether it is compressed, and its length.

This module does no input or output.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from odfpy.codec.arrow_message import is_compressed

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
MAX_MESSAGE: Final = 4 << 20
"""Maximum bytes of a client's message: the default of gRPC servers."""

MAX_CALL: Final = 5 << 20
"""Bytes of all messages of a call."""

_DATA, _HEADERS, _RST_STREAM = 0x0, 0x1, 0x3
_END_STREAM: Final = 0x1
_PADDED: Final = 0x8
_HEAD: Final = 9
_PREFIX: Final = 5

_KIND_FIELD, _HEADER_FIELD, _BODY_FIELD = 1, 2, 1000
_KNOWN: Final = (_KIND_FIELD, _HEADER_FIELD, 3, _BODY_FIELD)
"""Of descriptors, tickets, actions, criteria, handshakes and batches."""

_KINDS: Final = 2
"""The greatest of the kinds of descriptors."""

_VARINT, _BYTES = 0, 2


class Violation(Exception):
    """A client violates the protocol; its connection is closed."""


@dataclass(slots=True)
class Frame:
    """A frame, or its part that has arrived.

    Attributes:
        type: its type.
        flags: flags of the frame.
        stream: stream id, 0 for the connection.
        left: remaining bytes of its payload.
        padding: number of padding bytes at its end; None if not yet known.
    """

    type: int
    flags: int
    stream: int
    left: int
    padding: int | None = 0

    @property
    def ends_stream(self) -> bool:
        """True if its sender ends the stream with it."""
        return self.type in (_DATA, _HEADERS) and bool(self.flags & _END_STREAM)

    @property
    def begins_call(self) -> bool:
        """True if its sender opens a stream with it."""
        return self.type == _HEADERS

    @property
    def resets(self) -> bool:
        """True if it resets the stream."""
        return self.type == _RST_STREAM


class Frames:
    """An incremental parser of frames, for bytes in pieces of any size."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._frame: Frame | None = None

    def feed(self, data: bytes) -> Iterator[tuple[Frame, memoryview]]:
        """Parse the next bytes: yields frames with the arrived part of their payload, each frame at least once.

        For the last piece of a frame, `left` is 0.
        """
        view = memoryview(data)
        while view or (self._frame is not None and self._frame.left == 0):
            if self._frame is None:
                take = _HEAD - len(self._head)
                self._head += view[:take]
                view = view[take:]
                if len(self._head) < _HEAD:
                    return
                self._frame = _frame_of(self._head)
                self._head.clear()
                if self._frame.left:
                    continue
            frame = self._frame
            piece, view = view[: frame.left], view[frame.left :]
            frame.left -= len(piece)
            if not frame.left:
                self._frame = None
            yield frame, piece


def _frame_of(head: bytearray) -> Frame:
    size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
    stream = int.from_bytes(head[5:], "big") & 0x7FFFFFFF
    is_padded = kind == _DATA and flags & _PADDED
    if is_padded and not size:
        raise Violation("a frame has padding, and no room for it")
    return Frame(kind, flags, stream, size, None if is_padded else 0)


@dataclass(slots=True)
class Call:
    """An incremental parser of a client's messages in a call.

    Attributes:
        total: bytes of its messages so far, as announced.
        is_said: whether the client has sent all.
    """

    total: int = 0
    is_said: bool = False
    _prefix: bytearray = field(default_factory=bytearray)
    _message: bytearray = field(default_factory=bytearray)
    _left: int = 0

    def take(self, payload: memoryview) -> None:
        """Parse the next bytes of its messages.

        Raises:
            Violation: a message is compressed, or too long.
        """
        while payload:
            if not self._left:
                payload = self._begin(payload)
            else:
                self._message += payload[: self._left]
                count = min(self._left, len(payload))
                self._left -= count
                payload = payload[count:]
            if not self._left and self._message:
                check_message(bytes(self._message))
                self._message = bytearray()

    def _begin(self, payload: memoryview) -> memoryview:
        take = _PREFIX - len(self._prefix)
        self._prefix += payload[:take]
        if len(self._prefix) == _PREFIX:
            is_compressed, self._left = struct.unpack(">BI", self._prefix)
            self._prefix.clear()
            self.total += self._left
            if is_compressed:
                raise Violation("messages to this server are not compressed")
            if self._left > MAX_MESSAGE or self.total > MAX_CALL:
                raise Violation(f"a message has {MAX_MESSAGE} bytes at most, all of a call {MAX_CALL}")
        return payload[take:]


def payload_of(frame: Frame, piece: memoryview) -> memoryview:
    """Return the payload in a piece of a DATA frame, without padding.

    Raises:
        Violation: the padding exceeds the frame.
    """
    if frame.type != _DATA:
        return piece[:0]
    if frame.padding is None and piece:
        frame.padding, piece = piece[0], piece[1:]
        if frame.padding > frame.left + len(piece):
            raise Violation("a frame has more padding than it is long")
    surplus = max(0, (frame.padding or 0) - frame.left)
    return piece[: max(0, len(piece) - surplus)]


# --- Batches of Arrow ---


def check_message(message: bytes) -> None:
    """Check that a message has no compressed batch, whose size in memory would be under its sender's control.

    Arrow parses messages with batches in its own way, ignoring wire types of fields. So anything that can be parsed in
    two ways is rejected, and so are fields that no client message has.

    Raises:
        Violation: it has one, or it is ambiguous.
    """
    try:
        header, has_body = b"", False
        for number, value in _fields(message):
            header = value if number == _HEADER_FIELD else header
            has_body |= number == _BODY_FIELD
        is_refused = has_body and is_compressed(header)
    except (IndexError, ValueError, TypeError, OverflowError, struct.error) as error:
        raise Violation("a message cannot be read") from error
    if is_refused:
        raise Violation("batches that are sent to this server are not compressed")


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Return the fields of a Protocol Buffers message by number; the values of numeric fields are dropped."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = (key & 0xFFFFFFFF) >> 3, key & 7
        if number not in _KNOWN or kind not in (_BYTES, _VARINT):
            raise ValueError
        size, at = _varint(message, at)
        if kind == _VARINT:
            if number != _KIND_FIELD or size > _KINDS:
                raise ValueError
            yield number, b""
            continue
        if at + size > len(message):
            raise ValueError
        yield number, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError
