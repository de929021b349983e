"""The lock of the active scheduler, for which others wait. The kernel releases it when the process ends."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final

from odfpy.coordinator.schedules.file import schedule_path
from odfpy.coordinator.storage.workspace_folder import WorkspaceFolder
from odfpy.errors import OdfError
from odfpy.files import make_folder, try_lock

_MAX_LENGTH: Final = 200


class SchedulerLock:
    """The lock of a workspace's scheduler."""

    def __init__(self, folder: Path) -> None:
        """
        Args:
            folder: the folder `automation` of the workspace.
        """
        self._path = folder / "scheduler.lock"
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Try to take the lock, and return whether it was acquired.

        Raises:
            OdfError: the lock file cannot be used.
        """
        if self._descriptor is not None:
            return True
        try:
            make_folder(self._path.parent)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise OdfError(f"Cannot lock {self._path}: {error.strerror}") from error
        if not try_lock(descriptor):
            os.close(descriptor)
            return False
        with suppress(OSError):  # for example a full disk; the content is only informative
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        self._descriptor = descriptor
        return True

    def free(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None

    @property
    def holder(self) -> str | None:
        """Describe the active scheduler; None if there is none."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            if try_lock(descriptor, shared=True):
                return None
            return os.pread(descriptor, _MAX_LENGTH, 0).decode("utf-8", "replace").strip() or "another process"
        finally:
            os.close(descriptor)


def has_schedules(storage: WorkspaceFolder) -> bool:
    """Return whether any dataset of a workspace has a schedule.

    Args:
        storage: the workspace.
    """
    return any(schedule_path(folder).exists() for folder in storage.entries())


def nothing_runs(storage: WorkspaceFolder) -> bool:
    """Return whether a workspace has schedules, but no active scheduler.

    Args:
        storage: the workspace.
    """
    return has_schedules(storage) and SchedulerLock(storage.odf / "automation").holder is None
