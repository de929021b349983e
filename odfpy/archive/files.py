"""Files to be archived: their metadata, and their bytes, which are copied and hashed in one pass.

What is archived is what was read: the copy is hashed while it is written, so that the record matches the stored bytes
even if the file changes meanwhile. A file that changes while it is read is rejected, since it would be undefined which
version was archived.

Symbolic links that are named explicitly are followed, and the record has the named path. In a pushed folder they are
skipped, since they may lead anywhere.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import FileIO, RawIOBase
from pathlib import Path
from typing import BinaryIO, Final

from odfpy.archive.errors import CannotCopy, FileChanged, NotAFile, WrongContent
from odfpy.archive.pushing import NewFile
from odfpy.archive.times import Time, parse_time
from odfpy.data.multihash import HashAlgorithm, Multihash
from odfpy.errors import NotFound, OdfError
from odfpy.files import open_regular

CHUNK: Final = 1 << 20
"""Bytes per read."""

_ZEROS: Final = bytes(CHUNK)

_LARGE: Final = 4 * CHUNK
"""Size from which hashing and writing run in their own threads, in parallel with reading."""

MTIME: Final = "mtime"
"""Represents the modification time of the file."""


# --- Metadata ---------------------------------------------------------------------------------------------------------


def new_files(
    files: Iterable[str | Path],
    *,
    what: str,
    where: str,
    start: Time | None = None,
    end: Time | None = None,
    work_id: str | None = None,
) -> list[NewFile]:
    """Return files with common metadata.

    Args:
        files: paths of the files.
        what: kind of the files.
        where: origin of the files.
        start: a time, or `mtime`.
        end: likewise, or None.
        work_id: job of the files.

    Raises:
        InvalidValue: a time is invalid.
    """
    first, last = (None if time is None or time == MTIME else parse_time(time) for time in (start, end))
    return [
        NewFile(
            file=Path(file),
            what=what,
            where=where,
            work_id=work_id,
            start=first,
            end=_mtime_if_any(Path(file)) if end == MTIME else last,
        )
        for file in files
    ]


def _mtime_if_any(file: Path) -> int | None:
    """Return the modification time of a file; None if it cannot be read, which is reported later."""
    with suppress(OdfError):
        return mtime_of(file)
    return None


def mtime_of(file: Path) -> int:
    """Return the modification time of a file, in milliseconds since the epoch.

    Raises:
        NotFound: there is no such file.
    """
    try:
        return file.stat().st_mtime_ns // 1_000_000
    except OSError as error:
        raise _cannot_read(file, error) from None


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the regular files in a folder and its subfolders, sorted by name; no symbolic links.

    Raises:
        OdfError: a folder cannot be read.
    """
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise _cannot_read(folder, error) from None
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from files_in(Path(entry.path))
        elif entry.is_file(follow_symlinks=False):
            yield Path(entry.path)


# --- Content ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Content:
    """The copied bytes of a file, with their hashes.

    Attributes:
        path: path of the copy.
        size: size in bytes.
        hash: BLAKE2b of 16 bytes, in hex.
        object: name in the store.
        modified: modification time of the file, in milliseconds since the epoch.
    """

    path: Path
    size: int
    hash: str
    object: Multihash
    modified: int

    def require(self, name: str, *, hash: str | None, object: Multihash | None) -> None:  # noqa: A002
        """Check the bytes against the hashes stated in the metadata.

        Args:
            name: name of the file, for messages.
            hash: its BLAKE2b, None if not stated.
            object: its name in the store, None if not stated.

        Raises:
            WrongContent: a hash differs.
        """
        for known, actual in ((hash, self.hash), (object, self.object)):
            if known is not None and known != actual:
                raise WrongContent(
                    f"{name}: its bytes have the hash {actual}, not {known}",
                    hint="Check that the file is intact, and that the hash belongs to it.",
                )


def copy_content(file: Path, to: Path, algorithm: HashAlgorithm) -> Content:
    """Copy a file and hash it meanwhile.

    Args:
        file: a regular file, or a symbolic link to one.
        to: path of the copy; it is not flushed to disk.
        algorithm: hash algorithm of the object's name.

    Raises:
        NotFound, NotAFile: there is no such file.
        FileChanged: the file was modified or replaced while it was read.
        CannotCopy: the copy cannot be written.
        OdfError: the file cannot be read.
    """
    try:
        with read_unchanged(file, "archived") as (source, before):
            content = copy_stream(source, to, algorithm, name=str(file), size=before.st_size)
    except FileChanged:
        to.unlink(missing_ok=True)
        raise
    return Content(to, content.size, content.hash, content.object, before.st_mtime_ns // 1_000_000)


@contextmanager
def read_unchanged(file: Path, done: str) -> Iterator[tuple[BinaryIO, os.stat_result]]:
    """Open a file for reading, and check at the end that it was unchanged meanwhile.

    Args:
        file: a regular file, or a symbolic link to one.
        done: the operation, for messages.

    Yields:
        The file, and its `stat` result before it is read.

    Raises:
        NotFound, NotAFile: there is no such file.
        FileChanged: the file was modified or replaced while it was read.
        OdfError: the file cannot be read.
    """
    try:
        source = open_regular(file)
    except OSError as error:
        raise _cannot_read(file, error) from None
    with source:
        before = os.fstat(source.fileno())
        yield source, before
        is_whole = source.tell() == before.st_size and _stamp(os.fstat(source.fileno())) == _stamp(before)
        if not is_whole or _identity_at(file) != _identity(before):
            raise FileChanged(
                f"{file}: it has changed while it was read; nothing of it was {done}",
                hint="Push it when it is complete, or push a copy.",
            )


def hash_content(file: Path, algorithm: HashAlgorithm, *, keep: int) -> tuple[Content, bytes | None]:
    """Hash a file in place.

    Args:
        file: a regular file, or a symbolic link to one.
        algorithm: hash algorithm of the object's name.
        keep: maximum size up to which the content is returned, too.

    Returns:
        The content, whose `path` is the file itself; and its bytes, if it is small.

    Raises:
        NotFound, NotAFile: there is no such file.
        FileChanged: the file was modified or replaced while it was read.
        OdfError: the file cannot be read.
    """
    short, long = hashlib.blake2b(digest_size=16), algorithm.hasher()
    steps = (short.update, long.update)
    count = 0
    with read_unchanged(file, "archived") as (source, before):
        kept: list[bytes] | None = [] if before.st_size <= keep else None
        for chunk in _run(steps, _chunks(source, str(file)), at_once=before.st_size >= _LARGE):
            count += len(chunk)
            if kept is not None and count <= keep:
                kept.append(chunk)
    name = Multihash(algorithm.code, long.digest())
    content = Content(file, count, short.hexdigest(), name, before.st_mtime_ns // 1_000_000)
    return content, None if kept is None else b"".join(kept)


def copy_stream(source: BinaryIO, to: Path, algorithm: HashAlgorithm, *, name: str, size: int) -> Content:
    """Copy a stream to a file and hash it meanwhile; runs of zeros become holes.

    Args:
        source: the stream.
        to: path of the copy.
        algorithm: hash algorithm of the object's name.
        name: name of the stream in messages.
        size: approximate size.

    Raises:
        CannotCopy: the copy cannot be written; it is removed.
        OdfError: the stream cannot be read; the copy is removed.
    """
    short, long = hashlib.blake2b(digest_size=16), algorithm.hasher()
    count = 0
    try:
        with to.open("xb", buffering=0) as target:
            steps = (short.update, long.update, partial(_write, target))
            for chunk in _run(steps, _chunks(source, name), at_once=size >= _LARGE):
                count += len(chunk)
            target.truncate(count)  # the file may end with a hole
    except BaseException as error:
        to.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise CannotCopy(
                f"{name}: cannot write its copy {to}: {error.strerror}; nothing was archived",
                hint="`odf system diagnose` checks space and permissions.",
            ) from error
        raise
    return Content(to, count, short.hexdigest(), Multihash(algorithm.code, long.digest()), 0)


def _chunks(source: BinaryIO, name: str) -> Iterator[bytes]:
    try:
        while chunk := source.read(CHUNK):
            yield chunk
    except OSError as error:
        raise OdfError(f"Cannot read {name}: {error.strerror}") from error


def _run(steps: Sequence[Callable[[bytes], object]], chunks: Iterator[bytes], *, at_once: bool) -> Iterator[bytes]:
    """Pass each chunk to all steps, then yield it. `at_once` runs the steps in threads while the next chunk is read."""
    if not at_once:
        for chunk in chunks:
            for step in steps:
                step(chunk)
            yield chunk
        return
    with ThreadPoolExecutor(len(steps), "odf-archive") as pool:
        waiting: list[Future[object]] = []
        for chunk in chunks:
            wait_for(waiting)
            waiting = [pool.submit(step, chunk) for step in steps]
            yield chunk
        wait_for(waiting)


def wait_for(work: Iterable[Future[object]]) -> None:
    """Wait until all work is done.

    Raises:
        Exception: the first error.
    """
    for future in work:
        future.result()


def _write(target: FileIO, chunk: bytes) -> None:
    if len(chunk) == CHUNK and chunk == _ZEROS:
        target.seek(CHUNK, os.SEEK_CUR)
        return
    write_all(target, chunk)


def write_all(target: RawIOBase, data: bytes) -> None:
    """Write all bytes: a single system call may write only a part."""
    rest = memoryview(data)
    while rest:
        rest = rest[target.write(rest) :]


# --- Errors ----------------------------------------------------------------------------------------------------------


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _identity_at(file: Path) -> tuple[int, int] | None:
    try:
        return _identity(file.stat())
    except OSError:
        return None


def _cannot_read(file: Path, error: OSError) -> OdfError:
    if isinstance(error, FileNotFoundError):
        if file.is_symlink():
            return NotAFile(f"{file}: the symbolic link is broken")
        return NotFound(f"No such file: {file}")
    if isinstance(error, IsADirectoryError):
        return NotAFile(f"{file} is a folder", hint="Name the files in it, or archive all of them with --recursive.")
    if error.errno in (errno.EINVAL, errno.ENXIO):
        return NotAFile(f"{file} is not a regular file", hint="Pipes, sockets and devices cannot be archived.")
    if error.errno == errno.ELOOP:
        return NotAFile(f"{file}: the symbolic links form a cycle")
    return OdfError(f"Cannot read {file}: {error.strerror}")
