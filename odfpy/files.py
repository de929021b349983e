"""Files that are there as a whole or not at all. What cannot be made again is flushed to disk, caches are not."""

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
"""What the names of files begin with that are being written, or that a killed writer has left."""

MANY: Final = 200
"""Files for which flushing the whole file system takes less time than flushing each of them."""


FULL: Final = (errno.ENOSPC, errno.EDQUOT)
"""What the system says where no room is left on a disk, or none for this user."""


def is_full(error: BaseException | None) -> bool:
    """Return whether an error comes of a disk that has no room left, maybe by way of others."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        error = error.__cause__
    return False


def cache_folder() -> Path:
    """The folder of what programs of the user can make again: `$XDG_CACHE_HOME/odfpy`, by default `~/.cache/odfpy`."""
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (chosen if chosen.is_absolute() else Path.home() / ".cache") / "odfpy"


def configuration_folder() -> Path:
    """Return the folder of the user's own settings, keys and tokens (XDG Base Directory Specification)."""
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "odf"


def config_files(root: Path) -> tuple[Path, ...]:
    """Files with settings of a workspace, of which there may be some: its own, those of folders above, the user's."""
    above = (folder / ".odfconfig.yaml" for folder in (root, *root.parents))
    return (root / ".odf" / "config.yaml", *above, configuration_folder() / "config.yaml")


def open_regular(path: Path) -> BinaryIO:
    """Open a file to read it; anything else in its place is an error, and nothing is waited for.

    Whoever opens a pipe that somebody has put into a folder waits for its writer, which never comes.

    Raises:
        OSError: it cannot be opened, or is not a file.
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
    """Return what is in a file; see `open_regular`."""
    with open_regular(path) as file:
        return file.read()


@contextmanager
def replaced_atomically(path: Path) -> Iterator[Path]:
    """Give another name in the folder of a file, which becomes the file if all goes well, and is removed if not.

    Nothing is flushed to disk: a power loss may leave the file damaged or without its end, which readers of caches
    have to notice, and writers of anything else to prevent.

    Raises:
        OSError: it cannot be put in the place of the file.
    """
    temporary = _aside(path)
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def replace_file(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Write a file as a whole, in the place of one that may be there.

    Args:
        path: the file; its folder is made if need be.
        data: what is in it.
        mode: its permissions, less the umask.

    Raises:
        OdfError: it cannot be written; nothing has changed then.
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
    """Write many files of one file system, each as a whole, and flush them together; see `MANY`.

    None takes its place before all are on the disk, and then they do in their order.

    Args:
        files: where they are to be, and what is in them; their folders are made if need be.

    Raises:
        OSError: one cannot be written, or cannot take its place; only then those before it have.
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
            # Content first, names afterwards: a name that survives a power loss must lead to whole content. One flush
            # of the file system is cheaper than one of each file from some dozens on.
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
    """Give files that were just written their places in one file system; many are flushed together, see `MANY`.

    None takes its place before all are on the disk, so that no name ever leads to a part of what was written.

    Args:
        moves: where each is, and where it is to be; those folders are there.

    Raises:
        OSError: one cannot be flushed or moved; only some of those before it are in their places then.
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
    """Check that a folder does not stand where a file belongs: it goes if it is empty, else to `.aside-...` beside it.

    Raises:
        OSError: it cannot be moved.
    """
    if not path.is_dir() or path.is_symlink():
        return
    if any(path.iterdir()):
        # Whatever is in it may be all that somebody has of it, so nothing is deleted.
        path.rename(path.with_name(f".aside-{secrets.token_hex(4)}"))
    else:
        path.rmdir()


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, each flushed to disk, so that what is written into it can be found again."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def try_lock(file: int | BinaryIO, *, shared: bool = False) -> bool:
    """Take the lock of an open file or folder, if nobody else has it; it ends with the file, or with the process.

    A lock that is a file with a process id in it would outlive a crash, and another process may get the same id.

    Args:
        file: the file, or its descriptor.
        shared: whether others may hold it at the same time, if they share it too.

    Returns:
        Whether it is held now.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_same_file(file: int | IO[bytes], path: str | Path, *, folder: int | None = None) -> bool:
    """Return whether a path still leads to an open file or folder: it may have gone before its lock was taken.

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
    """Wait for a folder's lock and hold it; the folder is made if need be.

    No lock file is left behind, and the lock ends with the process that holds it.

    Raises:
        OSError: there can be no such folder.
    """
    make_folder(folder)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        # A lock on the folder itself: a lock file would have to be deleted, and whoever waits for it at that moment
        # would hold the lock of a file that is gone.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def locked_for_change(path: Path) -> Iterator[None]:
    """Let nobody else change a file while it is read, changed and written again; its folder is made if need be.

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
    """Flush all that was written to the file system of a folder: for many files faster than one after the other.

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
