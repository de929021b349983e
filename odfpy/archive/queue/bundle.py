"""Bundles: a file and its metadata in one tar file, as in datalake.

    content                   the bytes
    version                   0
    datalake-metadata.json    see `odfpy.archive.metadata`

The content comes first: its size is known only after it was written, and its header is written then.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import stat
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from odfpy.archive.errors import RecordRefused
from odfpy.archive.files import write_all
from odfpy.archive.metadata import MAX_LENGTH, Metadata, parse_metadata
from odfpy.data.multihash import HashAlgorithm, Multihash
from odfpy.errors import UsageError
from odfpy.files import open_regular

if TYPE_CHECKING:
    from typing_extensions import Buffer

VERSION: Final = b"0"

_CONTENT: Final = "content"
_VERSION: Final = "version"
_METADATA: Final = "datalake-metadata.json"
_MEMBERS: Final = (_CONTENT, _VERSION, _METADATA)

_BLOCK: Final = tarfile.BLOCKSIZE
_CHUNK: Final = 1 << 20
_MAX_MEMBERS: Final = 100
_MAX_HEADER_LENGTH: Final = 4 << 20


class BundleRefused(UsageError, code="E864"):
    """A file in a queue is not a bundle of a file and its metadata."""


# --- Writing ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bundled:
    """The written content of a bundle.

    Attributes:
        size: size in bytes.
        hash: BLAKE2b of 16 bytes, in hex.
        object: its name in the store of an archive.
    """

    size: int
    hash: str
    object: Multihash


class _Hashed:
    """A file that hashes what is written to it."""

    def __init__(self, file: BinaryIO, algorithm: HashAlgorithm) -> None:
        self._file = file
        self._algorithm = algorithm
        self._hashers = (hashlib.blake2b(digest_size=16), algorithm.hasher())
        self._count = 0

    def write(self, data: Buffer) -> int:
        view = memoryview(data)
        for hasher in self._hashers:
            hasher.update(view)
        self._count += view.nbytes
        return self._file.write(view)

    def flush(self) -> None:
        """Skip the flush of a part: the whole bundle is flushed to disk at the end."""

    def bundled(self) -> Bundled:
        short, long = self._hashers
        return Bundled(self._count, short.digest().hex(), Multihash(self._algorithm.code, long.digest()))


def write_bundle(
    file: BinaryIO,
    source: BinaryIO,
    describe: Callable[[Bundled], Metadata],
    algorithm: HashAlgorithm,
    *,
    compress: bool = False,
) -> Metadata:
    """Write a bundle.

    Args:
        file: empty, seekable file.
        source: the content, read to its end.
        describe: returns the metadata for the content.
        algorithm: hash algorithm of the object's name.
        compress: compress the content with gzip; equal contents give equal bytes.

    Raises:
        OSError: `file` cannot be written, or `source` cannot be read.
    """
    file.seek(_BLOCK)
    target = _Hashed(file, algorithm)
    if compress:
        # Without name and time, so that the same file always has the same hash.
        with gzip.GzipFile("", "wb", fileobj=cast("Any", target), mtime=0) as packed:
            _copy(source, packed.write)
    else:
        _copy(source, target.write)
    bundled = target.bundled()
    metadata = describe(bundled)
    _pad(file, bundled.size)
    for name, data in ((_VERSION, VERSION), (_METADATA, json.dumps(metadata.to_dict()).encode())):
        file.write(_header(name, len(data)))
        file.write(data)
        _pad(file, len(data))
    file.write(bytes(2 * _BLOCK))
    file.seek(0)
    file.write(_header(_CONTENT, bundled.size))
    return metadata


def _copy(source: BinaryIO, write: Callable[[bytes], object]) -> None:
    while chunk := source.read(_CHUNK):
        write(chunk)


def _pad(file: BinaryIO, size: int) -> None:
    file.write(bytes(-size % _BLOCK))


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    header = info.tobuf(tarfile.GNU_FORMAT)  # a single block, also above 8 GiB
    assert len(header) == _BLOCK  # noqa: S101
    return header


# --- Reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bundle:
    """An open bundle.

    Attributes:
        metadata: metadata of the file.
        size: size of the content in bytes.
        content: stream of the content.
    """

    metadata: Metadata
    size: int
    content: BinaryIO

    def extract(self, to: Path) -> None:
        """Write the content to a file. Nothing of it is left after an error: it may be that the disk is full.

        Args:
            to: the file to create; not flushed to disk.

        Raises:
            BundleRefused: the bundle is damaged.
            OSError: the file cannot be written.
        """
        with to.open("xb", buffering=0) as file:
            try:
                _copy(self.content, partial(write_all, file))
                self._require_whole(file.tell())
            except BaseException:
                to.unlink()
                raise

    def _require_whole(self, count: int) -> None:
        if count != self.size:
            raise BundleRefused(f"The bundle ends after {count} of {self.size} bytes of its content")


@contextmanager
def opened_bundle(path: Path) -> Iterator[Bundle]:
    """Open a bundle.

    Args:
        path: path of the bundle.

    Raises:
        BundleRefused: the bundle is invalid.
        RecordRefused: its metadata breaks rules.
        OSError: the bundle cannot be read.
    """
    if not stat.S_ISREG(path.lstat().st_mode):
        raise BundleRefused(f"{path.name} is not a regular file", hint="Bundles must be regular files in the queue.")
    with open_regular(path) as file:
        try:
            with tarfile.open(fileobj=cast("BinaryIO", _Bounded(file)), mode="r:") as tar:
                yield _bundle_in(tar, path.name)
        except (tarfile.TarError, ValueError, OverflowError) as error:
            raise BundleRefused(f"{path.name} is not a complete tar file: {error}") from None


class _Bounded:
    """A file that limits reads: tar headers state their own length, and could demand too much memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int) -> bytes:
        if size > _MAX_HEADER_LENGTH:
            raise tarfile.ReadError(f"a header of {size} bytes")
        return self._file.read(size)


def _bundle_in(tar: tarfile.TarFile, name: str) -> Bundle:
    members: dict[str, tarfile.TarInfo] = {}
    for number, member in enumerate(tar):
        if number == _MAX_MEMBERS:
            break
        if member.name in _MEMBERS:
            if not member.isreg() or member.issparse():
                raise BundleRefused(f"{name}: {member.name} is not a plain file")
            members[member.name] = member
        if len(members) == len(_MEMBERS):
            break
    missing = [member for member in _MEMBERS if member not in members]
    if missing:
        raise BundleRefused(f"{name} has no {' and no '.join(missing)}", hint="It is not a complete bundle.")
    version = _small(tar, members[_VERSION], name)
    if version != VERSION:
        raise BundleRefused(f"{name}: the version {version[:20]!r} of bundles is not known, only {VERSION!r}")
    metadata = parse_metadata(_small(tar, members[_METADATA], name), name)
    content = tar.extractfile(members[_CONTENT])
    assert content is not None  # noqa: S101  it is a plain file
    return Bundle(metadata, members[_CONTENT].size, cast("BinaryIO", content))


def _small(tar: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> bytes:
    if member.size > MAX_LENGTH:
        raise RecordRefused(name, [f"{member.name} has {member.size} bytes, {MAX_LENGTH} are allowed"])
    file = tar.extractfile(member)
    assert file is not None  # noqa: S101  it is a plain file
    return file.read(member.size)
