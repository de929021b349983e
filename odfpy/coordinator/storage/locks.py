"""Locks: one writer per dataset. A lock belongs to a process and ends with it, so there are no stale locks.

In a server, a push does not hold the writer's lock during uploads, which may take hours. It only holds the push lock,
shared with other pushes. Garbage collection holds the push lock exclusively, since uploaded objects are in no chain
until the push ends.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odfpy.errors import DatasetLocked, OdfError
from odfpy.files import FULL, try_lock
from odfpy.stages import stage

_LOOK = 0.2
"""Seconds between two attempts to acquire a lock."""

_PATIENCE_OF_PUSHES = 30.0
"""Maximum seconds for which a push waits for garbage collection."""


@contextmanager
def writer_lock(path: Path, what: str, patience: float = 0.0) -> Iterator[bool]:
    """Hold the writer's lock of a dataset, or of the workspace's list of datasets, during the block.

    Args:
        path: the lock file, which contains the name of the holder.
        what: name of the locked object, for messages.
        patience: maximum seconds to wait for another process that holds the lock.

    Yields:
        True if the last holder may have left unfinished work, since the process was killed or the machine crashed.

    Raises:
        DatasetLocked: another process holds the lock.
    """
    descriptor = _opened(path, what)
    try:
        with stage("lock"):
            if not _acquire(descriptor, patience):
                holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip("\0\n")
                raise DatasetLocked(
                    f"{what} is being written to by another process ({holder or 'unknown'})",
                    hint="Run the command again when it has finished, or with `--wait 5m`. Nothing was changed.",
                )
        last = os.fstat(descriptor)
        # A holder empties the file when it releases the lock, so a text in it is from a killed holder. A power loss may
        # also lose the text; then the file is older than the last boot.
        was_abandoned = last.st_size > 0 or last.st_mtime < time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        owner = f"pid {os.getpid()}: {' '.join(sys.argv)[:150]}\n".encode("utf-8", "replace")
        try:
            os.pwrite(descriptor, owner, 0)  # overwrites the name of the last holder, which is evidence until then
            os.ftruncate(descriptor, len(owner))
        except OSError as error:
            if error.errno not in FULL:
                raise _not_lockable(path, what, error) from error
            os.ftruncate(descriptor, 1)  # a hole takes no space: cleaning up must be possible on a full disk
        try:
            yield was_abandoned
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


@contextmanager
def push_lock(path: Path, what: str) -> Iterator[None]:
    """Hold the push lock shared during the block, so that garbage collection does not remove unreferenced new objects.

    Args:
        path: path of the writer's lock; the push lock is beside it.
        what: name of the dataset, for messages.

    Raises:
        DatasetLocked: garbage collection is running, and did not end in time.
    """
    with _pushes(path, what, _PATIENCE_OF_PUSHES, "`odf gc` is running", shared=True):
        yield


@contextmanager
def no_pushes(path: Path, what: str) -> Iterator[None]:
    """Hold the push lock exclusively during the block.

    Args:
        path: path of the writer's lock; the push lock is beside it.
        what: name of the dataset, for messages.

    Raises:
        DatasetLocked: a push is running.
    """
    with _pushes(path, what, 0.0, "a push to it is running", shared=False):
        yield


@contextmanager
def _pushes(path: Path, what: str, patience: float, why: str, *, shared: bool) -> Iterator[None]:
    descriptor = _opened(path.with_name(f"{path.name}.pushes"), what)
    try:
        if not _acquire(descriptor, patience, shared=shared):
            raise DatasetLocked(f"{what} is in use: {why}", hint="Run the command again later. Nothing was changed.")
        yield
    finally:
        os.close(descriptor)


def _opened(path: Path, what: str) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise _not_lockable(path, what, error) from error


def _acquire(descriptor: int, patience: float, *, shared: bool = False) -> bool:
    """Acquire a lock; return whether it was acquired in time."""
    deadline = time.monotonic() + patience
    while not try_lock(descriptor, shared=shared):
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return False
        # Poll, since a blocking lock has no time limit.
        time.sleep(min(_LOOK, remaining))
    return True


def _not_lockable(path: Path, what: str, error: OSError) -> OdfError:
    return OdfError(
        f"{what} cannot be locked: {path}: {error.strerror}",
        hint="Check permissions and free space of the workspace.",
    )
