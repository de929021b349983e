"""Clients of object stores: requests from any thread, repeated if need be, with errors of ours."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ParamSpec, Protocol, TypeVar

from odfpy.errors import TransferError
from odfpy.repository.bucket.errors import BucketNotFound, Cause, Conflict, StoreRefuses, StoreUnreachable, cause_of

PART = 5 << 20
"""Bytes that go over the network in one request."""

_SENDERS = 4
_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ObjectContent:
    """A small object.

    Attributes:
        data: its bytes, or the first of them.
        version: what the store knows this content by; every write makes another.
    """

    data: bytes
    version: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The entries directly in a folder, by name.

    Attributes:
        objects: with their sizes.
        folders: common beginnings of the names of other objects.
        written: when the objects were; seconds since 1970.
        versions: what the store knows the contents of the objects by.
    """

    objects: Mapping[str, int]
    folders: tuple[str, ...]
    written: Mapping[str, float]
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObjectHead:
    """Facts about an object beside its bytes.

    Attributes:
        size: bytes.
        written: when it was; seconds since 1970.
        metadata: what was given with it, by names in lower case.
    """

    size: int
    written: float
    metadata: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class KeyPage:
    """Some of the objects whose keys begin with something, folders or not.

    Attributes:
        objects: keys, with bytes and the time that they were written, in seconds since 1970.
        next: says where the next page begins, None if this is the last.
    """

    objects: Sequence[tuple[str, int, float]]
    next: str | None


class MultipartUpload(Protocol):
    """An object that comes in parts, and is not there before it is whole.

    Attributes:
        goes_on: whether parts that have come are kept for the next one who begins the same object.
    """

    goes_on: bool

    async def part(self, data: bytes) -> None:
        """Send the next `PART` bytes."""

    async def finish(self, last: bytes) -> None:
        """Send the last bytes, at least one; the object is there then."""

    async def abort(self) -> None:
        """Forget what was sent."""


class BucketClient(Protocol):
    """A bucket, as the library of its store has it.

    Keys are whole, without the bucket. Methods raise what the library raises; `cause_of` reads it.

    Attributes:
        loop: where its methods run.
        tries: how often to ask while the connection breaks.
    """

    loop: asyncio.AbstractEventLoop
    tries: int

    async def get(self, key: str, start: int, end: int) -> bytes:
        """Some bytes of an object, fewer where it ends.

        Args:
            key: name of the object in the bucket.
            start: offset of the first byte.
            end: offset after the last byte.
        """

    async def size(self, key: str) -> int:
        """Bytes of an object."""

    async def presigned(self, key: str, seconds: int) -> str | None:
        """A URL by which anybody can read an object for a while; None if no key is there to sign it with."""

    async def put(self, key: str, data: bytes) -> None:
        """Make or replace an object."""

    async def begin(self, key: str) -> MultipartUpload:
        """Begin to make or replace an object."""

    async def delete(self, key: str) -> None:
        """Remove an object."""

    async def list(self, folder: str) -> Listing:
        """Return what is directly in a folder; `folder` is empty or ends in a slash."""

    async def keys(self, prefix: str, page: str | None) -> KeyPage:
        """Some of the objects whose keys begin with that.

        Args:
            prefix: beginning of the keys.
            page: `KeyPage.next` of the page before, None for the first.
        """

    async def head(self, key: str) -> ObjectHead:
        """Return what is known of an object beside its bytes."""

    async def content(self, key: str, limit: int) -> ObjectContent:
        """The first bytes of an object, and its version."""

    async def replace(self, key: str, data: bytes, version: str | None) -> None:
        """Replace an object if it still has that version; None: make it if it is not there.

        Args:
            key: name of the object in the bucket.
            data: the new content.
            version: the version that must still be there, None for no object.
        """

    async def remove(self, key: str, version: str) -> None:
        """Remove an object if it still has that version."""

    async def has_conditions(self, key: str, data: bytes) -> bool:
        """Return whether the store minds the conditions of writes. If it does not, the object holds the data now."""


class Bucket:
    """A bucket of an object store.

    Attributes:
        url: what people know it by.
        client: what it can do.
        sending: to be held by who sends a part: each is in memory several times over on its way.
    """

    def __init__(self, url: str, client: BucketClient, hint: str) -> None:
        """
        Args:
            url: scheme and bucket.
            client: asked on the loop of its library, in the background.
            hint: where its credentials come from.
        """
        self.url = url
        self.client = client
        self.sending = threading.BoundedSemaphore(_SENDERS)
        self._hint = hint
        self._has_conditions: bool | None = None

    def ask(
        self, where: str, ask: Callable[_Args, Awaitable[_Result]], *args: _Args.args, **kwargs: _Args.kwargs
    ) -> _Result:
        """Ask the store for something, again if the connection breaks.

        Args:
            where: key or folder, for messages.
            ask: method of a client or an upload, with its arguments.
            args: positional ones.
            kwargs: others.

        Raises:
            FileNotFoundError: there is no such object.
            Conflict: the condition does not hold.
            BucketNotFound, StoreRefuses, StoreUnreachable, TransferError: what was asked for cannot be.
        """

        async def patiently() -> _Result:
            for failures in range(1, self.client.tries):
                try:
                    return await ask(*args, **kwargs)
                except Exception as error:
                    if cause_of(error)[0] is not Cause.PASSING:
                        raise
                # Longer each time: a store that is overloaded gets no relief from clients that ask again at once.
                await asyncio.sleep(0.1 * 4**failures)
            return await ask(*args, **kwargs)

        from fsspec.asyn import sync

        try:
            result: _Result = sync(self.client.loop, patiently)
        except Exception as error:  # noqa: BLE001 (each library has errors of its own)
            raise self._told(error, where) from None
        return result

    def demand(
        self, where: str, ask: Callable[_Args, Awaitable[_Result]], *args: _Args.args, **kwargs: _Args.kwargs
    ) -> _Result:
        """Ask for what needs no object but the bucket; else like `ask`."""
        try:
            return self.ask(where, ask, *args, **kwargs)
        except FileNotFoundError:
            raise self._no_bucket() from None
        except Conflict as error:
            raise self.refused_change(where) from error

    def refused_change(self, key: str) -> TransferError:
        """The error of a store that refuses to change an object, though nobody has set a condition."""
        return TransferError(
            f"{self.where(key)}: the store refuses to change this",
            hint="Is another change of it under way, or does a rule of the bucket keep it?",
        )

    def list(self, folder: str) -> Listing:
        """Return what is directly in a folder; `folder` is empty or ends in a slash."""
        return self.demand(folder, self.client.list, folder)

    def keys(self, prefix: str) -> Iterator[tuple[str, int, float]]:
        """Yield the objects whose keys begin with that: key, bytes, and when it was written, in seconds since 1970."""
        token: str | None = None
        while True:
            page = self.demand(prefix, self.client.keys, prefix, token)
            yield from page.objects
            if page.next is None:
                return
            token = page.next

    def write_if(self, key: str, data: bytes, version: str | None) -> bool:
        """Write an object if it still has that version; None: if it is not there.

        Args:
            key: name of the object in the bucket.
            data: the new content.
            version: the version that must still be there, None for no object.

        Returns:
            whether that was certain: False if the store has no conditional writes, so that it was written anyway.

        Raises:
            Conflict: somebody else was first.
        """
        if self._has_conditions is None:
            # Some servers that speak the protocol of S3 overlook conditions: the first write has one that cannot hold.
            self._has_conditions = self.demand(key, self.client.has_conditions, key, data)
            if not self._has_conditions:
                return False
        if not self._has_conditions:
            self.demand(key, self.client.put, key, data)
            return False
        try:
            self.ask(key, self.client.replace, key, data, version)
        except FileNotFoundError:
            # Stores answer "not found" to a condition on an object that has gone: somebody else was first. Without a
            # condition on one, only the bucket can be missing.
            raise (self._no_bucket() if version is None else Conflict(key)) from None
        return True

    def where(self, key: str) -> str:
        """The URL of an object or folder."""
        return f"{self.url}/{key}".rstrip("/")

    def _told(self, error: Exception, key: str) -> Exception:
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
                return StoreRefuses(f"{where}: there are no credentials for this place", hint=self._hint)
            case Cause.DENIED:
                return StoreRefuses(f"{where}: access denied ({word})", hint=f"May you do this there? {self._hint}")
            case Cause.UNREACHABLE:
                return StoreUnreachable(
                    f"{where}: the store cannot be reached ({word})",
                    hint="Is the address right, and is there a network connection?",
                )
            case Cause.PASSING:
                return StoreUnreachable(
                    f"{where}: the store does not answer as it should ({word})",
                    hint="Try again later; what was copied whole is not sent again.",
                )
        return TransferError(f"{where}: the store cannot do this ({word})", hint=f"Check the address. {self._hint}")

    def _no_bucket(self) -> BucketNotFound:
        return BucketNotFound(
            f"There is no bucket {self.url}",
            hint="Check its name. Buckets are made with the tools of the store, datasets in them by `odf push`.",
        )


def required_word(value: Any) -> str:
    """A word of a library's answer that must be there."""
    if not isinstance(value, str) or not value:
        raise TransferError("The store gives its objects no versions", hint="It cannot be used to push to.")
    return value
