"""One writer per dataset. A lock belongs to a process and ends with it, so there are no stale ones to clean up."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odfpy.errors import DatasetLocked, OdfError
from odfpy.files import FULL
from odfpy.stages import stage

_LOOK = 0.2
"""Seconds between two tries to get a lock that another process holds."""


@contextmanager
def writer_lock(path: Path, what: str, patience: float = 0.0) -> Iterator[bool]:
    """Hold the lock of a dataset, or of the workspace's list of datasets.

    Args:
        path: the lock's file; it says who holds the lock.
        what: what is locked, for the message.
        patience: seconds to wait for another process that holds it.

    Yields:
        Whether the last holder may have left things half done: it was killed, or the machine went down.

    Raises:
        DatasetLocked: another process holds it.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise _not_lockable(path, what, error) from error
    try:
        with stage("lock"):
            _acquire(descriptor, what, patience)
        last = os.fstat(descriptor)
        # A holder empties the file when it lets go, so text in it is that of one who was killed. After a power loss the
        # text may be lost as well; then the file is older than the start of the machine.
        was_abandoned = last.st_size > 0 or last.st_mtime < time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        owner = f"pid {os.getpid()}: {' '.join(sys.argv)[:150]}\n".encode("utf-8", "replace")
        try:
            os.pwrite(descriptor, owner, 0)  # over what the last holder may have left, which is a sign of its own
            os.ftruncate(descriptor, len(owner))
        except OSError as error:
            if error.errno not in FULL:
                raise _not_lockable(path, what, error) from error
            os.ftruncate(descriptor, 1)  # a hole takes no room: whoever wants to make room must be able to
        try:
            yield was_abandoned
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, what: str, patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            # The kernel lets the lock go with the process. A lock that is a file with a process id would outlive a
            # crash, and another process may get the same id.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            remaining = deadline - time.monotonic()
        else:
            return
        if remaining <= 0:
            holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip("\0\n")
            raise DatasetLocked(
                f"{what} is being written to by another process ({holder or 'unknown'})",
                hint="Run the command again when it has finished, or with `--wait 5m`. Nothing was changed.",
            )
        # Many writers may wait, so each tries again and again: a lock that blocks has no time limit.
        time.sleep(min(_LOOK, remaining))


def _not_lockable(path: Path, what: str, error: OSError) -> OdfError:
    return OdfError(
        f"{what} cannot be locked: {path}: {error.strerror}",
        hint="Check who may write to the workspace, and whether there is room on the disk.",
    )
