"""Changes of a folder: files closed after writing, or moved into it; by inotify(7), if available.

The kernel notifies, so the folder is not scanned while nothing happens. Notifications can be lost (the kernel's queue
is bounded), and other systems have no inotify: so users of this module also scan from time to time.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from typing_extensions import Self

_CLOSE_WRITE: Final = 0x8
_MOVED_TO: Final = 0x80
_DELETE_SELF: Final = 0x400
_MOVE_SELF: Final = 0x800
_UNMOUNT: Final = 0x2000
_Q_OVERFLOW: Final = 0x4000
_ONLYDIR: Final = 0x1000000
_IS_DIRECTORY: Final = 0x40000000
_GONE: Final = _DELETE_SELF | _MOVE_SELF | _UNMOUNT

_EVENT: Final = struct.Struct("iIII")
_BUFFER: Final = 1 << 16


class FolderWatch:
    """A watched folder; a context manager."""

    def __init__(self, folder: Path) -> None:
        """
        Args:
            folder: the folder.

        Raises:
            OSError: it cannot be watched.
        """
        self._wake_reader, self._wake_writer = _pipe()
        self._inotify = _inotify(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in (self._wake_reader, self._wake_writer, self._inotify):
            if descriptor is not None:
                os.close(descriptor)

    @property
    def is_notified(self) -> bool:
        """True if the system reports changes."""
        return self._inotify is not None

    def wake(self) -> None:
        """Wake up `wait`; safe in other threads and signal handlers."""
        with suppress(BlockingIOError):  # enough wake-ups are pending
            os.write(self._wake_writer, b"\0")

    def wait(self, seconds: float) -> list[str] | None:
        """Wait for changes.

        Args:
            seconds: maximum time to wait.

        Returns:
            Names of new files, or None if the folder has to be scanned.

        Raises:
            FileNotFoundError: the folder is gone.
        """
        poll = select.poll()
        for descriptor in (self._wake_reader, self._inotify):
            if descriptor is not None:
                poll.register(descriptor, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(max(0.0, seconds) * 1000)}
        if self._wake_reader in ready:
            with suppress(BlockingIOError):
                os.read(self._wake_reader, _BUFFER)
        return self._news() if self._inotify in ready else []

    def _news(self) -> list[str] | None:
        assert self._inotify is not None  # noqa: S101
        data = os.read(self._inotify, _BUFFER)
        names: list[str] = []
        is_complete = True
        at = 0
        while at < len(data):
            _, mask, _, size = _EVENT.unpack_from(data, at)
            at += _EVENT.size + size
            if mask & _GONE:
                raise FileNotFoundError
            if mask & _Q_OVERFLOW:
                is_complete = False
            elif size and not mask & _IS_DIRECTORY:
                names.append(os.fsdecode(data[at - size : at].rstrip(b"\0")))
        return names if is_complete else None


def _pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    return reader, writer


def _inotify(folder: Path) -> int | None:
    """Watch a folder with inotify; return None if that is impossible."""
    library: Any = ctypes.CDLL(None, use_errno=True)
    begin = getattr(library, "inotify_init1", None)
    if begin is None:  # not Linux
        return None
    descriptor: int = begin(os.O_CLOEXEC | os.O_NONBLOCK)
    if descriptor < 0:  # limited per user, and possibly zero in containers
        return None
    mask = _CLOSE_WRITE | _MOVED_TO | _DELETE_SELF | _MOVE_SELF | _ONLYDIR
    if library.inotify_add_watch(descriptor, os.fsencode(folder), mask) < 0:
        number = ctypes.get_errno()
        os.close(descriptor)
        if number == errno.ENOSPC:  # the user reached the limit of watches
            return None
        raise OSError(number, os.strerror(number), str(folder))
    return descriptor
