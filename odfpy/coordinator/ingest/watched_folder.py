"""Rules of `odf ingest --watch`: which files of a folder are new and complete.

A file is identified by its name, size and modification time. It is complete if these have not changed for a while, and,
as far as the system can detect, no process has it open for writing. Hidden files, and files with typical names of
unfinished files, are ignored.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from odfpy.chain.events import SourceState
from odfpy.data.timestamp import Timestamp
from odfpy.errors import IngestError, InvalidValue, OdfError

STATE_KIND = "odfpy/watched-file"
"""Kind of the source state with the last ingested file."""

_UNFINISHED = (".tmp", ".temp", ".part", ".partial", ".filepart", ".crdownload", ".download", ".swp", "~")


@dataclass(frozen=True, slots=True, order=True)
class FileStamp:
    """A file at some time, identified by name, size and modification time."""

    name: str
    size: int
    modified: Timestamp

    @property
    def shown(self) -> str:
        """Return the name as text, with escapes for bytes that are not valid UTF-8."""
        return self.name.encode(errors="backslashreplace").decode()

    def as_state(self, source_name: str) -> SourceState:
        """Return the source state that the chain records with the rows of the file.

        Raises:
            IngestError: the name is not valid text.
        """
        if self.shown != self.name:
            raise IngestError(f"File name {self.name!a} is not UTF-8", hint="Rename the file.")
        return SourceState(source_name, STATE_KIND, f"{self.name} {self.modified} {self.size}")

    @classmethod
    def of_state(cls, state: SourceState) -> FileStamp | None:
        """Return the file of a source state, None for states of another kind."""
        if state.kind != STATE_KIND:
            return None
        try:
            name, modified, size = state.value.rsplit(" ", 2)
            return cls(name, int(size), Timestamp.parse(modified))
        except (ValueError, InvalidValue):
            return None


class WatchedFolder:
    """The known files of a folder, and their states.

    Attributes:
        settle: seconds for which a file must not change.
    """

    def __init__(self, settle: float, taken_in: Iterable[FileStamp] = ()) -> None:
        self.settle = settle
        self._taken_in: dict[str, set[FileStamp]] = {}
        self._refused: dict[str, FileStamp] = {}
        self._since: dict[FileStamp, float] = {}
        for stamp in taken_in:
            self.mark_ingested(stamp)

    def ready(self, files: Iterable[FileStamp], now: float) -> list[FileStamp]:
        """Return new files that have not changed for long enough, in the order of their names.

        Args:
            files: all files in the folder.
            now: seconds by a monotonic clock.
        """
        new = [stamp for stamp in sorted(files) if self._is_new(stamp)]
        self._since = {stamp: self._since.get(stamp, now) for stamp in new}
        return [stamp for stamp in new if stamp in self._since and now - self._since[stamp] >= self.settle]

    def lacks(self, files: Iterable[FileStamp]) -> bool:
        """Return whether any of the files has not been ingested, for any reason."""
        return any(stamp not in self._taken_in.get(stamp.name, ()) for stamp in files)

    def was_ingested_before(self, stamp: FileStamp) -> bool:
        """Return whether a file of this name has been ingested, possibly with other content."""
        return stamp.name in self._taken_in

    def mark_ingested(self, stamp: FileStamp) -> None:
        """Record that a file has been ingested."""
        self._taken_in.setdefault(stamp.name, set()).add(stamp)

    def refuse(self, stamp: FileStamp) -> None:
        """Ignore a file until its size or modification time changes."""
        self._refused[stamp.name] = stamp

    def postpone(self, stamp: FileStamp, until: float) -> None:
        """Ignore a file until a time of the monotonic clock."""
        self._since[stamp] = until - self.settle

    def _is_new(self, stamp: FileStamp) -> bool:
        return stamp not in self._taken_in.get(stamp.name, ()) and self._refused.get(stamp.name) != stamp


def files_in(folder: Path, pattern: str = "*") -> Iterator[FileStamp]:
    """Yield the files of a folder that match a pattern; subfolders are ignored.

    Raises:
        OdfError: the folder cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(".") or entry.name.lower().endswith(_UNFINISHED):
                    continue
                if fnmatchcase(entry.name, pattern) and (stamp := _stamp(entry)) is not None:
                    yield stamp
    except OSError as error:
        raise OdfError(f"Cannot read the folder {folder}: {error.strerror}", hint="Check that it exists.") from error


def _stamp(entry: os.DirEntry[str]) -> FileStamp | None:
    try:
        if not entry.is_file():
            return None
        status = entry.stat()
    except FileNotFoundError:  # gone in the meantime
        return None
    return FileStamp(entry.name, status.st_size, Timestamp.nearest(status.st_mtime_ns))


def is_being_written(path: Path) -> bool:
    """Return whether a process has a file open for writing; False if the system cannot detect it.

    Linux grants a read lease only while there is no writer; leases work on local disks, for the file's owner.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # sent if a writer opens it; harmless
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(descriptor)
    return False
