"""The beginning of a file, decompressed if it is gzipped, up to a limit."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import BinaryIO, Final

_GZIP: Final = b"\x1f\x8b\x08"
_PIECE: Final = 64 * 1024
_WITH_HEADER: Final = 31  # zlib parameters: a gzip header, and the largest window


@dataclass(frozen=True, slots=True)
class FileHead:
    """The beginning of a file.

    Attributes:
        data: its first bytes.
        is_whole: whether this is the whole file.
        packing: `gzip` if the bytes were decompressed, else None.
        problem: why the rest cannot be decompressed, None if it can.
    """

    data: bytes
    is_whole: bool
    packing: str | None = None
    problem: str | None = None


def read_head(stream: BinaryIO, most: int) -> FileHead:
    """Read the beginning of a file.

    Args:
        stream: the file.
        most: maximum bytes, compressed ones if the file is compressed. Hardly more is held in memory, and hardly
            more than 16 times as much is read, however the file is compressed.
    """
    head = _read(stream, len(_GZIP))
    if head == _GZIP:
        return _unpacked(stream, head, most)
    data = head + _read(stream, most + 1 - len(head))
    return FileHead(data[:most], len(data) <= most)


def _unpacked(stream: BinaryIO, head: bytes, most: int) -> FileHead:
    content, packed, left = bytearray(), head, 16 * most
    unpacker, problem = zlib.decompressobj(_WITH_HEADER), None
    try:
        while len(content) <= most:
            if not packed and left > 0:
                packed = _read(stream, _PIECE)
                left -= len(packed)
                if not packed:
                    return _ended(bytes(content), is_whole=unpacker.eof)
            if not packed:  # members without content
                break
            if unpacker.eof:  # gzip files may be concatenated
                if not packed.startswith(_GZIP[:1]):
                    problem = "more follows that is not gzip"
                    break
                unpacker = zlib.decompressobj(_WITH_HEADER)
            content += unpacker.decompress(packed, most + 1 - len(content))
            packed = unpacker.unconsumed_tail or unpacker.unused_data
    except zlib.error as error:
        problem = f"it is damaged ({error})"
    return FileHead(bytes(content[:most]), is_whole=False, packing="gzip", problem=problem)


def _ended(data: bytes, *, is_whole: bool) -> FileHead:
    return FileHead(data, is_whole, "gzip", None if is_whole else "it is truncated")


def _read(stream: BinaryIO, count: int) -> bytes:
    """Read a number of bytes, or to the end."""
    parts = bytearray()
    while len(parts) < count and (part := stream.read(count - len(parts))):
        parts += part
    return bytes(parts)
