"""Pending files: fetched data is stored until it is committed, so that it is not fetched twice.

input        the bytes
input.json   their metadata: source, version, number of bytes safely on the disk, whether they are complete

A pending file survives any end of the process: the note is replaced atomically, and only after the bytes that it
describes are on the disk. If the two do not match, the file is ignored. There is one writer, who holds the dataset's
lock.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from odfpy.data.timestamp import Timestamp
from odfpy.errors import InvalidValue
from odfpy.ingest.fetch.version import SourceVersion

_SAFE_EVERY = 64 << 20  # bytes after which they are synced


class PendingFile:
    """The file of a source, as far as it has been received.

    Attributes:
        path: path of the bytes.
        version: the version that the source stated.
        fetched_at: time of the ingest that began the download.
        length: the total size, if the source stated it.
        received: the number of received bytes.
        is_complete: whether the file is complete.
    """

    def __init__(self, folder: Path, source: str) -> None:
        """Load the file in a folder, if it belongs to a source, given by a text that is not stored.

        Nothing on the disk is changed: an unusable file stays until another one replaces it.
        """
        self.path = folder / "input"
        self.version = SourceVersion()
        self.fetched_at = Timestamp(0)
        self.length: int | None = None
        self.received = 0
        self.is_complete = False
        self._note = folder / "input.json"
        self._source = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
        try:
            self._load(json.loads(self._note.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, InvalidValue):
            self.forget()

    @property
    def can_resume(self) -> bool:
        """True if a part has been received whose download can be resumed."""
        return bool(self.received and not self.is_complete and self.version.proof)

    @property
    def is_current(self) -> bool:
        """True if it is complete and recent, and its source cannot report changes."""
        return self.is_complete and not self.version.is_known

    def forget(self) -> None:
        """Ignore the file, and leave it on the disk."""
        self.received, self.is_complete, self.version, self.length = 0, False, SourceVersion(), None

    def clear(self) -> None:
        """Remove the file."""
        self.forget()
        for path in (self._note, self.path):
            with suppress(OSError):  # without its note, the file is ignored
                path.unlink()

    def start(self, version: SourceVersion, length: int | None, now: Timestamp) -> None:
        """Start a new file of a version.

        Args:
            version: the version that begins to arrive.
            length: size in bytes, None if the source does not report it.
            now: the time of this fetch.

        Raises:
            OSError: as for `writing`.
        """
        self.clear()
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.touch(mode=0o600)
        self.version, self.length, self.fetched_at = version, length, now

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Append bytes; appended bytes are stored even after an error.

        Raises:
            OSError: the file cannot be written, for example since the disk is full.
        """
        with self.path.open("r+b") as file:
            file.seek(self.received)
            file.truncate()  # whether bytes after this offset are valid is unknown
            writer = Writer(self, file)
            try:
                yield writer
            finally:
                writer.sync()

    def finish(self) -> None:
        """Mark the file as complete.

        Raises:
            OSError: as for `writing`.
        """
        self.is_complete = True
        self.save()

    def save(self) -> None:
        """Write the metadata file, after the bytes are on the disk."""
        version = self.version
        note = {
            "source": self._source,
            "etag": version.etag,
            "modified": None if version.modified is None else str(version.modified),
            "proof": version.proof,
            "place": version.place,
            "fetchedAt": str(self.fetched_at),
            "length": self.length,
            "received": self.received,
            "isComplete": self.is_complete,
        }
        temporary = self._note.with_suffix(".tmp")
        temporary.write_text(json.dumps(note), encoding="utf-8")
        temporary.replace(self._note)

    def _load(self, note: dict[str, Any]) -> None:
        size = self.path.stat().st_size
        received, is_complete = int(note["received"]), bool(note["isComplete"])
        if note["source"] != self._source or not 0 <= received <= size or (is_complete and size != received):
            raise ValueError("not the expected file, or it was changed")
        etag, modified, proof, place = (
            None if note[key] is None else str(note[key]) for key in ("etag", "modified", "proof", "place")
        )
        self.version = SourceVersion(etag, None if modified is None else Timestamp.parse(modified), proof, place)
        self.fetched_at = Timestamp.parse(str(note["fetchedAt"]))
        self.length = None if note["length"] is None else int(note["length"])
        self.received, self.is_complete = received, is_complete


class Writer:
    """Appends bytes to a pending file."""

    def __init__(self, kept: PendingFile, file: BinaryIO) -> None:
        self._kept = kept
        self._file = file
        self._unsafe = 0

    def write(self, block: bytes) -> None:
        """Append bytes."""
        self._file.write(block)
        self._kept.received += len(block)
        self._unsafe += len(block)
        if self._unsafe >= _SAFE_EVERY:
            self.sync()

    def sync(self) -> None:
        """Sync appended bytes to the disk, and update the metadata."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._unsafe = 0
        self._kept.save()
