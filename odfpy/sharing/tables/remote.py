"""Folders of tables in buckets: no object outside of them is read, whatever a table refers to.

Their content is determined by listing each folder of a table once: sizes and versions show whether a file is
unchanged. So a table whose log names thousands of files needs no request for each of them.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, cast

from odfpy.errors import OdfError
from odfpy.repository.bucket.client import PART, Bucket, ListedObject, Listing
from odfpy.repository.bucket.location import open_bucket, parse_bucket_url
from odfpy.sharing.errors import CannotShare
from odfpy.sharing.tables.local import LocalFolder

_REMOTE: Final = re.compile(r"(s3|gs|az|s3\+https?)://", re.IGNORECASE)
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_SAME_STORE: Final = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "az", "abfss": "az", "wasb": "az", "wasbs": "az"}
_MAX_DEPTH: Final = 1000  # folder depth of a table


@dataclass(frozen=True, slots=True)
class BucketFile:
    """An object in the folder of a table.

    Attributes:
        url: URL of the object, for messages.
        size: size in bytes.
        mtime_ns: modification time.
        version: the store's version of its content.
        bucket: the bucket.
        key: key in the bucket.
    """

    url: str
    size: int
    mtime_ns: int
    version: str
    bucket: Bucket = field(compare=False, repr=False)
    key: str = field(compare=False, repr=False)

    @property
    def identity(self) -> str:
        """Text that changes when the object is rewritten."""
        return f"{self.url}:{self.size}:{self.version}"

    @property
    def path(self) -> BucketFile:
        """The location, in the form of `TableFile`."""
        return self

    @property
    def name(self) -> str:
        """The last segment of the key."""
        return self.key.rpartition("/")[2]

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from one offset up to another, or to the end.

        Raises:
            CannotShare: the object no longer exists, or the store rejects the request.
        """
        with _asking(self.url):
            return self.bucket.ask(self.key, self.bucket.client.get, self.key, start, min(end, self.size))

    def pieces(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the bytes between two offsets, in one piece per request.

        Raises:
            CannotShare: as `read`.
        """
        while start < end and (part := self.read(start, min(end, start + PART))):
            yield part
            start += len(part)

    def open(self) -> BinaryIO:
        """Open the object for random access; reads become range requests."""
        return cast("BinaryIO", _Stream(self))

    def presigned(self, seconds: int) -> str | None:
        """Return a presigned URL, valid for a while; None without credentials to sign with.

        Raises:
            CannotShare: the store's library cannot sign.
        """
        with _asking(self.url):
            return self.bucket.ask(self.key, self.bucket.client.presigned, self.key, seconds)


class _Stream(io.RawIOBase):
    """A stream with random access; each read is one range request."""

    def __init__(self, file: BucketFile) -> None:
        super().__init__()
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        wanted = min(len(buffer), self._file.size - self._at)
        done = 0
        while done < wanted:
            part = self._file.read(self._at, self._at + min(PART, wanted - done))
            if not part:
                break
            buffer[done : done + len(part)] = part
            done, self._at = done + len(part), self._at + len(part)
        return done


class BucketFolder:
    """A folder of a table in a bucket.

    Attributes:
        url: URL of the folder, without a trailing slash.
        path: the URL without scheme, beginning with a slash.
    """

    def __init__(self, url: str) -> None:
        """
        Args:
            url: URL of the folder; nothing is requested yet.

        Raises:
            CannotShare: the URL is not that of a folder, or the library of the store is not installed.
        """
        with _asking(url):
            self._place = parse_bucket_url(url)
            self._bucket = open_bucket(self._place)
        self.url = f"{self._place.url}/{self._place.folder}".rstrip("/")
        self.path = f"/{self._place.bucket}/{self._place.folder}".rstrip("/")
        self._listings: dict[str, Listing] = {}

    def __str__(self) -> str:
        return self.url

    def file(self, name: str) -> BucketFile:
        """Return an object of the folder.

        Args:
            name: relative path, or a URL inside the folder.

        Raises:
            CannotShare: the object is outside, or missing.
        """
        path = self._inside(name)
        parts = path.split("/")
        if not all(parts) or not {".", ".."}.isdisjoint(parts):
            raise self._outside(name)
        folder, _, last = path.rpartition("/")
        listing = self._listing(f"{folder}/" if folder else "")
        if last not in listing.objects:
            raise CannotShare(
                f"The table in {self.url} has a file {name!r} that is not there",
                hint="Repair the table at its origin.",
            )
        return self._found(path, listing.objects[last])

    def files(self, folder: str = "") -> Iterator[tuple[str, BucketFile]]:
        """Return the objects directly in a folder, which is empty or ends in a slash, with their paths."""
        for name, item in sorted(self._listing(folder).objects.items()):
            if name:  # some tools create an object for a folder
                yield folder + name, self._found(folder + name, item)

    def folders(self, folder: str = "") -> Iterator[str]:
        """Return the subfolders of a folder, each with a trailing slash."""
        return (f"{folder}{name}/" for name in sorted(self._listing(folder).folders) if name)

    def walk(self, wanted: Callable[[str], bool], hidden: tuple[str, ...]) -> tuple[list[tuple[str, BucketFile]], int]:
        """Return the objects below the folder, each with its path; like `LocalFolder.walk`, but without times of
        folders.

        Args:
            wanted: returns whether to include an object, by the last segment of its name.
            hidden: prefixes of names of objects and folders that are skipped.

        Raises:
            CannotShare: the folder is empty, or cannot be read.
        """
        waiting, found, is_empty = [""], list[tuple[str, BucketFile]](), True
        for folder in waiting:
            files, folders = list(self.files(folder)), list(self.folders(folder))
            is_empty = is_empty and not files and not folders
            named = [(path, file) for path, file in files if wanted(file.name) and not file.name.startswith(hidden)]
            found += [(f"{self.path}/{path}", file) for path, file in named]
            waiting += [subfolder for subfolder in folders if not subfolder[len(folder) :].startswith(hidden)]
        if is_empty:
            raise CannotShare(
                f"There is nothing in the folder {self.url}", hint="Name the folder that the table is in."
            )
        return found, 0

    def _found(self, path: str, item: ListedObject) -> BucketFile:
        key = self._place.folder + path
        written = int(item.written * 1000) * 1_000_000
        return BucketFile(f"{self._place.url}/{key}", item.size, written, item.version, self._bucket, key)

    def _listing(self, folder: str) -> Listing:
        found = self._listings.get(folder)
        if found is None:
            if len(self._listings) >= _MAX_DEPTH * 10:
                raise CannotShare(f"The table in {self.url} has too many folders", hint="Share a part of it.")
            with _asking(f"{self.url}/{folder}"):
                found = self._listings[folder] = self._bucket.list(self._place.folder + folder)
        return found

    def _inside(self, name: str) -> str:
        """Return the path of a name inside the folder.

        Raises:
            CannotShare: the name is outside of the folder.
        """
        scheme = _SCHEME.match(name)
        if scheme is None:
            return name
        kind, rest = scheme[1].lower(), name[scheme.end() :].lstrip("/")
        own = self._place.scheme.partition("+")[0]
        if self._place.server and rest.startswith(f"{self._place.server}/") and kind == self._place.scheme:
            kind, rest = own, rest[len(self._place.server) + 1 :]
        container, _, key = rest.partition("/")
        root = f"{self._place.bucket}/{self._place.folder}"
        inside = f"{container.partition('@')[0]}/{key}"  # abfss://container@account.host/key
        if _SAME_STORE.get(kind, kind) != own or not inside.startswith(root):
            raise self._outside(name)
        return inside[len(root) :]

    def _outside(self, name: str) -> CannotShare:
        return CannotShare(
            f"The table in {self.url} has a file outside of its folder: {name!r}",
            hint="Only files inside of the folder are shared; copy the table with all its files.",
        )


def known_object(bucket: str, key: str) -> BucketFile:
    """Return an object in its current version.

    Args:
        bucket: URL of its bucket.
        key: key in the bucket.

    Raises:
        CannotShare: the object no longer exists, or the store rejects the request.
    """
    url = f"{bucket}/{key}"
    with _asking(url):
        found = open_bucket(parse_bucket_url(bucket))
        return BucketFile(url, found.ask(key, found.client.size, key), 0, "", found, key)


def is_remote(location: str | os.PathLike[str]) -> bool:
    """Return whether a location is a URL of an object store."""
    return isinstance(location, str) and _REMOTE.match(location) is not None


def store_url(location: str) -> str | None:
    """Normalize the URL of an object store, in the notation of any program; return None if it is not such a URL."""
    scheme, separator, rest = location.partition("://")
    kind = _SAME_STORE.get(scheme.lower(), scheme)
    container, _, key = rest.partition("/")
    url = f"{kind}{separator}{container.partition('@')[0]}/{key}" if kind != scheme else location
    return url if is_remote(url) else None


def table_folder(location: str | os.PathLike[str]) -> LocalFolder | BucketFolder:
    """Return the folder of a table, by its path or URL.

    Raises:
        CannotShare: the folder does not exist; for a bucket, that is only detected when it is listed.
    """
    return BucketFolder(str(location)) if is_remote(location) else LocalFolder(location)


@contextmanager
def _asking(url: str) -> Iterator[None]:
    """Convert errors of a store in the block to errors of a shared table."""
    try:
        yield
    except CannotShare:
        raise
    except FileNotFoundError as error:
        raise CannotShare(f"There is no object {url} any more", hint="Ask for the table again.") from error
    except OdfError as error:
        raise CannotShare(error.message, hint=error.hint) from error
