"""Compressed files and zip archives from untrusted sources: unpacked as streams within limits, or rejected.

No file is ever written under a name from an archive. Even so, archives whose names lead outside are rejected: they were
made with bad intent. So are decompression bombs: output is counted while it is written, whatever size the archive
states.
"""

from __future__ import annotations

import lzma
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import BinaryIO, Protocol

from odfpy.errors import PrepareError
from odfpy.settings.sections import PrepareSection
from odfpy.values import dataclass

_BLOCK = 1 << 20
_GENEROUS = 64 << 20  # small files may be highly repetitive
_MAX_NAMES = 10  # of members in a message
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
    KeyError,
    IndexError,
)
_DRIVE = re.compile(r"[A-Za-z]:")
_SHAPEFILE = b"\x00\x00\x27\x0a"
_CLUTTER = ("__MACOSX", ".DS_Store")  # added by the archivers of macOS


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """Limits on the output of unpacking a file.

    Attributes:
        max_bytes: the maximum size of one unpacked file.
        max_ratio: the maximum ratio of unpacked to packed size; not applied below 64 MiB.
    """

    max_bytes: int = PrepareSection.max_size
    max_ratio: int = PrepareSection.max_ratio

    def check(self, unpacked: int, packed: int, name: str) -> None:
        """Check that the output is within the limits.

        Args:
            unpacked: bytes that have been unpacked so far.
            packed: packed bytes that have been read so far.
            name: the name of the file in messages.

        Raises:
            PrepareError: the output exceeds a limit.
        """
        if unpacked > self.max_bytes:
            raise PrepareError(
                f"{name} unpacks to more than {self.max_bytes} bytes",
                hint="If this is correct for this source, `odf config set prepare.maxSize` allows more.",
            )
        if unpacked > max(_GENEROUS, self.max_ratio * packed):
            raise PrepareError(
                f"{name} unpacks to more than {self.max_ratio} times its size, like a decompression bomb",
                hint="If this is correct for this source, `odf config set prepare.maxRatio` allows more.",
            )


class Stream(Protocol):
    """A stream that is read in blocks."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, none at the end."""


def unpack(stream: Stream, target: BinaryIO, packed: int, name: str, limits: UnpackLimits) -> None:
    """Copy a stream that decompresses as it is read.

    Args:
        stream: the compressed stream.
        target: where to write.
        packed: packed size of the content in bytes.
        name: name of the content, for errors.
        limits: limits on the output.

    Raises:
        PrepareError: the content is damaged, or exceeds the limits.
        OSError: the target cannot be written.
    """
    count = 0
    for block in _blocks(stream, name):
        count += len(block)
        limits.check(count, packed, name)
        target.write(block)


def _blocks(stream: Stream, name: str) -> Iterator[bytes]:
    while True:
        with reading(name):
            block = stream.read(_BLOCK)
        if not block:
            return
        yield block


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Convert errors of libraries about damaged content.

    Raises:
        PrepareError: always instead of them.
    """
    try:
        yield
    except _DAMAGE as error:
        reason = str(error) or type(error).__name__
        raise PrepareError(
            f"{name} is truncated or damaged: {reason[:1].lower()}{reason[1:]}",
            hint="It may have been incomplete when it was fetched; try again later, or inform its publisher.",
        ) from error


class ZipArchive:
    """A zip file.

    Attributes:
        name: name of the archive, for errors.
        names: names of its files, in its order, without folders and clutter.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        """Read the table of contents.

        Raises:
            PrepareError: the file is not a zip archive, or has names that lead outside of it.
        """
        self.name = name
        self._size = file.seek(0, 2)
        file.seek(0)
        magic = file.read(4)
        if not magic.startswith(b"PK"):
            raise PrepareError(f"{name} is not a zip file", hint=_other_format(magic))
        with reading(name):
            self._zip = zipfile.ZipFile(file)
        for info in self._zip.infolist():
            parts = re.split(r"[/\\]", info.filename)
            if ".." in parts or parts[0] == "" or _DRIVE.match(info.filename):
                raise PrepareError(
                    f"{name} has an entry {info.filename!r}, which points outside of the archive",
                    hint="Such archives are malicious; ask the publisher for a valid one.",
                )
        self._files = [info for info in self._zip.infolist() if not info.is_dir() and not _is_clutter(info.filename)]
        self.names = [info.filename for info in self._files]

    def find(self, sub_path: str | None, names: Sequence[str] | None = None, what: str = "file") -> str:
        """Return the file selected by `subPath`: the one with that name, or the only one that matches it as a pattern.

        Args:
            sub_path: value from the source.
            names: candidate files; all by default.
            what: kind of the files, for errors.

        Raises:
            PrepareError: there is none, or several.
        """
        known = self.names if names is None else names
        if sub_path is None:
            found = known
        else:
            wanted = sub_path.removeprefix("./")
            found = [name for name in known if name == wanted] or [name for name in known if _matches(name, wanted)]
        if len(found) == 1:
            return found[0]
        where = self.name if sub_path is None else f"{self.name} under the subPath {sub_path!r}"
        if not found:
            raise PrepareError(f"There is no {what} in {where}", hint=f"It has {_some(self.names)}.")
        if len(set(found)) < len(found):
            repeated = next(name for name, count in Counter(found).items() if count > 1)
            raise PrepareError(
                f"{self.name} has the {what} {repeated!r} twice", hint="Ask its publisher which one is correct."
            )
        raise PrepareError(
            f"There are {len(found)} {what}s in {where}: {_some(found)}", hint="Name one of them with `subPath`."
        )

    def extract(self, member: str, target: BinaryIO, limits: UnpackLimits) -> None:
        """Write the content of a file.

        Args:
            member: name of the file in the archive.
            target: target of its content.
            limits: limits on the output.

        Raises:
            PrepareError: the file is encrypted, damaged or too large.
            OSError: the target cannot be written.
        """
        name = f"{self.name}/{member}"
        info = next(info for info in self._files if info.filename == member)
        if info.flag_bits & 1:
            raise PrepareError(
                f"{name} is encrypted", hint="odf cannot decrypt archives; decrypt it before it is fetched."
            )
        with reading(name):
            stream = self._zip.open(info)
        with stream:
            # The archive itself states its packed size. A large number must not permit a large ratio.
            unpack(stream, target, min(info.compress_size, self._size), name, limits)


def _matches(name: str, pattern: str) -> bool:
    return _match_parts(name.split("/"), pattern.split("/"))


def _match_parts(parts: Sequence[str], patterns: Sequence[str]) -> bool:
    if not patterns:
        return not parts
    if patterns[0] == "**":
        rest = patterns[1:]
        return any(_match_parts(parts[i:], rest) for i in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], patterns[0]) and _match_parts(parts[1:], patterns[1:])


def _is_clutter(name: str) -> bool:
    parts = name.split("/")
    return parts[0] in _CLUTTER or parts[-1] in _CLUTTER


def _some(names: Sequence[str]) -> str:
    if not names:
        return "no files"
    shown = ", ".join(map(repr, names[:_MAX_NAMES]))
    return shown + (f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else "")


def _other_format(magic: bytes) -> str:
    if magic == _SHAPEFILE:
        return "It is a part of a shapefile: put its .shp, .dbf and .shx into one zip file."
    if magic.startswith(b"\x1f\x8b"):
        return "It is a gzip file; set `format: Gzip`."
    return "It may not be compressed, or the server sent an error page instead."
