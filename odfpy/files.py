"""Atomic writes, locks and folders of files.

A reader sees either the old file or the new one, never a part of it. Files that hold data are also flushed to disk, so
that they survive a power loss. Caches are not: they can be rebuilt.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, Final

from odfpy.errors import OdfError

TEMPORARY: Final = ".tmp-"
"""Prefix of the names of unfinished files; a killed writer may leave some."""

MANY: Final = 200
"""From this number of files on, one flush of the whole file system is faster than one flush per file."""

FULL: Final = (errno.ENOSPC, errno.EDQUOT)
"""Error numbers of a full disk and of an exhausted quota."""


def is_full(error: BaseException | None) -> bool:
    """Return whether a full disk caused an error, directly or through other errors."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        error = error.__cause__
    return False


def cache_folder() -> Path:
    """Return the folder of the user's caches: `$XDG_CACHE_HOME/odfpy`, by default `~/.cache/odfpy`."""
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (chosen if chosen.is_absolute() else Path.home() / ".cache") / "odfpy"


def configuration_folder() -> Path:
    """Return the folder of the user's own settings, keys and tokens (XDG Base Directory Specification)."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "odf"


def config_files(root: Path) -> tuple[Path, ...]:
    """Return the possible settings files of a workspace, nearest first: its own, its parent folders', the user's."""
    above = (folder / ".odfconfig.yaml" for folder in (root, *root.parents))
    return (root / ".odf" / "config.yaml", *above, configuration_folder() / "config.yaml")


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading, without blocking.

    To open a named pipe would block until somebody writes to it, perhaps for ever.

    Raises:
        OSError: it cannot be opened, or is not a regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def read_regular(path: Path) -> bytes:
    """Return the content of a regular file; see `open_regular`."""
    with open_regular(path) as file:
        return file.read()


@contextmanager
def replaced_atomically(path: Path) -> Iterator[Path]:
    """Provide a temporary path that replaces a file when the block ends, and is removed if the block fails.

    Nothing is flushed to disk. A power loss may leave the file damaged or truncated: readers of caches must detect
    that, and writers of anything else must flush first.

    Raises:
        OSError: the temporary file cannot replace the file.
    """
    temporary = _aside(path)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def replace_file(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Create or replace a file atomically, and flush it to disk.

    Args:
        path: the file; its folder is created if it is missing.
        data: the content.
        mode: its permissions, less the umask.

    Raises:
        OdfError: it cannot be written; nothing has changed.
    """
    try:
        make_folder(path.parent)
        with replaced_atomically(path) as temporary:
            # The mode is given at creation: a private key must not be readable for a moment, until a chmod.
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        # The name is an entry of the folder: without this, a power loss may bring the old file back.
        sync_folder(path.parent)
    except OSError as error:
        raise OdfError(f"Cannot write {path}: {error.strerror}") from error


def replace_files(files: Iterable[tuple[Path, bytes]]) -> None:
    """Create or replace many files of one file system, each atomically, with one flush for all.

    All contents are on disk before the first file appears. Then the files appear in their order.

    Args:
        files: paths and contents; missing folders are created.

    Raises:
        OSError: a file cannot be written or moved; the files before it may have been replaced.
    """
    aside: dict[Path, Path] = {}
    try:
        for path, data in files:
            make_folder(path.parent)
            temporary = _aside(path)
            aside[temporary] = path
            temporary.write_bytes(data)
        folders = dict.fromkeys(path.parent for path in aside.values())
        if folders:
            # Content first, names afterwards: a name that survives a power loss must lead to whole content.
            sync_file_system(next(iter(folders)))
        for temporary in list(aside):
            temporary.replace(aside[temporary])
            del aside[temporary]
        for folder in folders:
            sync_folder(folder)
    finally:
        for temporary in aside:
            temporary.unlink(missing_ok=True)


def move_files(moves: Iterable[tuple[Path, Path]]) -> None:
    """Flush new files to disk, then move each to its final path in the same file system.

    All contents are on disk before the first move, so that no final path ever leads to a part of a file.

    Args:
        moves: source and target of each file; the folders exist.

    Raises:
        OSError: a file cannot be flushed or moved; the files before it may have been moved.
    """
    moves = list(moves)
    if len(moves) >= MANY:
        for folder in dict.fromkeys(source.parent for source, _ in moves):
            sync_file_system(folder)
    else:
        for source, _ in moves:
            with source.open("rb") as file:
                os.fsync(file.fileno())
    for source, target in moves:
        source.replace(target)
    for folder in dict.fromkeys(target.parent for _, target in moves):
        sync_folder(folder)


def _aside(path: Path) -> Path:
    return path.with_name(f"{TEMPORARY}{secrets.token_hex(8)}")


def make_way_for(path: Path) -> None:
    """Remove an empty folder from the path of a file; move one with content to `.aside-...` beside it.

    Raises:
        OSError: it cannot be moved.
    """
    if not path.is_dir() or path.is_symlink():
        return
    if any(path.iterdir()):
        # Its content may exist nowhere else, so nothing is deleted.
        path.rename(path.with_name(f".aside-{secrets.token_hex(4)}"))
    else:
        path.rmdir()


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, and flush each to disk."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def try_lock(file: int | BinaryIO, *, shared: bool = False) -> bool:
    """Take the lock of an open file or folder, unless somebody else holds it.

    The system releases the lock when the file is closed or the process ends. A lock file with a process id would
    outlive a crash, and another process may get the same id.

    Args:
        file: the file, or its descriptor.
        shared: whether others may hold it at the same time, if they share it too.

    Returns:
        Whether the lock was taken.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_same_file(file: int | IO[bytes], path: str | Path, *, folder: int | None = None) -> bool:
    """Return whether a path still leads to an open file or folder; it may have been removed before it was locked.

    Args:
        file: the file, or its descriptor.
        path: the path; its last part may be a symbolic link, unless a folder is given.
        folder: descriptor of an open folder that the path starts from; None for the current folder.
    """
    try:
        found = os.stat(path, dir_fd=folder, follow_symlinks=folder is None)
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(file if isinstance(file, int) else file.fileno()))


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder during the block; wait for it, and create the folder if it is missing.

    No lock file is left behind, and the lock ends with the process that holds it.

    Raises:
        OSError: the folder cannot be created or opened.
    """
    make_folder(folder)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        # A lock on the folder itself: a lock file would have to be deleted, and a process that waits for it at that
        # moment would then hold the lock of a deleted file.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def locked_for_change(path: Path) -> Iterator[None]:
    """Lock a file against changes by others during the block, to read, change and rewrite it.

    Raises:
        OdfError: it cannot be read or written.
    """
    try:
        with locked_folder(path.parent):
            yield
    except OSError as error:
        raise OdfError(f"Cannot write {path}: {error.strerror}") from error


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries to disk, so that a rename survives a power loss."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file_system(folder: Path) -> None:
    """Flush the file system of a folder: for many files, this is faster than one flush per file.

    Raises:
        OSError: something could not be written.
    """
    import ctypes

    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:  # not Linux
        os.sync()
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if syncfs(descriptor) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(descriptor)
