"""HTTP object stores for one conversation, with the URLs that the server has sent.

The server is not trusted: only http and https are used, https never redirects to http, a public server never to a
service of this machine (`odfpy.http.spaces`), and headers that affect routing are dropped. No access tokens are
sent: each URL contains the required authorization.
"""

from __future__ import annotations

import io
import re
import threading
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from odfpy.chain.stores.object_store import CHUNK, ObjectStore
from odfpy.data.multihash import Multihash
from odfpy.errors import IntegrityError, InternalError, ObjectNotFound, TransferError
from odfpy.http.client import HttpClient, HttpResponse
from odfpy.http.resume import ResumableDownload
from odfpy.http.url import parse_url
from odfpy.repository.partial_objects import LARGE
from odfpy.repository.peer_errors import ProtocolViolation
from odfpy.repository.smart_transfer.messages import TransferUrl
from odfpy.repository.smart_transfer.session import Located

OFFSET_HEADER = "Upload-Offset"
"""Header with the number of received bytes of an object, in the response to HEAD of the upload URL."""

_MAX_HEADERS = 50
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_HEADER_VALUE = re.compile(r"[\x20-\x7e]{0,8192}")
_STEERING = ("connection", "content-length", "expect", "host", "te", "trailer", "transfer-encoding", "upgrade")
_MAX_PROBLEM = 1000
_ABSENT = (404, 410)


class LocatedObjects(ObjectStore):
    """Objects of one kind in a conversation."""

    def __init__(self, files: Iterable[Located], base: str, client: HttpClient) -> None:
        """
        Args:
            files: the objects.
            base: URL of the dataset on the server that has sent the URLs.
            client: HTTP client to use.
        """
        self._files = {located.item.name: located for located in files}
        self._is_safe = base.startswith("https:")
        self._client = client

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def __iter__(self) -> Iterator[Multihash]:
        return iter(self._files)

    def size(self, name: Multihash) -> int:
        return self._files[name].item.size

    def describe(self, name: Multihash) -> str:
        origin = parse_url(self._files[name].url.url, ProtocolViolation, "where the server says an object is").origin
        return f"object {name} at {origin}"

    @abstractmethod
    def open(self, name: Multihash) -> BinaryIO: ...

    def insert_stream(self, stream: BinaryIO, name: Multihash, *, size: int | None = None) -> None:
        del stream, name, size
        self._refuse()

    def insert_file(self, path: Path, name: Multihash) -> None:
        del path, name
        self._refuse()

    def delete(self, name: Multihash) -> None:
        del name
        self._refuse()

    def _request(self, name: Multihash) -> tuple[str, dict[str, str]]:
        """Return URL and headers for the request of an object."""
        place = self._files[name].url
        origin = parse_url(place.url, ProtocolViolation, "where the server says an object is").origin
        if self._is_safe and origin.scheme != "https":
            raise ProtocolViolation(f"The server redirects from https to {origin} for object {name}, which is not safe")
        return place.url, _headers_of(place)

    def _problem(self, name: Multihash, answer: HttpResponse) -> str:
        with answer:
            text = answer.read(_MAX_PROBLEM).decode("utf-8", "replace").strip()
        said = f": {text}" if text.isprintable() and text else ""
        return f"{self.describe(name)}: the server answers with status {answer.status}{said}"

    @staticmethod
    def _refuse() -> NoReturn:
        raise InternalError("Objects at a URL are only got, or only put")


class Downloads(LocatedObjects):
    """Objects to download."""

    writable = False

    def open(self, name: Multihash) -> BinaryIO:
        return self.open_at(name, 0)

    def open_at(self, name: Multihash, start: int) -> BinaryIO:
        url, headers = self._request(name)
        where = self.describe(name)

        def ask(more: dict[str, str]) -> HttpResponse:
            return self._client.get(url, {**headers, **more}, max_size=self.size(name), label=where)

        def require(answer: HttpResponse) -> None:
            if answer.status in _ABSENT:
                raise ObjectNotFound(f"Missing object: {self._problem(name, answer)}")
            if answer.status != 200:
                hint = "Run the command again: URLs expire after a while."
                raise TransferError(self._problem(name, answer), hint=hint)

        return cast("BinaryIO", ResumableDownload(ask, require, where, start))


class Uploads(LocatedObjects):
    """Objects to upload.

    Attributes:
        count: number of uploaded objects.
        goes_on: whether the server supports resuming uploads.
    """

    def __init__(self, files: Iterable[Located], base: str, client: HttpClient) -> None:
        super().__init__(files, base, client)
        self.count = 0
        self.goes_on = False
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Make running uploads fail."""
        self._stopped.set()

    def open(self, name: Multihash) -> BinaryIO:
        del name
        self._refuse()

    def insert_stream(self, stream: BinaryIO, name: Multihash, *, size: int | None = None) -> None:
        url, headers = self._request(name)
        expected = self.size(name) if size is None else size
        headers = {"Content-Type": "application/octet-stream", **headers}
        begin = self._arrived(url, headers, expected) if self.goes_on and expected >= LARGE else 0
        if begin:
            _pass_over(stream, begin)
            headers["Content-Range"] = f"bytes {begin}-{expected - 1}/{expected}"
        body = cast("BinaryIO", _Measured(stream, expected - begin, str(name), self._stopped))
        answer = self._client.put(url, body, expected - begin, headers, label=self.describe(name))
        if not 200 <= answer.status < 300:
            raise TransferError(self._problem(name, answer), hint="`odf verify` checks the dataset here.")
        answer.skip()
        with self._lock:
            self.count += 1

    def _arrived(self, url: str, headers: Mapping[str, str], size: int) -> int:
        """Return the number of bytes that the server has of an incomplete object."""
        with self._client.head(url, headers) as answer:
            offset = answer.headers.get(OFFSET_HEADER, "")
        arrived = int(offset) if offset.isdecimal() and len(offset) < 20 else 0
        return arrived if arrived < size else 0


def _pass_over(stream: BinaryIO, count: int) -> None:
    while count > 0 and (data := stream.read(min(count, CHUNK))):
        count -= len(data)


class _Measured(io.RawIOBase):
    """A stream that raises an error unless it has exactly the announced length."""

    def __init__(self, stream: BinaryIO, size: int, name: str, stopped: threading.Event) -> None:
        super().__init__()
        self._stopped = stopped
        self._stream = stream
        self._left = size
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._stopped.is_set():
            raise TransferError("Stopped, since the connection was closed")
        view = memoryview(buffer).cast("B")
        data = self._stream.read(len(view))
        self._left -= len(data)
        if self._left < 0 or (not data and self._left):
            raise IntegrityError(f"Object {self._name} has another size than its block says")
        view[: len(data)] = data
        return len(data)


def _headers_of(url: TransferUrl) -> dict[str, str]:
    if len(url.headers) > _MAX_HEADERS:
        raise ProtocolViolation(f"The server wants {len(url.headers)} headers to be sent")
    headers = {row.name: row.value for row in url.headers if row.name.lower() not in _STEERING}
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise ProtocolViolation(f"The server asks for an invalid header to be sent: {name[:100]!r}")
    return headers
