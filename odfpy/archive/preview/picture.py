"""The size of images, read from their first bytes: a small file may be an image that exhausts memory."""

from __future__ import annotations

import struct
from typing import Final

MAX_PIXELS: Final = 50_000_000
"""Maximum pixels of a picture that is shown: 200 MB in a browser."""

_FRAMES: Final = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG markers that are followed by the size."""


def pixels_of(head: bytes, media_type: str) -> int | None:
    """Return the number of pixels of a picture, None if its first bytes do not tell.

    Args:
        head: the first bytes.
        media_type: PNG, GIF, JPEG or WebP.
    """
    try:
        match media_type:
            case "image/png":
                width, height = struct.unpack_from(">II", head, 16)
            case "image/gif":
                width, height = struct.unpack_from("<HH", head, 6)
            case "image/webp":
                width, height = _of_webp(head)
            case _:
                width, height = _of_jpeg(head)
    except (struct.error, IndexError):
        return None
    return int(width) * int(height)


def _of_webp(head: bytes) -> tuple[int, int]:
    match head[12:16]:
        case b"VP8X":
            low, high, below, above = struct.unpack_from("<HBHB", head, 24)
            return (low | high << 16) + 1, (below | above << 16) + 1
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", head, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case _:
            width, height = struct.unpack_from("<HH", head, 26)
            return width & 0x3FFF, height & 0x3FFF


def _of_jpeg(head: bytes) -> tuple[int, int]:
    at = 2
    while head[at] == 0xFF:
        (length,) = struct.unpack_from(">H", head, at + 2)
        if head[at + 1] in _FRAMES:
            height, width = struct.unpack_from(">HH", head, at + 5)
            return width, height
        at += 2 + length
    raise IndexError
