"""Text in other encodings, converted to UTF-8 in an unnamed temporary file, which is deleted with its last user."""

from __future__ import annotations

import codecs
import os
import tempfile
import weakref
from pathlib import Path
from typing import BinaryIO

from odfpy.errors import BadValue, InvalidValue

_BLOCK = 1 << 20
_BOTH_ORDERS = ("utf-16", "utf-32")
_OF_NO_FILE = ("idna", "punycode", "undefined")  # codecs of Python that are not for files
HEAD_SIZE = 8
_STEP = "let the source do so, if it is a polling source: `prepare: [{%s}]`"
_PACKED = (  # compressed formats by magic number: their name, and how a source unpacks them
    (b"\x1f\x8b", "gzip", _STEP % "kind: Decompress, format: Gzip"),
    (b"PK\x03\x04", "zip", _STEP % "kind: Decompress, format: Zip"),
    (b"\x28\xb5\x2f\xfd", "zstd", _STEP % "kind: Pipe, command: [zstd, -dc]"),
    (b"\xfd7zXZ\x00", "xz", _STEP % "kind: Pipe, command: [xz, -dc]"),
    (b"BZh", "bzip2", _STEP % "kind: Pipe, command: [bzip2, -dc]"),
)
_MARKED = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # before the UTF-16 mark, which is a prefix of it
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)  # the fourth begins with the first


class Utf8Copy:
    """The text of a file as UTF-8, without byte order mark."""

    def __init__(self, source: BinaryIO, codec: str, name: str) -> None:
        """Convert a file.

        Raises:
            BadValue: the text is not in the encoding; the message names the line.
            OSError: a file cannot be read or written.
        """
        self._file, path = tempfile.mkstemp(prefix="odf-")
        weakref.finalize(self, os.close, self._file)
        Path(path).unlink()
        with os.fdopen(os.dup(self._file), "wb") as target:
            convert(source, target, codec, name)

    def open(self) -> BinaryIO:
        """Open the text; each stream has its own position."""
        return Path(f"/proc/self/fd/{self._file}").open("rb")


def convert(source: BinaryIO, target: BinaryIO, codec: str, name: str) -> None:
    """Write a text as UTF-8, without byte order mark.

    Args:
        source: the text in its own encoding.
        target: target of the UTF-8 text.
        codec: name of the encoding.
        name: name of the file in messages.

    Raises:
        BadValue: the text is not in the encoding; the message names the line.
        OSError: a file cannot be read or written.
    """
    start = source.read(HEAD_SIZE)
    source.seek(0)
    if codec in _BOTH_ORDERS and not start.startswith(_MARKS):
        codec += "-le"
    decoder = codecs.getincrementaldecoder(codec)()
    line, is_first = 1, True
    while True:
        block = source.read(_BLOCK)
        try:
            text = decoder.decode(block, final=not block)
            target.write((text.removeprefix("\ufeff") if is_first else text).encode())
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(codec, "replace")
            place = f"{name}, line {line + before.count(chr(10))}"
            raise not_encoded(place, bytes(error.object), error.start, codec, start) from error
        except UnicodeError as error:
            raise not_encoded(f"{name}, line {line}", b"", 0, codec, start) from error
        line += text.count("\n")
        is_first = is_first and not text
        if not block:
            return


def not_encoded(place: str, raw: bytes, at: int, codec: str, head: bytes) -> BadValue:
    """Return the error for bytes that are not in an encoding.

    Args:
        place: file and line, for the message.
        raw: the bytes around them.
        at: offset of the first one in `raw`.
        codec: name of the encoding.
        head: the first `HEAD_SIZE` bytes of the file, which may reveal its actual format.
    """
    wrong = f"byte 0x{raw[at]:02x}" if at < len(raw) else "the text from here on"
    message = f"{place}: {wrong} is not {codec}"
    for start, kind, unpacked in _PACKED:
        if head.startswith(start):
            return BadValue(f"{message}; the file looks like {kind}", hint=f"Unpack it first, or {unpacked}.")
    encoding = next((name for mark, name in _MARKED if head.startswith(mark)), codec)
    how = "for example `encoding: windows-1252`"
    if not codec.startswith(encoding):
        message += f"; the file begins with the mark of {encoding}"
        how = f"`encoding: {encoding}`"
    return BadValue(message, hint=f"Set the encoding of the file in the read step, {how}.")


def codec_of(encoding: str | None) -> str:
    """Return the codec of an encoding; UTF-8 if none is named.

    Raises:
        InvalidValue: no such encoding.
    """
    try:
        codec = codecs.lookup(encoding or "utf-8")
        b"a".decode(codec.name)  # refused by codecs that are not about text
        codecs.getincrementaldecoder(codec.name)
    except UnicodeError:
        pass
    except (LookupError, ValueError) as error:
        raise _unknown(encoding) from error
    if codec.name in _OF_NO_FILE:
        raise _unknown(encoding)
    return codec.name


def _unknown(encoding: str | None) -> InvalidValue:
    return InvalidValue(
        f"There is no encoding {encoding!r}", hint="Known are utf-8, latin-1, windows-1252, utf-16 and many others."
    )
