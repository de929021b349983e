"""The number and size of files in a queue, and whether they are within its limits.

Scanning a queue of a hundred thousand files takes a second. So the result is cached in the folder, for twenty times as
long as counting took: a queue may slightly exceed its limits. A short queue is counted each time.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odfpy.errors import OdfError
from odfpy.files import replaced_atomically

_REMEMBERED: Final = ".usage"
_SHORT: Final = 1000
_TIMES: Final = 20
_MAX_WAIT: Final = 30.0


class QueueFull(OdfError, code="E865"):
    """A queue accepts no more files: it has too many, or the disk has too little space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """The limits of a queue.

    Attributes:
        files: maximum number of waiting files.
        size: maximum total size in bytes.
        free: bytes that must stay free on the disk.
    """

    files: int = 1_000_000
    size: int = 100 * 1024**3
    free: int = 1024**3


@dataclass(frozen=True, slots=True)
class QueueUsage:
    """The amount of data in a queue.

    Attributes:
        files: number of waiting and claimed files.
        size: total size in bytes.
    """

    files: int
    size: int


def count_usage(folders: list[Path]) -> QueueUsage:
    """Count files and bytes in folders.

    Args:
        folders: the folders; missing ones are ignored.
    """
    sizes = [size for folder in folders for size in _sizes(folder)]
    return QueueUsage(len(sizes), sum(sizes))


def require_room(queue: Path, folders: list[Path], limits: QueueLimits, size: int) -> None:
    """Check that a queue accepts another file.

    Args:
        queue: folder of the queue.
        folders: folders of its files.
        limits: limits of the queue.
        size: size of the file in bytes.

    Raises:
        QueueFull: the queue is full.
        OSError: the folder cannot be read.
    """
    used = _remembered(queue) or _counted(queue, folders)
    status = os.statvfs(queue)
    free = status.f_bavail * status.f_frsize
    reasons = []
    if used.files >= limits.files:
        reasons.append(f"it has {used.files} files already, {limits.files} are allowed (archive.queueFiles)")
    if used.size + size > limits.size:
        reasons.append(f"it would have {used.size + size} bytes, {limits.size} are allowed (archive.queueBytes)")
    if free - size < limits.free:
        reasons.append(f"{free} bytes are free on its disk, {limits.free} must stay free (archive.queueFree)")
    if reasons:
        raise QueueFull(
            f"The queue {queue} is full: {'; '.join(reasons)}",
            hint="Check that `odf archive uploader` is running and reaches the archive, then try again.",
        )


def _counted(queue: Path, folders: list[Path]) -> QueueUsage:
    begun = time.monotonic()
    usage = count_usage(folders)
    tree = {"files": usage.files, "size": usage.size, "seconds": time.monotonic() - begun}
    if usage.files >= _SHORT:
        with suppress(OSError), replaced_atomically(queue / _REMEMBERED) as aside:
            aside.write_text(json.dumps(tree))
    return usage


def _remembered(queue: Path) -> QueueUsage | None:
    """Return the cached usage; None if it is too old."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        age = time.time() - (queue / _REMEMBERED).stat().st_mtime
        tree = json.loads((queue / _REMEMBERED).read_bytes())
        if 0 <= age < min(_MAX_WAIT, _TIMES * tree["seconds"]):
            return QueueUsage(int(tree["files"]), int(tree["size"]))
    return None


def _sizes(folder: Path) -> Iterator[int]:
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                with suppress(FileNotFoundError):  # it was just claimed
                    yield entry.stat(follow_symlinks=False).st_size
