"""The size of a picture is told from its first bytes, before anybody unpacks it."""

from __future__ import annotations

import struct

import pytest

from odfpy.archive.preview.picture import pixels_of

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480)
GIF = b"GIF89a" + struct.pack("<HH", 640, 480)
JPEG = b"\xff\xd8" + b"\xff\xe0\x00\x04ab" + b"\xff\xc2\x00\x11\x08" + struct.pack(">HH", 480, 640)
WEBP = b"RIFF\0\0\0\0WEBP"
EXTENDED = WEBP + b"VP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")
LOSSLESS = WEBP + b"VP8L" + bytes(4) + b"\x2f" + struct.pack("<I", 639 | 479 << 14)
LOSSY = WEBP + b"VP8 " + bytes(10) + struct.pack("<HH", 640, 480)

CASES = [
    (PNG, "image/png"), (GIF, "image/gif"), (JPEG, "image/jpeg"), (EXTENDED, "image/webp"), (LOSSLESS, "image/webp"),
    (LOSSY, "image/webp"),
]  # fmt: skip


@pytest.mark.parametrize(("head", "media_type"), CASES)
def test_the_size_is_told(head: bytes, media_type: str) -> None:
    assert pixels_of(head, media_type) == 640 * 480


@pytest.mark.parametrize(("head", "media_type"), CASES)
def test_what_is_cut_off_tells_nothing(head: bytes, media_type: str) -> None:
    assert pixels_of(head[:-1], media_type) is None
    assert pixels_of(head[:2], media_type) is None


def test_a_jpeg_without_a_size_ends() -> None:
    assert pixels_of(b"\xff\xd8" + b"\xff\xe0\x00\x00" * 1000, "image/jpeg") is None
