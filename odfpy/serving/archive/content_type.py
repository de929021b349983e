"""The media type of an archived file, guessed from its path as datalake's API does, and how browsers may show it.

Whoever pushes chooses path and bytes. So what a browser would run as a page of this server is handed out as a
download, and nothing in it may run.
"""

from __future__ import annotations

import re
from mimetypes import MimeTypes
from typing import Final
from urllib.parse import quote

GZIP_MAGIC: Final = b"\x1f\x8b\x08"
"""The first bytes of what is packed with gzip."""

_TEXT: Final = "text/plain"
_HASHED: Final = re.compile(r"(.+)-[0-9a-f]{32,40}", re.DOTALL)
_HARMLESS: Final = frozenset(
    {
        _TEXT,
        "text/csv",
        "text/markdown",
        "application/json",
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "image/bmp",
        "image/tiff",
    }
)
_MAX_NAME_LENGTH: Final = 200
_TYPES: Final = MimeTypes()  # without the files of this machine: the same everywhere


def media_type(path: str) -> str:
    """Guess the type of a file; what has no known ending, or is packed, is text as far as anybody knows.

    A hash that was added to the name, `NAME-<32 to 40 hex digits>`, does not count.

    Args:
        path: as recorded.
    """
    name = _name(path)
    hashed = _HASHED.fullmatch(name)
    # With a slash before it, no name is taken for a URL, which may say of itself what it is.
    return _TYPES.guess_type(f"/{hashed[1] if hashed else name}")[0] or _TEXT


def content_headers(path: str, first: bytes) -> dict[str, str]:
    """The headers that say what the bytes of a file are.

    Args:
        path: as recorded; any text.
        first: the first bytes.
    """
    kind = media_type(path)
    headers = {
        "Content-Type": kind,
        "Content-Disposition": f"{'inline' if kind in _HARMLESS else 'attachment'}; filename*=UTF-8''{_quoted(path)}",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    if first.startswith(GZIP_MAGIC):
        headers["Content-Encoding"] = "gzip"
    return headers


def _name(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _quoted(path: str) -> str:
    """The name of a file for a header: nothing but letters, digits, `-._~` and percent signs."""
    return quote(_name(path)[-_MAX_NAME_LENGTH:].encode("utf-8", "replace"), safe="")
