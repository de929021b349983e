"""The kind of a file, detected by its first bytes, since name and metadata are not trusted."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

HEAD: Final = 64 * 1024
"""Bytes used to detect a kind."""

_PICTURES: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)
_COMMENT: Final = r"<!--(?:(?!-->).)*-->"
"""A comment of XML. It never matches beyond its end, or matching many comments would take exponential time."""

_SVG: Final = re.compile(rf"\s*(?:<\?xml[^>]*>\s*)?(?:{_COMMENT}\s*)*(?:<!DOCTYPE svg[^>]*>\s*)?<svg[\s>]", re.DOTALL)
_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_CONTROLS: Final = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")  # without ESC: logs contain colors
_MAX_STRANGE: Final = 0.05


class FileKind(Enum):
    """Kinds of files, by what is shown of them.

    Attributes:
        TEXT: its beginning.
        DELIMITED: its first rows: CSV, and the same with tabs.
        PARQUET: its first rows.
        PICTURE: the picture itself.
        DRAWING: SVG: its beginning as text, and the drawing as an image without scripts.
        BYTES: its first bytes.
        EMPTY: nothing.
    """

    TEXT = "text"
    DELIMITED = "delimited"
    PARQUET = "parquet"
    PICTURE = "picture"
    DRAWING = "drawing"
    BYTES = "bytes"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class DetectedKind:
    """The kind of a file, and more about it.

    Attributes:
        kind: the kind.
        media_type: media type of a picture.
        encoding: encoding of a text, by its Python name.
    """

    kind: FileKind
    media_type: str | None = None
    encoding: str | None = None


def detect_kind(head: bytes, path: str) -> DetectedKind:
    """Detect the kind of a file.

    Args:
        head: its first bytes, decompressed; up to `HEAD`.
        path: path of the file; only distinguishes tables from other text.
    """
    if not head:
        return DetectedKind(FileKind.EMPTY)
    if head.startswith(b"PAR1"):
        return DetectedKind(FileKind.PARQUET)
    for signature, media_type in _PICTURES:
        if signature.match(head):
            return DetectedKind(FileKind.PICTURE, media_type)
    encoding = _encoding_of(head)
    if encoding is None:
        return DetectedKind(FileKind.BYTES)
    if _SVG.match(text_of(head[:4096], encoding)):
        return DetectedKind(FileKind.DRAWING, "image/svg+xml", encoding)
    is_table = re.search(r"\.(csv|tsv)(\.gz)?$", path, re.IGNORECASE) is not None
    return DetectedKind(FileKind.DELIMITED if is_table else FileKind.TEXT, None, encoding)


def text_of(data: bytes, encoding: str) -> str:
    """Decode bytes that may end within a character; invalid bytes become `�`."""
    return codecs.getincrementaldecoder(encoding)("replace").decode(data)


def _encoding_of(head: bytes) -> str | None:
    """Return the encoding of a text, None if it is not text."""
    encoding = next((name for mark, name in _MARKS if head.startswith(mark)), "utf-8")
    text = text_of(head, encoding)
    if "\0" in text:
        return None
    strange = len(_CONTROLS.findall(text)) + text.count("\N{REPLACEMENT CHARACTER}")
    return encoding if strange <= _MAX_STRANGE * len(text) else None
