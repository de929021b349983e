"""Large objects that come in pieces over several tries: what has arrived is kept beside the objects until it is whole.

    data/.part-<hash>    the first bytes of an object, as far as they have come

Nobody takes such a file for an object. What it holds is hashed again when the rest comes, so that nothing wrong stays.
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
from odfpy.files import make_folder, try_lock

PART: Final = ".part-"
"""What the names of files begin with that have a part of an object."""

LARGE: Final = 8 << 20
"""Bytes from which an object is worth going on with."""

KEPT: Final = 7 * 24 * 3600
"""Seconds for which a part is kept that nobody goes on with."""

OpenAt = Callable[[int], AbstractContextManager[BinaryIO]]
"""Opens an object at an offset."""


class PartialObject:
    """An object that is coming into a folder of objects. Only one at a time may write it."""

    def __init__(self, store: LocalObjectStore, name: Multihash) -> None:
        self._store = store
        self._name = name
        self.path = store.folder / f"{PART}{name}"

    @property
    def arrived(self) -> int:
        """Bytes that have come so far."""
        try:
            return self.path.stat().st_size
        except FileNotFoundError:
            return 0

    def receive(self, open_at: OpenAt, size: int | None = None) -> int:
        """Get the rest of the object, and let it be there. Whatever has come stays when that breaks off.

        Args:
            open_at: asked for the object from some byte on, and again from the first one if something wrong is here.
            size: most bytes, None for any number.

        Returns:
            Bytes of the object.

        Raises:
            HashMismatch, ObjectTooLarge: another object came; nothing stays.
            DatasetLocked: somebody else is receiving it.
            OdfError: it is not complete.
        """
        with self._writing() as file:
            begin = os.fstat(file.fileno()).st_size
            if begin > 0 and (size is None or begin <= size):
                with suppress(HashMismatch, ObjectTooLarge):
                    return self._finish(file, open_at, begin, size)
                # What an earlier try has left may be what is wrong: once more, from the first byte on.
            with self._nothing_wrong():
                return self._finish(file, open_at, 0, size)

    def extend(self, stream: BinaryIO, begin: int, size: int) -> bool:
        """Take in the bytes from an offset on, as many as come; gives whether the object is whole now, and there.

        Args:
            stream: the bytes.
            begin: offset of the first of them; 0 begins anew.
            size: bytes of the object.

        Raises:
            HashMismatch, ObjectTooLarge: another object came; nothing stays.
            DatasetLocked: somebody else is receiving it.
            PartElsewhere: it is at another byte.
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
        if size is None or begin < size:  # else all has come, and servers have no answer to what comes after it
            with open_at(begin) as stream:
                count = self._append(file, stream, hasher, begin, size)
        self._place(file, hasher, count)
        return count

    def _hashed(self, file: BinaryIO, count: int) -> Hasher:
        """Keep the first bytes and hash them."""
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
                raise ObjectTooLarge(f"Object {self._name}: more than the {size} bytes that were announced")
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
        """Let nothing stay of what turns out to be another object."""
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
        """The file, with its lock: whose name still is the one of the file that was locked."""
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
            file = os.fdopen(descriptor, "r+b")
            if not try_lock(file):
                file.close()
                raise DatasetLocked(
                    f"Somebody else is receiving the object {self._name}", hint="Run the command again in a moment."
                )
            with suppress(FileNotFoundError):
                if self.path.stat().st_ino == os.fstat(descriptor).st_ino:
                    return file
            file.close()  # whoever had it has finished meanwhile


class PartElsewhere(Exception):
    """A part of an object does not end where it was to go on."""


def forgotten_parts(folder: Path) -> Iterator[Path]:
    """The parts in a folder that nobody has gone on with for a good while."""
    for path in sorted(folder.glob(f"{PART}*")):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime >= KEPT:
                yield path


def upload_object(store: ObjectStore, name: Multihash, size: int, stream: BinaryIO, begin: int) -> None:
    """Take in an object that somebody sends, or the rest of it. A part of a large one stays when that breaks off.

    Args:
        store: where it goes.
        name: its hash.
        size: bytes of the object.
        stream: the bytes.
        begin: offset of the first of them.

    Raises:
        HashMismatch, ObjectTooLarge: another object came; nothing stays.
        PartElsewhere: what has come before ends elsewhere.
        OdfError: it cannot be written.
    """
    if isinstance(store, LocalObjectStore) and (begin or size >= LARGE):
        try:
            is_whole = PartialObject(store, name).extend(stream, begin, size)
        except DatasetLocked:
            # Somebody else sends the same: they do not wait for each other, unless this is a rest.
            if begin:
                raise PartElsewhere(f"{name} is being written") from None
        else:
            if not is_whole:
                raise HashMismatch(f"Object {name}: fewer than its {size} bytes have arrived")
            return
    store.insert_stream(stream, name, size=size)
