"""The media type of an archived file, derived from its path as in datalake's API, and headers that make it safe to
open.

Clients that push files control both path and bytes. So whatever a browser would run as a page of this server is served
as a download, and with a policy that forbids scripts.
"""

from __future__ import annotations

import re
from mimetypes import MimeTypes
from typing import Final
from urllib.parse import quote

GZIP_MAGIC: Final = b"\x1f\x8b\x08"
"""The magic number of gzip."""

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
_TYPES: Final = MimeTypes()  # without the system's mime.types files: the same on every machine


def media_type(path: str) -> str:
    """Guess the type of a file; without a known extension, or if compressed, it is plain text by default.

    A hash appended to the name, `NAME-<32 to 40 hex digits>`, is ignored.

    Args:
        path: path as recorded.
    """
    name = _name(path)
    hashed = _HASHED.fullmatch(name)
    # The leading slash prevents a name from being parsed as a URL, which may contain its own media type.
    return _TYPES.guess_type(f"/{hashed[1] if hashed else name}")[0] or _TEXT


def content_headers(path: str, first: bytes) -> dict[str, str]:
    """Return the headers that describe the bytes of a file.

    Args:
        path: path as recorded; any text.
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
    """Quote the name of a file for a header: only letters, digits, `-._~` and percent signs."""
    return quote(_name(path)[-_MAX_NAME_LENGTH:].encode("utf-8", "replace"), safe="")
