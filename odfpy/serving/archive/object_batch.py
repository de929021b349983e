r"""Many small files in one request body: for each, a line with its hash and size, followed by its bytes.

    <object> <size>\n<bytes><object> <size>\n<bytes>...

The body is streamed; no file of it is kept unless all of them match their lines.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from odfpy.archive.errors import CannotCopy, WrongContent
from odfpy.archive.files import CHUNK, write_all
from odfpy.data.multihash import Multihash
from odfpy.serving.archive.uploads import Source, UploadTooLarge, object_name

MEDIA_TYPE: Final = "application/vnd.odf.objects"
"""The media type of such bodies."""

MAX_FILES: Final = 10_000
"""Files that one body may have."""

_MAX_LINE_LENGTH: Final = 200


_Reader: TypeAlias = "io.BufferedReader[_Raw]"


class MalformedBatch(Exception):
    """A body does not have the form that it should have."""


def unpack(source: Source, scratch: Path, most: int) -> dict[Multihash, Path]:
    """Write the files of a body into a folder, verifying each against its hash.

    Args:
        source: stream of the body.
        scratch: an empty folder.
        most: maximum bytes of all files together.

    Returns:
        The files by hash.

    Raises:
        MalformedBatch: the body is malformed or truncated.
        WrongContent: a file has another hash.
        UploadTooLarge: the files are too large.
        CannotCopy: the disk is full.
    """
    reader: _Reader = io.BufferedReader(_Raw(source), CHUNK)
    files: dict[Multihash, Path] = {}
    count = total = 0
    while line := reader.readline(_MAX_LINE_LENGTH):
        name, size = _parse(line)
        count, total = count + 1, total + size
        if count > MAX_FILES or total > most:
            raise UploadTooLarge(f"More than {MAX_FILES} files, or more than {most} bytes, come at once")
        path = scratch / f"object-{count}"
        _write(reader, path, name, size)
        files[name] = path
    return files


def _parse(line: bytes) -> tuple[Multihash, int]:
    text, _, size = line.decode("ascii", "replace").rstrip("\n").partition(" ")
    name = object_name(text)
    if name is None or not line.endswith(b"\n") or not size.isdecimal() or len(size) > 15:
        raise MalformedBatch(f"{line[:120]!r} is not a hash and a size")
    return name, int(size)


def _write(reader: _Reader, path: Path, name: Multihash, size: int) -> None:
    hasher, left = name.algorithm.hasher(), size
    try:
        with path.open("xb", buffering=0) as file:
            while left and (chunk := reader.read(min(left, CHUNK))):
                hasher.update(chunk)
                write_all(file, chunk)
                left -= len(chunk)
    except OSError as error:
        raise CannotCopy(f"The server cannot write the files: {error.strerror}") from error
    if left:
        raise MalformedBatch(f"{left} bytes of {name} are missing")
    if hasher.digest() != name.digest:
        raise WrongContent(f"These are not the bytes of {name}: they have another hash")


class _Raw(io.RawIOBase):
    """A raw stream for a source whose pieces may be larger than requested."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = memoryview(self._source.read())
        target = memoryview(cast("bytearray", buffer))
        count = min(len(target), len(self._rest))
        target[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
