"""A file that is hashed and counted as it is written, for writers of Arrow."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from odfpy.stages import stage


class HashingFile:
    """A file that is hashed and counted as it is written.

    Attributes:
        hasher: SHA3-256 of the bytes so far.
        size: how many there are.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._discarding = False
        self.hasher = hashlib.sha3_256()
        self.size = 0

    @property
    def closed(self) -> bool:
        """True if nothing can be written any more; asked by Arrow."""
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
        """Take and drop whatever still comes."""
        self._discarding = True
        with contextlib.suppress(OSError):  # a full disk cannot take what is still buffered
            self._file.close()

    def sync_and_close(self) -> None:
        """Make sure that all bytes are on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def finish(self) -> None:
        """Write all bytes, which whoever has more files flushes to the disk together."""
        self._file.close()

    def close(self) -> None:
        """Do nothing: Arrow calls it at its end, but `sync_and_close` or `discard` close the file."""
