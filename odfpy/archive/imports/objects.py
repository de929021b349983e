"""Sources of imported objects: a bucket, or a folder that is a copy of one."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.archive.errors import CannotCopy
from odfpy.archive.files import files_in
from odfpy.errors import InvalidValue, NotFound, ObjectNotFound, OdfError
from odfpy.files import open_regular

if TYPE_CHECKING:
    from odfpy.repository.bucket.client import Bucket

HEADER: Final = "datalake"
"""Name of the object metadata written by datalake: `x-amz-meta-datalake` in S3."""

_SCHEMES: Final = ("s3", "s3+http", "s3+https", "gs", "az")
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class FoundObject:
    """An object with its metadata.

    Attributes:
        size: size in bytes.
        written: when the object arrived in the bucket, in milliseconds since the epoch.
        metadata: JSON written by datalake; None if there is none.
    """

    size: int
    written: int
    metadata: str | None


class ObjectSource(ABC):
    """A source of objects to import; implemented for buckets and folders."""

    @abstractmethod
    def where(self, key: str) -> str:
        """Return the address of an object, for messages."""

    @abstractmethod
    def stored(self) -> Iterator[tuple[str, int]]:
        """Yield the keys of all objects, each with its size.

        Raises:
            OdfError: the source cannot be read.
        """

    @abstractmethod
    def head(self, key: str) -> FoundObject:
        """Look up an object.

        Raises:
            ObjectNotFound: there is no such object.
            OdfError: the object cannot be read.
        """

    @abstractmethod
    def chunks(self, key: str, size: int) -> Iterator[bytes]:
        """Yield the bytes of an object.

        Args:
            key: key of the object.
            size: size of the object in bytes.

        Raises:
            ObjectNotFound: there is no such object.
            OdfError: the object cannot be read.
        """

    def fetch(self, key: str, size: int, to: Path) -> str:
        """Copy an object to a file and return the BLAKE2b of its bytes, in hex.

        Args:
            key: key of the object.
            size: size of the object in bytes.
            to: the file to create.

        Raises:
            OdfError: the object cannot be read, or the file cannot be written; no file is left then.
        """
        hasher = hashlib.blake2b(digest_size=16)
        try:
            with to.open("xb") as file:
                for chunk in self.chunks(key, size):
                    hasher.update(chunk)
                    file.write(chunk)
        except OSError as error:
            to.unlink(missing_ok=True)
            raise CannotCopy(f"{self.where(key)}: cannot write its copy {to}: {error.strerror}") from error
        except BaseException:
            to.unlink(missing_ok=True)
            raise
        return hasher.hexdigest()


class BucketObjects(ObjectSource):
    """The objects of a bucket, or of a folder in it."""

    def __init__(self, url: str) -> None:
        """
        Args:
            url: `s3://bucket/folder`, or a URL of Google Cloud Storage or Azure.

        Raises:
            InvalidValue, TransferError: it is not the URL of a bucket, or the bucket cannot be used.
        """
        from odfpy.repository.bucket.location import open_bucket, parse_bucket_url

        place = parse_bucket_url(url)
        if place.scheme not in _SCHEMES:
            raise InvalidValue(
                f"Not the address of a bucket: {url!r}", hint=f"It begins with one of: {', '.join(_SCHEMES)}"
            )
        self._folder = place.folder
        self._bucket: Bucket = open_bucket(place)

    def where(self, key: str) -> str:
        return self._bucket.where(key)

    def stored(self) -> Iterator[tuple[str, int]]:
        for item in self._bucket.keys(self._folder):
            yield item.key, item.size

    def head(self, key: str) -> FoundObject:
        try:
            head = self._bucket.ask(key, self._bucket.client.head, key)
        except FileNotFoundError:
            raise self._missing(key) from None
        return FoundObject(head.size, int(head.written * 1000), head.metadata.get(HEADER))

    def chunks(self, key: str, size: int) -> Iterator[bytes]:
        from odfpy.repository.bucket.client import PART

        try:
            for start in range(0, size, PART):
                yield self._bucket.ask(key, self._bucket.client.get, key, start, min(start + PART, size))
        except FileNotFoundError:
            raise self._missing(key) from None

    def _missing(self, key: str) -> ObjectNotFound:
        return ObjectNotFound(f"Missing object: {self.where(key)}")


class FolderObjects(ObjectSource):
    """The files of a folder with a copy of a bucket; their metadata must come from an export."""

    def __init__(self, folder: Path) -> None:
        """
        Args:
            folder: the copy.

        Raises:
            NotFound: there is no such folder.
        """
        if not folder.is_dir():
            raise NotFound(f"No such folder: {folder}")
        self._folder = folder.resolve()

    def where(self, key: str) -> str:
        return str(self._folder / key)

    def stored(self) -> Iterator[tuple[str, int]]:
        for file in files_in(self._folder):
            yield file.relative_to(self._folder).as_posix(), file.stat().st_size

    def head(self, key: str) -> FoundObject:
        status = self._file(key).stat()
        return FoundObject(status.st_size, status.st_mtime_ns // 1_000_000, None)

    def chunks(self, key: str, size: int) -> Iterator[bytes]:
        del size
        try:
            with open_regular(self._file(key)) as file:
                chunk = b"-"
                while chunk:
                    chunk = file.read(_CHUNK)
                    yield chunk
        except OSError as error:
            raise OdfError(f"Cannot read {self.where(key)}: {error.strerror}") from error

    def _file(self, key: str) -> Path:
        """Return the file of a key. Keys are untrusted: never return a file outside of the folder."""
        try:
            file = (self._folder / key).resolve()
        except (OSError, ValueError, RuntimeError):
            file = Path()
        if not file.is_relative_to(self._folder) or not file.is_file():
            raise ObjectNotFound(f"Missing object: {self.where(key)}")
        return file
