"""Files of objects that were hashed before: as long as one has not changed, reading it need not hash it again.

Whoever reads a slice builds on its rows, so the bytes are compared with the hash in the block first. That costs as much
as reading them, so what was compared is remembered by what the file system says of the file: inode, size, time of the
last change of the content, and of the last change of anything. `odf verify` does not ask here, and reads every byte.

The record is a text file of lines that are only added to, one for each file:

    <name> <inode> <size> <mtime, ns> <ctime, ns>

A line that is cut, or about a file that has changed since, fits nothing.
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
"""Bytes at the end of the record that are read first: a pull asks for the slices that came last."""

_MAX_SIZE: Final = 1 << 26
"""Bytes of the record that are ever read: some half a million lines."""

_APPEND: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK


class CheckedFiles:
    """Knowledge of the files of one store: in memory, and in a file for other processes. For all threads."""

    def __init__(self, record: Path | None = None) -> None:
        """
        Args:
            record: the file, made when there is something to write down; None keeps all in memory.
        """
        self._record = record
        self._lock = Lock()
        self._known: set[bytes] = set()
        self._to_read = [_MAX_SIZE, _NEWEST]

    def check(self, name: Multihash, path: Path) -> None:
        """Compare a file with its name, unless that was done since it has changed last.

        Args:
            name: the hash that its bytes must have.
            path: the file.

        Raises:
            ObjectNotFound: it is not there.
            HashMismatch: they have another one.
            OdfError: it cannot be read.
        """
        try:
            if self._knows(_line(name, path.stat())):
                return
            with open_regular(path) as stream:
                line = _line(name, os.fstat(stream.fileno()))  # of what is read, not of what has the name then
                actual = Multihash.of_stream(stream, name.algorithm)
        except FileNotFoundError:
            raise ObjectNotFound(f"Missing object: {path}") from None
        except OSError as error:
            raise OdfError(f"Cannot read {path}: {error.strerror}") from error
        if actual != name:
            raise HashMismatch(f"Damaged object: {path} has the hash {actual}")
        self._add([line])

    def add(self, name: Multihash, path: Path) -> None:
        """Remember a file that was just written, and hashed while it was."""
        with suppress(OSError):  # removed again: then nobody reads it
            self._add([_line(name, path.stat())])

    def update(self, other: CheckedFiles) -> None:
        """Take over what another store knows of files that have been moved here."""
        if other._known:
            self._add(sorted(other._known))

    def _knows(self, line: bytes) -> bool:
        with self._lock:
            while line not in self._known and self._to_read:
                self._read(self._to_read.pop())
            return line in self._known

    def _read(self, size: int) -> None:
        """Take in the last bytes of the record, so many at most; what cannot be read is hashed again."""
        if self._record is None:
            return
        with suppress(OSError), open_regular(self._record) as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - size))
            self._known.update(stream.read(size).split(b"\n"))

    def _add(self, lines: Collection[bytes]) -> None:
        with self._lock:
            self._known.update(lines)
            if self._record is not None:
                with suppress(OSError):  # what cannot be written down is hashed again
                    _append(self._record, b"".join(line + b"\n" for line in lines))


def _line(name: Multihash, status: os.stat_result) -> bytes:
    parts = (name, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return " ".join(map(str, parts)).encode()


def _append(record: Path, lines: bytes) -> None:
    """Add lines in one write, which those of other processes do not tear apart."""
    try:
        descriptor = os.open(record, _APPEND, 0o666)
    except FileNotFoundError:
        record.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(record, _APPEND, 0o666)
    try:
        os.write(descriptor, lines)
    finally:
        os.close(descriptor)
