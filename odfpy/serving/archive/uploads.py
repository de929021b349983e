"""Uploads into an archive: files that are in no record yet.

    <object>.part       the received part of a file; its size is the offset to resume at
    <object>            a complete file, verified against its name and flushed to disk

They are named by their expected hash: an upload that was interrupted by the client or by a restart is resumed, and two
clients that send the same file upload it once. A record moves the file into the dataset. Files that no record refers to
are removed after a day.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import BinaryIO, Final, Protocol, TypeAlias

from odfpy.archive.errors import CannotCopy, WrongContent
from odfpy.archive.files import CHUNK, wait_for, write_all
from odfpy.data.multihash import Hasher, Multihash
from odfpy.errors import IntegrityError, InvalidValue
from odfpy.files import FULL, is_same_file, make_folder, move_files, sync_folder, try_lock

LIFETIME: Final = 24 * 3600.0
"""Seconds for which an abandoned partial file is kept."""

_SWEEP_EVERY: Final = 600.0
_PART: Final = ".part"
_MAX_KNOWN: Final = 10_000
_MAX_RUNNING: Final = 256


_State: TypeAlias = tuple[int, int, int]
"""State of a partial file: its inode, size, and modification time. Another process may have continued it."""


class UploadTooLarge(Exception):
    """An upload exceeds the maximum size of a file."""


class UploadBusy(Exception):
    """Another client is uploading the same file."""


class WrongOffset(Exception):
    """Bytes would leave a gap, or overlap existing ones."""


class Source(Protocol):
    """A source of bytes: pieces of any size, empty at the end."""

    def read(self, size: int = -1, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Progressed:
    """The state of an upload.

    Attributes:
        offset: number of bytes received.
        is_complete: whether the file is complete.
    """

    offset: int
    is_complete: bool


def object_name(text: str) -> Multihash | None:
    """Parse a hash, None if it is invalid, or of a kind that bytes cannot be verified with."""
    try:
        name = Multihash.parse(text)
        has_hasher = name.algorithm.new is not None
    except (InvalidValue, IntegrityError):
        return None
    return name if has_hasher else None


class Uploads:
    """The uploads into one archive; safe for threads and processes."""

    def __init__(self, folder: Path, most: int) -> None:
        """
        Args:
            folder: their folder, on the file system of the dataset.
            most: maximum bytes of one upload.
        """
        self._folder = folder
        self.most = most
        self._lock = threading.Lock()
        self._running: OrderedDict[Multihash, tuple[_State, Hasher, Hasher]] = OrderedDict()
        self._hashes: OrderedDict[Multihash, str] = OrderedDict()
        self._swept = 0.0

    def path(self, name: Multihash) -> Path:
        """Return the path of a complete file."""
        return self._folder / str(name)

    def has(self, name: Multihash) -> bool:
        """Return whether a file is complete; prolongs its retention."""
        try:
            os.utime(self.path(name))
        except FileNotFoundError:
            return False
        return True

    def progress(self, name: Multihash) -> Progressed:
        """Return the state of an upload."""
        for path, is_complete in ((self.path(name), True), (self._part(name), False)):
            with suppress(FileNotFoundError):
                return Progressed(path.stat().st_size, is_complete)
        return Progressed(0, is_complete=False)

    def append(self, name: Multihash, offset: int, source: Source, *, is_last: bool) -> Progressed:
        """Append bytes to an upload; received bytes are kept even if the request fails later.

        Args:
            name: the hash of the complete file.
            offset: offset of the first byte; must equal the number of bytes received so far.
            source: source of the bytes.
            is_last: whether the file ends with them: it is then verified.

        Raises:
            UploadBusy: another client is uploading it.
            WrongOffset: another number of bytes was received so far.
            UploadTooLarge: the file exceeds the limit; it is discarded.
            WrongContent: the complete file has another hash; it is discarded.
            CannotCopy: the disk is full.
        """
        self._sweep_now_and_then()
        with self._writing(name) as file:
            if self.path(name).exists():
                return self.progress(name)
            size = os.fstat(file.fileno()).st_size
            if size != offset:
                raise WrongOffset(f"{size} bytes of {name} are here, {offset} were expected")
            long, short = self._hashers(name, file, size)
            count = self._receive(name, file, source, (long, short), size)
            if not is_last:
                self._remember(name, file, long, short)
                return Progressed(count, is_complete=False)
            self._finish(name, file, long.digest())
            self._know(name, short.digest().hex())
            return Progressed(count, is_complete=True)

    def require_room(self, count: int) -> None:
        """Check, before any bytes are received, that the disk has room for them.

        Raises:
            CannotCopy: it has not.
        """
        try:
            make_folder(self._folder)
            free = shutil.disk_usage(self._folder).free
        except OSError as error:
            raise _cannot_write(error) from error
        if free < count:
            raise CannotCopy(f"The server has no disk space for the file: it has {count} bytes, {free} are free")

    def drop_part(self, name: Multihash) -> None:
        """Discard the received part of a file: the client has to start again.

        Raises:
            UploadBusy: a client is uploading it.
        """
        if self._part(name).exists():
            with self._writing(name) as file:
                file.truncate(0)

    def insert_all(self, files: Mapping[Multihash, Path]) -> None:
        """Store small files that were just written and verified; they are flushed together.

        Raises:
            CannotCopy: the disk is full.
        """
        self._sweep_now_and_then()
        try:
            make_folder(self._folder)
            move_files((path, self.path(name)) for name, path in files.items())
        except OSError as error:
            raise _cannot_write(error) from error

    def hash_of(self, name: Multihash, open_it: Callable[[], BinaryIO]) -> str:
        """Return the BLAKE2b hash of a file, computed once while the server runs."""
        with self._lock:
            known = self._hashes.get(name)
        if known is None:
            hasher = hashlib.blake2b(digest_size=16)
            with open_it() as stream:
                while chunk := stream.read(CHUNK):
                    hasher.update(chunk)
            known = hasher.hexdigest()
            self._know(name, known)
        return known

    def sweep(self, now: float | None = None) -> None:
        """Remove uploads that were not continued for a day.

        Args:
            now: the time in seconds since the epoch.
        """
        self._swept = time.monotonic()
        deadline = (time.time() if now is None else now) - LIFETIME
        for path in self._all():
            with suppress(OSError):
                if path.stat().st_mtime < deadline:
                    path.unlink()

    # --- Pieces ---

    def _all(self) -> Iterable[Path]:
        try:
            return list(self._folder.iterdir())
        except FileNotFoundError:
            return []

    def _sweep_now_and_then(self) -> None:
        if time.monotonic() - self._swept > _SWEEP_EVERY:
            self.sweep()

    def _part(self, name: Multihash) -> Path:
        return self._folder / f"{name}{_PART}"

    @contextmanager
    def _writing(self, name: Multihash) -> Iterator[FileIO]:
        """Open the part of a file exclusively, for reading and writing."""
        part = self._part(name)
        while True:
            try:
                make_folder(self._folder)
                descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            except OSError as error:
                raise _cannot_write(error) from error
            with os.fdopen(descriptor, "r+b", buffering=0) as file:
                if not try_lock(file):
                    raise UploadBusy(f"{name} is being sent by another client")
                if not is_same_file(file, part):
                    continue  # the previous owner has completed or discarded it
                try:
                    yield file
                finally:
                    if os.fstat(file.fileno()).st_size == 0 and is_same_file(file, part):
                        part.unlink()  # nothing was received
                return

    def _hashers(self, name: Multihash, file: FileIO, size: int) -> tuple[Hasher, Hasher]:
        """Return hashers over the received bytes: those of the previous request, or computed anew."""
        with self._lock:
            known = self._running.pop(name, None)
        if known is not None and known[0] == _state_of(file):
            file.seek(size)
            return known[1], known[2]
        long, short = name.algorithm.hasher(), hashlib.blake2b(digest_size=16)
        file.seek(0)
        while chunk := file.read(CHUNK):
            long.update(chunk)
            short.update(chunk)
        return long, short

    def _receive(
        self, name: Multihash, file: FileIO, source: Source, hashers: tuple[Hasher, Hasher], count: int
    ) -> int:
        """Write what is received; returns the total size. Each piece is hashed while the next one is received."""
        waiting: list[Future[object]] = []
        with ThreadPoolExecutor(len(hashers), "odf-archive") as pool:
            while True:
                try:
                    chunk = source.read()
                except BaseException:
                    wait_for(waiting)
                    self._remember(name, file, *hashers)
                    raise
                wait_for(waiting)
                if not chunk:
                    return count
                count += len(chunk)
                if count > self.most:
                    self._part(name).unlink()
                    raise UploadTooLarge(f"More than the {self.most} bytes come that one file may have")
                try:
                    write_all(file, chunk)
                except OSError as error:
                    if error.errno in FULL:  # a partial upload would keep the disk full for all others
                        self._part(name).unlink()
                    raise _cannot_write(error) from error
                waiting = [pool.submit(hasher.update, chunk) for hasher in hashers]

    def _finish(self, name: Multihash, file: FileIO, digest: bytes) -> None:
        """Rename a complete file to its final name."""
        actual = Multihash(name.code, digest)
        if actual != name:
            self._part(name).unlink()
            raise WrongContent(f"These are not the bytes of {name}: they have the hash {actual}")
        try:
            # Renamed after the content is flushed: the name proves that the bytes were verified, even after a power
            # failure.
            os.fsync(file.fileno())
            self._part(name).rename(self.path(name))
            sync_folder(self._folder)
        except OSError as error:
            raise _cannot_write(error) from error

    def _remember(self, name: Multihash, file: FileIO, long: Hasher, short: Hasher) -> None:
        with self._lock:
            self._running[name] = (_state_of(file), long, short)
            if len(self._running) > _MAX_RUNNING:
                self._running.popitem(last=False)

    def _know(self, name: Multihash, known: str) -> None:
        with self._lock:
            self._hashes[name] = known
            if len(self._hashes) > _MAX_KNOWN:
                self._hashes.popitem(last=False)


def _state_of(file: FileIO) -> _State:
    status = os.fstat(file.fileno())
    return status.st_ino, status.st_size, status.st_mtime_ns


def _cannot_write(error: OSError) -> CannotCopy:
    if error.errno in FULL:
        return CannotCopy("The server has no disk space for the file; nothing of it was kept")
    return CannotCopy(f"The server cannot write the file: {error.strerror}")
