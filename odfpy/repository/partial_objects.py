"""Resumable downloads of large objects: received bytes are stored beside the objects until an object is complete.

    data/.part-<hash>    the received first bytes of an object

Such a file never counts as an object. Its content is hashed again when the download is resumed, which detects damage.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from odfpy.chain.stores.object_store import CHUNK, LocalObjectStore, ObjectStore, ObjectTooLarge
from odfpy.data.multihash import Hasher, Multihash
from odfpy.errors import DatasetLocked, HashMismatch, OdfError
from odfpy.files import is_same_file, make_folder, try_lock

PART: Final = ".part-"
"""Prefix of the names of files with partial objects."""

LARGE: Final = 8 << 20
"""Minimum size in bytes of objects that are resumable."""

KEPT: Final = 7 * 24 * 3600
"""Seconds after which an abandoned partial object is garbage."""

OpenAt = Callable[[int], AbstractContextManager[BinaryIO]]
"""Opens an object at an offset."""


class PartialObject:
    """An object that is being received into a folder of objects, by one writer at a time."""

    def __init__(self, store: LocalObjectStore, name: Multihash) -> None:
        self._store = store
        self._name = name
        self.path = store.folder / f"{PART}{name}"

    @property
    def arrived(self) -> int:
        """Return the number of bytes received so far."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def receive(self, open_at: OpenAt, size: int | None = None) -> int:
        """Receive the rest of the object, and publish it. Received bytes are retained if the transfer is interrupted.

        Args:
            open_at: opens the object at an offset; called again with 0 if the existing part has wrong content.
            size: maximum size, None for no limit.

        Returns:
            The size of the object.

        Raises:
            HashMismatch, ObjectTooLarge: the content is wrong; it was discarded.
            DatasetLocked: another process is receiving the object.
            OdfError: the object is incomplete.
        """
        with self._writing() as file:
            begin = os.fstat(file.fileno()).st_size
            if begin > 0 and (size is None or begin <= size):
                with suppress(HashMismatch, ObjectTooLarge):
                    return self._finish(file, open_at, begin, size)
                # The part of an earlier attempt may be wrong: start again at the first byte.
            with self._nothing_wrong():
                return self._finish(file, open_at, 0, size)

    def extend(self, stream: BinaryIO, begin: int, size: int) -> bool:
        """Append the bytes of a stream; return whether the object is now complete and published.

        Args:
            stream: stream of the bytes.
            begin: offset of the first byte; 0 discards the existing part.
            size: size of the object.

        Raises:
            HashMismatch, ObjectTooLarge: the content is wrong; it was discarded.
            DatasetLocked: another process is receiving the object.
            PartElsewhere: the existing part ends at another offset.
        """
        with self._writing() as file:
            if begin not in (0, os.fstat(file.fileno()).st_size):
                raise PartElsewhere(f"{self.path.name} does not end at byte {begin}")
            with self._nothing_wrong():
                hasher = self._hashed(file, begin)
                count = self._append(file, stream, hasher, begin, size)
                if count == size:
                    self._place(file, hasher, count)
                return count == size

    def _finish(self, file: BinaryIO, open_at: OpenAt, begin: int, size: int | None) -> int:
        hasher = self._hashed(file, begin)
        count = begin
        if size is None or begin < size:  # otherwise it is complete, and servers reject a range beyond the end
            with open_at(begin) as stream:
                count = self._append(file, stream, hasher, begin, size)
        self._place(file, hasher, count)
        return count

    def _hashed(self, file: BinaryIO, count: int) -> Hasher:
        """Truncate the file to a number of bytes, and return their hash."""
        file.truncate(count)
        file.seek(0)
        hasher = self._name.algorithm.hasher()
        while chunk := file.read(CHUNK):
            hasher.update(chunk)
        return hasher

    def _append(self, file: BinaryIO, stream: BinaryIO, hasher: Hasher, count: int, size: int | None) -> int:
        while chunk := stream.read(CHUNK):
            count += len(chunk)
            if size is not None and count > size:
                raise ObjectTooLarge(f"Object {self._name}: more than the announced {size} bytes")
            hasher.update(chunk)
            file.write(chunk)
        file.flush()
        return count

    def _place(self, file: BinaryIO, hasher: Hasher, count: int) -> None:
        found = Multihash(self._name.code, hasher.digest())
        if found != self._name:
            raise HashMismatch(
                f"Object {self._name} of {self._store.folder}: the {count} bytes received have the hash {found}"
            )
        file.flush()
        self._store.insert_file(self.path, self._name)

    @contextmanager
    def _nothing_wrong(self) -> Iterator[None]:
        """Discard the partial object if its content turns out to be wrong in the block."""
        try:
            yield
        except (HashMismatch, ObjectTooLarge):
            self.path.unlink(missing_ok=True)
            raise

    @contextmanager
    def _writing(self) -> Iterator[BinaryIO]:
        try:
            make_folder(self._store.folder)
            with self._opened() as file:
                yield file
        except OSError as error:
            raise OdfError(f"Cannot write {self.path}: {error.strerror or error}") from error

    def _opened(self) -> BinaryIO:
        """Open and lock the file; retry if the path no longer refers to the locked file."""
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            file = os.fdopen(descriptor, "r+b")
            if not try_lock(file):
                file.close()
                raise DatasetLocked(
                    f"Another process is receiving the object {self._name}", hint="Run the command again in a moment."
                )
            if is_same_file(file, self.path):
                return file
            file.close()  # another process has completed it in the meantime


class PartElsewhere(Exception):
    """A partial object does not end at the offset of the continuation."""


def stale_parts(folder: Path) -> Iterator[Path]:
    """Yield the partial objects in a folder that have not been resumed for a long time."""
    for path in sorted(folder.glob(f"{PART}*")):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime >= KEPT:
                yield path


def upload_object(store: ObjectStore, name: Multihash, size: int, stream: BinaryIO, begin: int) -> None:
    """Receive an object, or the rest of it, from a client. Large partial objects are retained after an interruption.

    Args:
        store: store for the object.
        name: hash of the object.
        size: size of the object.
        stream: stream of the bytes.
        begin: offset of the first byte.

    Raises:
        HashMismatch, ObjectTooLarge: the content is wrong; it was discarded.
        PartElsewhere: the existing part ends at another offset.
        OdfError: the object cannot be written.
    """
    if isinstance(store, LocalObjectStore) and (begin or size >= LARGE):
        try:
            is_whole = PartialObject(store, name).extend(stream, begin, size)
        except DatasetLocked:
            # Concurrent uploads of an object are independent, unless this one resumes a part.
            if begin:
                raise PartElsewhere(f"{name} is being written") from None
        else:
            if not is_whole:
                raise HashMismatch(f"Object {name}: fewer than its {size} bytes have arrived")
            return
    store.insert_stream(stream, name, size=size)
