"""The folder of a queue: its waiting, taken and rejected bundles."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from odfpy.archive.queue.usage import QueueLimits, QueueUsage, count_usage, require_room
from odfpy.data.timestamp import Timestamp
from odfpy.errors import OdfError
from odfpy.files import TEMPORARY, is_same_file, make_folder, replace_file, sync_folder, try_lock

_WORK: Final = ".work"
_POISON: Final = "poison"
_CLAIMED: Final = "claimed"
_REASON: Final = ".reason.json"
_LEFT: Final = 3600.0
_MAX_NAME_BYTES: Final = 200
_DIGEST: Final = 16
_NO_REPLACE: Final = 1
_AT_FOLDER: Final = -100


class QueueGone(OdfError, code="E866"):
    """The folder of a queue cannot be used: it is missing, or permissions are missing."""


class QueueFolder:
    """The folder of a queue.

    Attributes:
        path: path of the existing folder.
        limits: limits of the queue.
    """

    def __init__(self, path: Path, limits: QueueLimits | None = None) -> None:
        """
        Args:
            path: path of the folder; created if needed.
            limits: limits of the queue.

        Raises:
            QueueGone: the folder cannot be created.
        """
        self.path = path.absolute()
        self.limits = limits or QueueLimits()
        try:
            make_folder(self.path)
            (self.path / _WORK).mkdir(exist_ok=True)
        except OSError as error:
            raise self.gone(error) from error

    def gone(self, error: OSError) -> QueueGone:
        """Return the error for an unusable folder."""
        return QueueGone(
            f"The queue {self.path} cannot be used: {error.strerror}",
            hint="The setting archive.queue, or --queue, names a folder that you may write to.",
        )

    # --- What is in it ---

    def waiting(self) -> Iterator[str]:
        """Yield the names of files that are or may be waiting bundles, in any order.

        Raises:
            QueueGone: the folder cannot be read.
        """
        try:
            with os.scandir(self.path) as entries:
                yield from (entry.name for entry in entries if _may_be_bundle(entry))
        except OSError as error:
            raise self.gone(error) from error

    def usage(self) -> QueueUsage:
        """Return the amount of waiting and claimed files."""
        return count_usage(self._folders())

    def require_room(self, size: int) -> None:
        """Check that the queue accepts another file.

        Args:
            size: size of the file in bytes.

        Raises:
            QueueFull: the queue is full.
        """
        require_room(self.path, self._folders(), self.limits, size)

    def _folders(self) -> list[Path]:
        return [self.path, *(place / _CLAIMED for place in self._places())]

    def refused(self) -> Iterator[dict[str, Any]]:
        """Yield rejected bundles with their reasons, sorted by name."""
        for name in sorted(self._refused()):
            if not name.endswith(_REASON):
                with suppress(OSError, ValueError):
                    yield {"name": name, **json.loads(self._reason(name).read_bytes())}

    def _refused(self) -> list[str]:
        with suppress(FileNotFoundError):
            return [path.name for path in (self.path / _POISON).iterdir()]
        return []

    def _reason(self, name: str) -> Path:
        return self.path / _POISON / f"{_shortened(name)}{_REASON}"

    def _places(self) -> list[Path]:
        with suppress(OSError):
            return sorted((self.path / _WORK).iterdir())
        return []

    # --- Bundles that come and go ---

    def poison(self, bundle: Path, name: str, error: OdfError) -> Path:
        """Move a bundle to the poison folder, for inspection.

        Args:
            bundle: current path of the bundle.
            name: its name in the queue.
            error: why it was rejected.

        Returns:
            Its new path.

        Raises:
            OdfError: the bundle cannot be moved.
        """
        folder = self.path / _POISON
        tree = {
            "at": str(Timestamp.now()),
            "error": error.message,
            "code": error.code,
            "hint": error.hint,
            "reasons": list(getattr(error, "reasons", ())) or [error.message],
        }
        try:
            make_folder(folder)
            kept = name
            while os.path.lexists(folder / kept):  # of a bundle of that name that came earlier
                kept = f"{secrets.token_hex(4)}-{_shortened(name)}"
            # The reason first: whoever finds a bundle there finds out why.
            replace_file(self._reason(kept), json.dumps(tree, indent=2).encode())
            bundle.rename(folder / kept)
            sync_folder(folder)
        except OSError as failure:
            raise self.gone(failure) from failure
        return folder / kept

    def take_over(self) -> list[str]:
        """Return the bundles of dead uploaders to the queue, and return their names."""
        self._tidy()
        names: list[str] = []
        for place in self._places():
            descriptor = _locked(place)
            if descriptor is None:
                continue
            try:
                names += self.put_back(place / _CLAIMED)
                shutil.rmtree(place, ignore_errors=True)
            finally:
                os.close(descriptor)
        return names

    def _tidy(self) -> None:
        """Remove files left by processes that were killed while they wrote a bundle."""
        for path in self.path.glob(f"{TEMPORARY}*"):
            with suppress(OSError), path.open("rb") as file:
                # Not new, and not locked: a process that just created a file has no lock yet.
                if time.time() - path.stat().st_mtime > _LEFT and try_lock(file):
                    path.unlink()

    def put_back(self, folder: Path) -> list[str]:
        """Move all bundles in a folder back into the queue, and return their names."""
        with suppress(FileNotFoundError):
            return [self.return_bundle(path, path.name) for path in sorted(folder.iterdir())]
        return []

    def return_bundle(self, bundle: Path, name: str) -> str:
        """Move a bundle back into the queue.

        Args:
            bundle: current path of the bundle.
            name: its former name; it gets another if that is taken.

        Returns:
            Its new name.

        Raises:
            OSError: the bundle cannot be moved.
        """
        while True:
            try:
                rename_new(bundle, self.path / name)
            except FileExistsError:
                name = f"{secrets.token_hex(8)}.tar"
            else:
                return name


class UploaderFolder:
    """The folder of an uploader: its claimed bundles and their contents.

    Attributes:
        path: path of its folder.
        queue: the queue of the folder.
    """

    def __init__(self, queue: QueueFolder) -> None:
        """
        Args:
            queue: the queue to work for.

        Raises:
            QueueGone: the folder cannot be created.
        """
        self.queue = queue
        while True:
            self.path = queue.path / _WORK / secrets.token_hex(8)
            try:
                self.path.mkdir()
                lock = _locked(self.path)
                if lock is None:  # another uploader took it for abandoned
                    continue
                (self.path / _CLAIMED).mkdir()
            except OSError as error:
                raise queue.gone(error) from error
            self._lock = lock
            return

    def claim(self, name: str) -> Path | None:
        """Claim a bundle; return None if another uploader has it, or one of that name is already claimed here.

        Args:
            name: name of the bundle.

        Raises:
            OSError: the bundle cannot be moved.
        """
        try:
            rename_new(self.queue.path / name, self.path / _CLAIMED / name)
        except (FileNotFoundError, FileExistsError):
            return None
        return self.path / _CLAIMED / name

    def give_back(self, bundle: Path) -> str:
        """Move a claimed bundle back into the queue, and return its name."""
        return self.queue.return_bundle(bundle, bundle.name)

    def close(self) -> None:
        """Move all bundles back into the queue and remove the folder."""
        try:
            self.queue.put_back(self.path / _CLAIMED)
            shutil.rmtree(self.path, ignore_errors=True)
        finally:
            os.close(self._lock)


# --- Pieces ----------------------------------------------------------------------------------------------------------


def _shortened(name: str) -> str:
    """Return a name that leaves room for what is put before or behind it: file systems limit the bytes of a name."""
    data = os.fsencode(name)
    if len(data) <= _MAX_NAME_BYTES:
        return name
    digest = hashlib.blake2b(data, digest_size=_DIGEST // 2).hexdigest()  # names that begin alike stay different
    return f"{data[: _MAX_NAME_BYTES - _DIGEST - 1].decode('utf-8', 'ignore')}-{digest}"


def _may_be_bundle(entry: os.DirEntry[str]) -> bool:
    return not entry.name.startswith(".") and not entry.is_dir(follow_symlinks=False)


def _locked(folder: Path) -> int | None:
    """Lock an existing folder; return None if it is locked or gone."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if try_lock(descriptor) and is_same_file(descriptor, folder):
        return descriptor
    os.close(descriptor)
    return None


def rename_new(old: Path, new: Path) -> None:
    """Rename a file without replacing another.

    Args:
        old: current path.
        new: new path, on the same file system.

    Raises:
        FileExistsError: the new path exists.
        OSError: the file cannot be renamed.
    """
    rename = _renameat2()
    if rename is not None:
        if rename(_AT_FOLDER, os.fsencode(old), _AT_FOLDER, os.fsencode(new), _NO_REPLACE) == 0:
            return
        number = ctypes.get_errno()
        if number not in {errno.EINVAL, errno.ENOSYS}:
            raise OSError(number, os.strerror(number), str(old), None, str(new))
    if stat.S_ISREG(old.lstat().st_mode):
        os.link(old, new, follow_symlinks=False)  # briefly it has both names; at worst it is pushed twice
        old.unlink()
    elif os.path.lexists(new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(old), None, str(new))
    else:
        old.rename(new)


@cache
def _renameat2() -> Any:
    """Return the system call that renames without replacing, None if it does not exist."""
    return getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
