"""A file for Arrow's writers that is hashed and counted as it is written."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from odfpy.stages import stage


class HashingFile:
    """A file that is hashed and counted as it is written.

    Attributes:
        hasher: SHA3-256 of the bytes written so far.
        size: number of bytes written so far.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._discarding = False
        self.hasher = hashlib.sha3_256()
        self.size = 0

    @property
    def closed(self) -> bool:
        """True if nothing can be written any more; Arrow reads it."""
        return self._file.closed and not self._discarding

    def write(self, data: bytes) -> int:
        """Append bytes."""
        if not self._discarding:
            with stage("physical hash"):
                self.hasher.update(data)
            self._file.write(data)
            self.size += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: Arrow calls it, but `sync_and_close` writes everything."""

    def tell(self) -> int:
        """Return the position."""
        return self.size

    def discard(self) -> None:
        """Ignore all further writes, and close the file."""
        self._discarding = True
        with contextlib.suppress(OSError):  # a full disk cannot store buffered bytes
            self._file.close()

    def sync_and_close(self) -> None:
        """Flush all bytes to the disk, and close the file."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def finish(self) -> None:
        """Close the file without flushing it to the disk: callers with several files flush them together."""
        self._file.close()

    def close(self) -> None:
        """Do nothing: Arrow calls it at the end, but `sync_and_close` or `discard` close the file."""
