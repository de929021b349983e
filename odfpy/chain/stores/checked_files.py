"""Record of files that were hashed before: an unchanged file need not be hashed again before it is read.

Readers rely on the rows of a slice, so its bytes are first compared with the hash in the block. That takes as long as
reading them, so the result is remembered with the file's metadata: inode, size, and the times of the last change of its
content and of its inode. `odf verify` does not use this record, and reads every byte.

The record is an append-only text file with a line per file:

    <name> <inode> <size> <mtime, ns> <ctime, ns>

A truncated line, or one about a file that has changed since, matches nothing.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final

from odfpy.data.multihash import Multihash
from odfpy.errors import HashMismatch, ObjectNotFound, OdfError
from odfpy.files import open_regular

_NEWEST: Final = 1 << 16
"""Bytes at the end of the record that are read first: a pull needs the slices that were added last."""

_MAX_SIZE: Final = 1 << 26
"""Maximum bytes of the record that are read: about half a million lines."""

_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK


class CheckedFiles:
    """Record of the checked files of one store: in memory, and in a file for other processes. Thread-safe."""

    def __init__(self, record: Path | None = None) -> None:
        """
        Args:
            record: the file, which is created when needed; None for a record in memory only.
        """
        self._record = record
        self._lock = Lock()
        self._known: set[bytes] = set()
        self._to_read = [_MAX_SIZE, _NEWEST]

    def check(self, name: Multihash, path: Path) -> None:
        """Compare a file with its hash, unless it has not changed since the last comparison.

        Args:
            name: the expected hash of its bytes.
            path: the file.

        Raises:
            ObjectNotFound: the file does not exist.
            HashMismatch: the bytes have another hash.
            OdfError: the file cannot be read.
        """
        try:
            if self._knows(_line(name, path.stat())):
                return
            with open_regular(path) as stream:
                line = _line(name, os.fstat(stream.fileno()))  # of the opened file
                actual = Multihash.of_stream(stream, name.algorithm)
        except FileNotFoundError:
            raise ObjectNotFound(f"Missing object: {path}") from None
        except OSError as error:
            raise OdfError(f"Cannot read {path}: {error.strerror}") from error
        if actual != name:
            raise HashMismatch(f"Damaged object: {path} has the hash {actual}")
        self._add([line])

    def add(self, name: Multihash, path: Path) -> None:
        """Record a file that was just written, and hashed at the same time."""
        with suppress(OSError):  # if it was removed again, nobody reads it
            self._add([_line(name, path.stat())])

    def update(self, other: CheckedFiles) -> None:
        """Add the record of another store, for files that have been moved here."""
        if other._known:
            self._add(sorted(other._known))

    def _knows(self, line: bytes) -> bool:
        with self._lock:
            while line not in self._known and self._to_read:
                self._read(self._to_read.pop())
            return line in self._known

    def _read(self, size: int) -> None:
        """Read up to `size` last bytes of the record; files whose lines cannot be read are hashed again."""
        if self._record is None:
            return
        with suppress(OSError), open_regular(self._record) as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - size))
            self._known.update(stream.read(size).split(b"\n"))

    def _add(self, lines: Collection[bytes]) -> None:
        with self._lock:
            self._known.update(lines)
            if self._record is not None:
                with suppress(OSError):  # files that cannot be recorded are hashed again
                    _append(self._record, b"".join(line + b"\n" for line in lines))


def _line(name: Multihash, status: os.stat_result) -> bytes:
    parts = (name, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return " ".join(map(str, parts)).encode()


def _append(record: Path, lines: bytes) -> None:
    """Append lines in a single write, which concurrent writes of other processes do not split."""
    try:
        descriptor = os.open(record, _APPEND, 0o666)
    except FileNotFoundError:
        record.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(record, _APPEND, 0o666)
    try:
        os.write(descriptor, lines)
    finally:
        os.close(descriptor)
