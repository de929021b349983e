"""Sealed files: small files with a checksum. Their text is followed by a line with its BLAKE3 hash."""

from __future__ import annotations

from odfpy.data.multihash import BLAKE3, Multihash
from odfpy.state.run_file import StateDamaged


def sealed(text: bytes) -> bytes:
    """Return the content of a sealed file for a text."""
    return b"\n".join((text, str(Multihash.of(text, BLAKE3)).encode(), b""))


def unsealed(content: bytes) -> bytes:
    """Return the text of a sealed file.

    Raises:
        StateDamaged: the checksum does not match.
    """
    text = content.removesuffix(b"\n").rpartition(b"\n")[0]
    if content != sealed(text):
        raise StateDamaged("a checksum does not fit")
    return text
