"""The target folder of fetched files: nothing is written outside of it, and existing files are not replaced.

Folders below it are opened one by one without following symbolic links, so that a link that somebody has put there
leads nowhere, whenever they have done so. A file has its name when it is whole and was checked. A fetch that breaks off
leaves its part, `.odf-part-...`, and the next one of the same content continues from there. Where the disk is full, no
part is left.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from odfpy.archive.errors import WrongContent
from odfpy.archive.files import write_all
from odfpy.data.multihash import Hasher
from odfpy.errors import AlreadyExists, OdfError
from odfpy.files import FULL, try_lock

if TYPE_CHECKING:
    from odfpy.archive.record import FileRecord

PART: Final = ".odf-part-"
"""Begins the name of a file that is not whole yet."""

_CHUNK: Final = 1 << 20
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NameTaken(AlreadyExists, code="E863"):
    """A file of that name already exists, and it is another one."""


class TargetFolder:
    """A folder that files are fetched to.

    Attributes:
        path: path of the folder; it may be reached by symbolic links.
    """

    def __init__(self, path: str | Path) -> None:
        """
        Args:
            path: path of the folder; made with the first file.
        """
        self.path = Path(path)

    def write(self, name: str, content: Callable[[int], BinaryIO], record: FileRecord) -> Path:
        """Write a file, unless it already exists.

        Args:
            name: relative; see `FilenameTemplate.name_of`.
            content: gives the content as a stream from a byte on.
            record: of the file.

        Returns:
            The path of the file.

        Raises:
            NameTaken: another file has the name.
            WrongContent: the bytes are not those of the record.
            OdfError: it cannot be read or written.
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
        """Give the descriptor of a folder below this one, made if need be."""
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
    """Complete the part of a file, check all of it, and give it its name.

    Raises:
        FileExistsError: the name was taken meanwhile.
    """
    part = f"{PART}{record.object}"
    descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=folder)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        if not try_lock(file):
            raise OdfError(
                f"Another process is fetching {record.path} ({record.id}) into the same folder",
                hint="Wait until it has finished, or fetch into another folder.",
            )
        try:
            _complete(file, content, record)
        except WrongContent:
            os.unlink(part, dir_fd=folder)  # nobody can tell which of the bytes are the wrong ones
            raise
        except OSError as error:
            if error.errno in FULL:  # who makes room would not look for a file with a dot
                os.unlink(part, dir_fd=folder)
            raise
        try:
            _name(folder, part, name)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=folder)


def _complete(file: RawIOBase, content: Callable[[int], BinaryIO], record: FileRecord) -> None:
    """Bring what a part lacks, and check all of it.

    Raises:
        WrongContent: it is not the content of the record.
    """
    hasher = record.object.algorithm.hasher()
    count = _copy(file, None, hasher)
    checks = count > 0  # a content that is read from its beginning checks itself, see `Archive.open`
    with content(count) as stream:
        count += _copy(stream, file, hasher if checks else None)
    if count != record.size or (checks and hasher.digest() != record.object.digest):
        raise WrongContent(
            f"{count} received bytes are not those of {record.path} ({record.id}); nothing was written",
            hint="`odf verify --repair` fetches damaged files again from another copy of the archive.",
        )


def _copy(source: RawIOBase | BinaryIO, target: RawIOBase | None, hasher: Hasher | None) -> int:
    """Read what is left of a stream, for a target, a hash or both; returns how many bytes that are."""
    count = 0
    while chunk := source.read(_CHUNK):
        count += len(chunk)
        if hasher is not None:
            hasher.update(chunk)
        if target is not None:
            write_all(target, chunk)
    return count


def _name(folder: int, temporary: str, name: str) -> None:
    """Give a file its name: of two that do so at once, one is refused.

    Raises:
        FileExistsError: the name is taken.
    """
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}:
            raise
        # The file system has no hard links: the name is taken by an empty file first, which nobody else can do then.
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, dir_fd=folder))
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)


def _has(folder: int, name: str, record: FileRecord) -> bool:
    """Return whether that file already exists.

    Raises:
        FileExistsError: another one is, or something else.
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
