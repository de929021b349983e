"""The target folder of fetched files: nothing is written outside of it, and existing files are not replaced.

Folders below it are opened one by one without following symbolic links. So links planted by others have no effect,
whenever they appear. A file gets its name when it is complete and verified. An interrupted fetch leaves a partial file,
`.odf-part-...`, and the next fetch of the same content continues it. If the disk is full, no partial file is left.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from odfpy.archive.errors import WrongContent
from odfpy.archive.files import write_all
from odfpy.data.multihash import Hasher
from odfpy.errors import AlreadyExists, OdfError
from odfpy.files import FULL, is_same_file, try_lock

if TYPE_CHECKING:
    from odfpy.archive.record import FileRecord

PART: Final = ".odf-part-"
"""Prefix of partial files."""

_CHUNK: Final = 1 << 20
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NameTaken(AlreadyExists, code="E863"):
    """Another file of that name already exists."""


class TargetFolder:
    """A target folder for fetched files.

    Attributes:
        path: path of the folder; symbolic links in it are followed.
    """

    def __init__(self, path: str | Path) -> None:
        """
        Args:
            path: path of the folder; created with the first file.
        """
        self.path = Path(path)

    def write(self, name: str, content: Callable[[int], BinaryIO], record: FileRecord) -> Path:
        """Write a file, unless it already exists.

        Args:
            name: relative path; see `FilenameTemplate.name_of`.
            content: returns the content as a stream from an offset.
            record: record of the file.

        Returns:
            The path of the file.

        Raises:
            NameTaken: another file has the name.
            WrongContent: the bytes differ from those of the record.
            OdfError: the content cannot be read or written.
        """
        path = self.path / name
        *folders, last = name.split("/")
        try:
            with self._opened(folders) as folder:
                if not _has(folder, last, record):
                    _write(folder, last, content, record)
        except FileExistsError:
            raise NameTaken(
                f"{path} already exists, and is not the file {record.id}; it was not changed",
                hint="Add {id} to the template, which is unique.",
            ) from None
        except OSError as error:
            raise _cannot_write(path, error) from error
        return path

    @contextmanager
    def _opened(self, folders: list[str]) -> Iterator[int]:
        """Open a folder below this one, creating it if needed; yield its descriptor."""
        self.path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in folders:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
                deeper = os.open(name, _FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = deeper
            yield descriptor
        finally:
            os.close(descriptor)


def _write(folder: int, name: str, content: Callable[[int], BinaryIO], record: FileRecord) -> None:
    """Complete a partial file, verify it, and give it its name.

    Raises:
        FileExistsError: the name was taken meanwhile.
    """
    part = f"{PART}{record.object}"
    with _locked(folder, part, record) as file:
        try:
            _complete(file, content, record)
        except WrongContent:
            os.unlink(part, dir_fd=folder)  # nobody can tell which bytes are wrong
            raise
        except OSError as error:
            if error.errno in FULL:  # users who free space would not look for hidden files
                os.unlink(part, dir_fd=folder)
            raise
        try:
            _name(folder, part, name)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=folder)


@contextmanager
def _locked(folder: int, part: str, record: FileRecord) -> Iterator[RawIOBase]:
    """Open a part, and hold its lock."""
    while True:
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder)
        with os.fdopen(descriptor, "r+b", buffering=0) as file:
            if not try_lock(file):
                raise OdfError(
                    f"Another process is fetching {record.path} ({record.id}) into the same folder",
                    hint="Wait until it has finished, or fetch into another folder.",
                )
            if not is_same_file(descriptor, part, folder=folder):
                continue  # another process has just given it its name: this is a whole file, which must not change
            yield file
            return


def _complete(file: RawIOBase, content: Callable[[int], BinaryIO], record: FileRecord) -> None:
    """Append the missing bytes to a partial file, and verify the whole.

    Raises:
        WrongContent: the content differs from that of the record.
    """
    hasher = record.object.algorithm.hasher()
    count = _copy(file, None, hasher)
    checks = count > 0  # content read from its beginning verifies itself, see `Archive.open`
    with content(count) as stream:
        # One byte too many tells that it is wrong: a server might send more until the disk is full.
        count += _copy(stream, file, hasher if checks else None, max(0, record.size + 1 - count))
    if count != record.size or (checks and hasher.digest() != record.object.digest):
        raise WrongContent(
            f"{count} received bytes are not those of {record.path} ({record.id}); nothing was written",
            hint="`odf verify --repair` fetches damaged files again from another copy of the archive.",
        )


def _copy(
    source: RawIOBase | BinaryIO, target: RawIOBase | None, hasher: Hasher | None, most: int = sys.maxsize
) -> int:
    """Read what is left of a stream, for a target, a hash or both; returns how many bytes that are.

    Args:
        source: the stream.
        target: takes the bytes.
        hasher: is updated with the bytes.
        most: maximum number of bytes.
    """
    count = 0
    while chunk := source.read(min(_CHUNK, most - count)):
        count += len(chunk)
        if hasher is not None:
            hasher.update(chunk)
        if target is not None:
            write_all(target, chunk)
    return count


def _name(folder: int, temporary: str, name: str) -> None:
    """Rename a file to its final name; of two concurrent attempts, one fails.

    Raises:
        FileExistsError: the name is taken.
    """
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}:
            raise
        # The file system has no hard links: reserve the name with an empty file first, which only one process can do.
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, dir_fd=folder))
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _has(folder: int, name: str, record: FileRecord) -> bool:
    """Return whether that file already exists.

    Raises:
        FileExistsError: another file or something else has the name.
    """
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error
    try:
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and status.st_size == record.size:
            hasher = record.object.algorithm.hasher()
            with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as file:
                _copy(file, None, hasher)
            if hasher.digest() == record.object.digest:
                return True
    finally:
        os.close(descriptor)
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _cannot_write(path: Path, error: OSError) -> OdfError:
    if error.errno in {errno.ELOOP, errno.ENOTDIR}:
        return OdfError(
            f"Cannot write {path}: a part of the path is a symbolic link, or not a folder",
            hint="Links in the target folder are not followed.",
        )
    return OdfError(f"Cannot write {path}: {error.strerror}", hint="Check the free space.")
