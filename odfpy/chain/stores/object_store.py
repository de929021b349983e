"""Content-addressed storage of blocks, slices and checkpoints: each object is named by its hash.

An object is either stored completely and flushed to disk, or absent.
"""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from odfpy.chain.stores.checked_files import CheckedFiles
from odfpy.data.multihash import SHA3_256, HashAlgorithm, Multihash
from odfpy.errors import HashMismatch, IntegrityError, InvalidValue, ObjectNotFound, OdfError
from odfpy.files import (
    MANY,
    TEMPORARY,
    make_folder,
    move_files,
    open_regular,
    replace_files,
    replaced_atomically,
    sync_folder,
)
from odfpy.values import dataclass

CHUNK = 1 << 20


class ObjectTooLarge(IntegrityError, code="E222"):
    """A stream exceeded the announced size of the object."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object in the listing of its store.

    Attributes:
        name: hash of the object.
        size: size in bytes.
        written: time when it was written or last marked as used, in seconds since 1970.
    """

    name: Multihash
    size: int
    written: float


class ObjectStore(ABC):
    """A set of immutable objects, each named by the hash of its bytes.

    `odfpy.testing.object_store` has the contract suite that every implementation passes.
    """

    writable: bool = True

    @abstractmethod
    def __contains__(self, name: object) -> bool: ...

    @abstractmethod
    def __iter__(self) -> Iterator[Multihash]:
        """Yield all names, in no particular order."""

    def stored(self) -> Iterator[StoredObject]:
        """Yield all objects with their sizes and ages, in no particular order.

        Raises:
            OdfError: the store does not support it.
        """
        raise OdfError(f"{type(self).__name__} does not report when its objects were written")

    def touch(self, name: Multihash) -> None:
        """Mark an existing object as written now, if the store supports it: a reference to it is about to be made."""
        del name

    @abstractmethod
    def open(self, name: Multihash) -> BinaryIO:
        """Return the object as a stream from its beginning.

        Raises:
            ObjectNotFound: the object does not exist.
        """

    def open_at(self, name: Multihash, start: int) -> BinaryIO:
        """Return the object as a stream from an offset on, empty if the object is shorter; errors as for `open`."""
        stream = self.open(name)
        while start > 0 and (passed := stream.read(min(start, CHUNK))):
            start -= len(passed)
        return stream

    @abstractmethod
    def size(self, name: Multihash) -> int:
        """Return the size of the object in bytes.

        Raises:
            ObjectNotFound: the object does not exist.
        """

    @abstractmethod
    def describe(self, name: Multihash) -> str:
        """Return the location of an existing or future object, for messages."""

    def read(self, name: Multihash) -> bytes:
        """Return the content of the object, checked against its name.

        Raises:
            ObjectNotFound: the object does not exist.
            HashMismatch: its bytes have another hash.
        """
        try:
            with self.open(name) as stream:
                data = stream.read()
        except OSError as error:
            raise OdfError(f"Cannot read {self.describe(name)}: {error.strerror or error}") from error
        if not name.matches(data):
            raise HashMismatch(
                f"Damaged object: {self.describe(name)} has the hash {Multihash.of(data, name.algorithm)}",
                hint="Fetch it again from a repository that has the dataset, or restore it from a backup.",
            )
        return data

    def local_path(self, name: Multihash) -> Path | None:
        """Return the object's file, for stores with local files; None for others."""
        del name
        return None

    def checked_path(self, name: Multihash) -> Path | None:
        """Return the object's file as `local_path` does, after comparing its bytes with its name.

        Raises:
            ObjectNotFound: the object does not exist.
            HashMismatch: its bytes have another hash.
        """
        path = self.local_path(name)
        if path is not None:
            CheckedFiles().check(name, path)
        return path

    @abstractmethod
    def insert_stream(self, stream: BinaryIO, name: Multihash, *, size: int | None = None) -> None:
        """Store an object from a stream, and hash it at the same time; nothing is stored if hash or size do not match.

        Args:
            stream: the bytes.
            name: their expected hash.
            size: maximum number of bytes, None for no limit.

        Raises:
            HashMismatch: the bytes have another hash.
            ObjectTooLarge: the stream has more than `size` bytes.
        """

    def insert_all(self, objects: Sequence[tuple[Multihash, bytes]]) -> bool:
        """Store many small missing objects, if the store has a fast way for so many; return whether it has.

        Raises:
            HashMismatch: an object has another hash; the others may or may not have been stored.
        """
        del objects
        return False

    @abstractmethod
    def insert_file(self, path: Path, name: Multihash) -> None:
        """Move a file that this process has just written and hashed into the store. It is flushed, not hashed again."""

    def insert_files(self, files: Mapping[Multihash, Path]) -> None:
        """Move files that this process has just written and hashed into the store; many are flushed together.

        Args:
            files: the files by names of their objects; they are moved.

        Raises:
            OdfError: a file cannot be moved; the others may or may not have been stored.
        """
        for name, path in files.items():
            self.insert_file(path, name)

    def insert(self, data: bytes, algorithm: HashAlgorithm = SHA3_256) -> Multihash:
        """Store bytes, and return their name."""
        name = Multihash.of(data, algorithm)
        self.insert_stream(io.BytesIO(data), name)
        return name

    @abstractmethod
    def delete(self, name: Multihash) -> None:
        """Delete an object if it exists."""


def copy_hashed(
    source: BinaryIO, write: Callable[[bytes], object], name: Multihash, size: int | None, where: str
) -> None:
    """Copy a stream and check that it has the expected hash, and no more than the expected size.

    Args:
        source: the bytes.
        write: called with each piece of the bytes.
        name: the expected hash.
        size: maximum number of bytes, None for no limit.
        where: the store, for messages.
    """
    hasher = name.algorithm.hasher()
    count = 0
    while chunk := source.read(CHUNK):
        count += len(chunk)
        # Checked at once: a peer that announced a megabyte could otherwise send until the disk is full.
        if size is not None and count > size:
            raise ObjectTooLarge(f"Object {name} of {where}: more than the announced {size} bytes")
        hasher.update(chunk)
        write(chunk)
    actual = Multihash(name.code, hasher.digest())
    if actual != name:
        raise HashMismatch(f"Object {name} of {where}: the {count} bytes received have the hash {actual}")


class LocalObjectStore(ObjectStore):
    """Objects as files of one folder. Objects are written under a temporary name, flushed, and renamed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __contains__(self, name: object) -> bool:
        return isinstance(name, Multihash) and self._path(name).is_file()

    def __iter__(self) -> Iterator[Multihash]:
        if not self.folder.is_dir():
            return
        for entry in os.scandir(self.folder):
            try:
                name = Multihash.parse(entry.name)
            except InvalidValue:
                continue
            if str(name) == entry.name:
                yield name

    def stored(self) -> Iterator[StoredObject]:
        for name in self:
            with suppress(FileNotFoundError):
                status = self._path(name).stat()
                yield StoredObject(name, status.st_size, status.st_mtime)

    def touch(self, name: Multihash) -> None:
        with suppress(OSError):  # the file may belong to another user, who then collects no garbage here, either
            os.utime(self._path(name))

    def open(self, name: Multihash) -> BinaryIO:
        try:
            return open_regular(self._path(name))
        except FileNotFoundError:
            raise self._missing(name) from None
        except OSError as error:
            raise OdfError(f"Cannot read {self._path(name)}: {error.strerror}") from error

    def open_at(self, name: Multihash, start: int) -> BinaryIO:
        stream = self.open(name)
        stream.seek(start)
        return stream

    def size(self, name: Multihash) -> int:
        try:
            return self._path(name).stat().st_size
        except FileNotFoundError:
            raise self._missing(name) from None
        except OSError as error:
            raise OdfError(f"Cannot read {self._path(name)}: {error.strerror}") from error

    def describe(self, name: Multihash) -> str:
        return str(self._path(name))

    def local_path(self, name: Multihash) -> Path | None:
        return self._path(name)

    def file_of(self, name: Multihash) -> Path | None:
        """Return the file that stores an object in any form; None if there is none."""
        path = self._path(name)
        return path if path.is_file() else None

    def insert_stream(self, stream: BinaryIO, name: Multihash, *, size: int | None = None) -> None:
        # Also if the object exists: its file may be damaged, and a repair replaces it in this way.
        with self._placing(name) as temporary, temporary.open("xb") as target:
            copy_hashed(stream, target.write, name, size, str(self.folder))
            target.flush()
            os.fsync(target.fileno())

    def insert_all(self, objects: Sequence[tuple[Multihash, bytes]]) -> bool:
        if len(objects) < MANY:
            return False
        try:
            replace_files(self._new(objects))
        except OSError as error:
            raise OdfError(f"Cannot write to {self.folder}: {error.strerror or error}") from error
        return True

    def _new(self, objects: Iterable[tuple[Multihash, bytes]]) -> Iterator[tuple[Path, bytes]]:
        """Yield path and content of the objects that are not stored yet, checked against their names."""
        for name, data in objects:
            if name in self:
                # It may be garbage that is about to be collected: since it is marked as new, it survives until a head
                # refers to it.
                self.touch(name)
                continue
            if not name.matches(data):
                raise HashMismatch(f"Object {name} of {self.folder}: the {len(data)} bytes have another hash")
            yield self._path(name), data

    def insert_file(self, path: Path, name: Multihash) -> None:
        with self._placing(name) as temporary:
            # Not renamed to its final name at once: a power loss between rename and flush would leave truncated content
            # under a name that is never hashed again.
            path.rename(temporary)
            with temporary.open("rb") as file:
                os.fsync(file.fileno())

    def insert_files(self, files: Mapping[Multihash, Path]) -> None:
        if not files:
            return
        try:
            make_folder(self.folder)
            move_files((path, self._path(name)) for name, path in files.items())
        except OSError as error:
            raise OdfError(
                f"Cannot write to {self.folder}: {error.filename or ''} {error.strerror or error}"
            ) from error

    def delete(self, name: Multihash) -> None:
        try:
            self._path(name).unlink(missing_ok=True)
        except OSError as error:
            raise OdfError(f"Cannot delete {self._path(name)}: {error.strerror}") from error

    def clean(self) -> None:
        """Remove temporary files of interrupted writers. The caller must hold the dataset's lock."""
        if self.folder.is_dir():
            for path in self.folder.glob(f"{TEMPORARY}*"):
                path.unlink(missing_ok=True)

    def _path(self, name: Multihash) -> Path:
        return self.folder / str(name)

    def _missing(self, name: Multihash) -> ObjectNotFound:
        return ObjectNotFound(f"Missing object: {self._path(name)}")

    @contextmanager
    def _placing(self, name: Multihash) -> Iterator[Path]:
        """Provide a temporary path as `replaced_atomically` does, and flush the file's name to disk, too."""
        final = self._path(name)
        try:
            make_folder(self.folder)
            with replaced_atomically(final) as temporary:
                yield temporary
            sync_folder(self.folder)
        except OSError as error:
            raise OdfError(f"Cannot write {final}: {error.strerror or error}") from error


class MemoryObjectStore(ObjectStore):
    """Objects in a dictionary; the model that other stores are tested against."""

    def __init__(self) -> None:
        self._objects: dict[Multihash, bytes] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._objects

    def __iter__(self) -> Iterator[Multihash]:
        return iter(list(self._objects))

    def open(self, name: Multihash) -> BinaryIO:
        return io.BytesIO(self._get(name))

    def size(self, name: Multihash) -> int:
        return len(self._get(name))

    def describe(self, name: Multihash) -> str:
        return f"{name} in memory"

    def insert_stream(self, stream: BinaryIO, name: Multihash, *, size: int | None = None) -> None:
        target = io.BytesIO()
        copy_hashed(stream, target.write, name, size, "memory")
        self._objects[name] = target.getvalue()

    def insert_file(self, path: Path, name: Multihash) -> None:
        try:
            self._objects[name] = path.read_bytes()
            path.unlink()
        except OSError as error:
            raise OdfError(f"Cannot store {path}: {error.strerror}") from error

    def delete(self, name: Multihash) -> None:
        self._objects.pop(name, None)

    def _get(self, name: Multihash) -> bytes:
        try:
            return self._objects[name]
        except KeyError:
            raise ObjectNotFound(f"Missing object: {self.describe(name)}") from None
