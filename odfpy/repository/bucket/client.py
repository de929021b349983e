"""Clients of object stores: requests from any thread, with retries, and errors of odfpy."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, TypeVar

from odfpy.errors import TransferError
from odfpy.repository.bucket.errors import BucketNotFound, Cause, Conflict, StoreRefuses, StoreUnreachable, cause_of

PART = 5 << 20
"""Bytes per request."""

_SENDERS = 4
_MAX_LISTED = 10_000_000
"""Maximum number of names in a folder; they are all held in memory."""

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ObjectContent:
    """A small object with its version.

    Attributes:
        data: bytes of the object, or the first of them.
        version: the store's version of the content; each write creates a new one.
    """

    data: bytes
    version: str


@dataclass(frozen=True, slots=True)
class ObjectHead:
    """The metadata of an object.

    Attributes:
        size: size in bytes.
        written: modification time, in seconds since the epoch.
        metadata: user-defined metadata, by names in lower case.
    """

    size: int
    written: float
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ListedObject:
    """An object in a list.

    Attributes:
        key: key of the object.
        size: size in bytes.
        written: modification time, in seconds since the epoch.
        version: the store's version of the object.
    """

    key: str
    size: int
    written: float
    version: str


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a list.

    Attributes:
        objects: the objects.
        folders: common prefixes of the keys of other objects, up to a slash.
        next: token of the next page, None on the last page.
    """

    objects: Sequence[ListedObject]
    folders: Sequence[str]
    next: str | None


@dataclass(frozen=True, slots=True)
class Listing:
    """The direct content of a folder.

    Attributes:
        objects: the objects, by name.
        folders: names of the folders, which are common prefixes of keys.
    """

    objects: dict[str, ListedObject]
    folders: list[str]


class MultipartUpload(Protocol):
    """An upload of an object in parts; the object does not exist until the upload is finished.

    Attributes:
        goes_on: whether uploaded parts are retained for the next upload of the same object.
    """

    goes_on: bool

    async def part(self, data: bytes) -> None:
        """Upload the next `PART` bytes."""

    async def finish(self, last: bytes) -> None:
        """Upload the last bytes, at least one, and create the object."""

    async def abort(self) -> None:
        """Discard the uploaded parts."""


class BucketClient(Protocol):
    """The client of a bucket; implemented for the library of each store, and used by `Bucket`.

    Keys include the path, but not the bucket. Methods raise the library's exceptions, which `cause_of` classifies.

    Attributes:
        loop: event loop in which the methods run.
        tries: number of attempts after connection errors.
    """

    loop: asyncio.AbstractEventLoop
    tries: int

    async def get(self, key: str, start: int, end: int) -> bytes:
        """Return a range of bytes of an object, which is shorter at its end.

        Args:
            key: name of the object in the bucket.
            start: offset of the first byte.
            end: offset after the last byte.
        """

    async def size(self, key: str) -> int:
        """Return the size of an object."""

    async def presigned(self, key: str, seconds: int) -> str | None:
        """Return a URL by which anyone can read an object for a limited time; None without a key to sign it."""

    async def put(self, key: str, data: bytes) -> None:
        """Create or replace an object."""

    async def begin(self, key: str) -> MultipartUpload:
        """Begin a multipart upload that creates or replaces an object."""

    async def delete(self, key: str) -> None:
        """Delete an object."""

    async def list(self, prefix: str, page: str | None, *, folders: bool) -> ListPage:
        """Return a page of the objects whose keys have a prefix.

        Args:
            prefix: prefix of the keys.
            page: `ListPage.next` of the previous page, None for the first.
            folders: whether to list only objects without a slash after the prefix, and to summarize the others as
                folders.
        """

    async def head(self, key: str) -> ObjectHead:
        """Return the metadata of an object."""

    async def content(self, key: str, limit: int) -> ObjectContent:
        """Return the first bytes of an object, and its version."""

    async def replace(self, key: str, data: bytes, version: str | None) -> None:
        """Replace an object if it still has a version, or create it if the version is None and it does not exist.

        Args:
            key: name of the object in the bucket.
            data: new content.
            version: the expected version, None if there must be no object.
        """

    async def remove(self, key: str, version: str) -> None:
        """Delete an object if it still has a version."""

    async def has_conditions(self, key: str, data: bytes) -> bool:
        """Return whether the store supports conditional writes. If it does not, the object is written with the data."""


class Bucket:
    """A bucket of an object store, with blocking methods, retries and odfpy's errors.

    Attributes:
        url: URL of the bucket, for messages.
        client: client of the store.
        sending: semaphore held while a part is uploaded, since an upload needs the memory of several parts.
    """

    def __init__(self, url: str, client: BucketClient, hint: str) -> None:
        """
        Args:
            url: URL with scheme and bucket.
            client: client that runs in its library's event loop, in a background thread.
            hint: advice on the configuration of credentials, for messages.
        """
        self.url = url
        self.client = client
        self.sending = threading.BoundedSemaphore(_SENDERS)
        self._hint = hint
        self._has_conditions: bool | None = None

    def ask(
        self, where: str, ask: Callable[_Args, Awaitable[_Result]], *args: _Args.args, **kwargs: _Args.kwargs
    ) -> _Result:
        """Send a request to the store; retry after connection errors.

        Args:
            where: key or folder, for messages.
            ask: method of a client or an upload.
            args: positional arguments of the method.
            kwargs: keyword arguments of the method.

        Raises:
            FileNotFoundError: the object does not exist.
            Conflict: the condition does not hold.
            BucketNotFound, StoreRefuses, StoreUnreachable, TransferError: the request fails.
        """

        async def patiently() -> _Result:
            for failures in range(1, self.client.tries):
                try:
                    return await ask(*args, **kwargs)
                except Exception as error:
                    if cause_of(error)[0] is not Cause.PASSING:
                        raise
                # Exponential: immediate retries would not relieve an overloaded store.
                await asyncio.sleep(0.1 * 4**failures)
            return await ask(*args, **kwargs)

        from fsspec.asyn import sync

        try:
            result: _Result = sync(self.client.loop, patiently)
        except Exception as error:  # noqa: BLE001 (each library has errors of its own)
            raise self._translated(error, where) from None
        return result

    def demand(
        self, where: str, ask: Callable[_Args, Awaitable[_Result]], *args: _Args.args, **kwargs: _Args.kwargs
    ) -> _Result:
        """Send a request that only requires the bucket to exist; otherwise like `ask`."""
        try:
            return self.ask(where, ask, *args, **kwargs)
        except FileNotFoundError:
            raise self._no_bucket() from None
        except Conflict as error:
            raise self.refused_change(where) from error

    def refused_change(self, key: str) -> TransferError:
        """Return the error for an unconditional change that the store rejects."""
        return TransferError(
            f"{self.where(key)}: the store refuses to change the object",
            hint="Another change of it may be running, or a rule of the bucket may protect it.",
        )

    def list(self, folder: str) -> Listing:
        """Return the direct content of a folder; `folder` is empty or ends in a slash."""
        listing = Listing({}, [])
        start = len(folder)
        for page in self._pages(folder, folders=True):
            listing.objects.update((item.key[start:], item) for item in page.objects)
            listing.folders.extend(key[start:-1] for key in page.folders)
            if len(listing.objects) + len(listing.folders) > _MAX_LISTED:
                raise TransferError(
                    f"{self.where(folder)} has more than {_MAX_LISTED} objects",
                    hint="No folder of odfpy has that many: check the URL.",
                )
        return listing

    def keys(self, prefix: str) -> Iterator[ListedObject]:
        """Yield the objects whose keys have a prefix, in any folder."""
        for page in self._pages(prefix, folders=False):
            yield from page.objects

    def _pages(self, prefix: str, *, folders: bool) -> Iterator[ListPage]:
        token: str | None = None
        while True:
            page = self.demand(prefix, self.client.list, prefix, token, folders=folders)
            yield page
            if page.next is None:
                return
            if page.next == token:
                raise TransferError(
                    f"{self.where(prefix)}: the store lists the same page repeatedly",
                    hint="A proxy in between may ignore the page's token.",
                )
            token = page.next

    def write_if(self, key: str, data: bytes, version: str | None) -> bool:
        """Write an object if it still has a version, or if the version is None and it does not exist.

        Args:
            key: name of the object in the bucket.
            data: new content.
            version: the expected version, None if there must be no object.

        Returns:
            True if the write was atomic; False if the store does not support conditions, so that the object was written
                unconditionally.

        Raises:
            Conflict: another writer was first.
        """
        if self._has_conditions is None:
            # Some S3-compatible servers ignore conditions: the first write tests that with a condition that is never
            # met.
            self._has_conditions = self.demand(key, self.client.has_conditions, key, data)
            if not self._has_conditions:
                return False
        if not self._has_conditions:
            self.demand(key, self.client.put, key, data)
            return False
        try:
            self.ask(key, self.client.replace, key, data, version)
        except FileNotFoundError:
            # Stores return "not found" for a condition on a deleted object: another writer was first. Without such a
            # condition, only the bucket can be missing.
            raise (self._no_bucket() if version is None else Conflict(key)) from None
        return True

    def where(self, key: str) -> str:
        """Return the URL of an object or folder."""
        return f"{self.url}/{key}".rstrip("/")

    def _translated(self, error: Exception, key: str) -> Exception:
        where = self.where(key)
        cause, word = cause_of(error)
        match cause:
            case Cause.NO_OBJECT:
                return FileNotFoundError(where)
            case Cause.CONFLICT:
                return Conflict(where)
            case Cause.NO_BUCKET:
                return self._no_bucket()
            case Cause.NO_CREDENTIALS:
                return StoreRefuses(f"{where}: there are no credentials for this store", hint=self._hint)
            case Cause.DENIED:
                return StoreRefuses(
                    f"{where}: access denied ({word})", hint=f"Check your permissions there. {self._hint}"
                )
            case Cause.UNREACHABLE:
                return StoreUnreachable(
                    f"{where}: the store cannot be reached ({word})",
                    hint="Check the address and the network connection.",
                )
            case Cause.PASSING:
                return StoreUnreachable(
                    f"{where}: the store sent an unexpected answer ({word})",
                    hint="Try again later; complete objects are not sent again.",
                )
        return TransferError(
            f"{where}: the store does not support this ({word})", hint=f"Check the address. {self._hint}"
        )

    def _no_bucket(self) -> BucketNotFound:
        return BucketNotFound(
            f"There is no bucket {self.url}",
            hint="Check its name. Create buckets with the tools of the store; `odf push` creates datasets in them.",
        )


def required_word(value: Any) -> str:
    """Return a required string of a library's response."""
    if not isinstance(value, str) or not value:
        raise TransferError("The store gives its objects no versions", hint="You cannot push to it.")
    return value
