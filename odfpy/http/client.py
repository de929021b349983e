"""A client that asks servers for documents, over connections that are kept and used again."""

from __future__ import annotations

import http.client
import io
import re
import ssl
import threading
import weakref
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any, BinaryIO

from odfpy.errors import OdfError
from odfpy.http.connection import HttpConnection, hint, may_pass, reason
from odfpy.http.spaces import AddressSpace, require_no_nearer
from odfpy.http.url import Origin, Target, follow, parse_url, without_user

TIMEOUT = 30.0
"""Seconds to wait for a connection, or for the next bytes."""

MAX_REDIRECTS = 10

_DOCUMENTS = (200, 206)
_REDIRECTS = (301, 302, 303, 307, 308)
_SMALL_BODY = 64 * 1024
_MAX_IDLE = 16
_AGAIN = "Run the command again."
_PUBLIC_HEADERS = ("accept", "if-modified-since", "if-none-match", "if-range", "range")


class HttpResponse(io.RawIOBase):
    """An answer: status, headers, and the body as a stream. Close it after use.

    A body that is cut short, too slow or too long raises the client's error while it is read.

    Attributes:
        status: the status code.
        headers: the headers; looking one up does not regard case.
        url: where the answer came from, after redirects, without user and password.
        shown: what to call the document in messages.
        space: how near to this machine the server is.
        length: bytes of the document if the server announces them.
    """

    def __init__(
        self,
        client: HttpClient,
        connection: HttpConnection,
        raw: http.client.HTTPResponse,
        target: Target,
        max_size: int | None,
    ) -> None:
        super().__init__()
        self.status = raw.status
        self.headers = raw.headers
        self.url = str(target)
        self.shown = target.shown
        self.space = connection.space
        announced = self.headers.get("Content-Length", "")
        self.length = int(announced) if re.fullmatch("[0-9]{1,18}", announced) and not raw.chunked else None
        self._client = client
        self._connection = connection
        self._raw = raw
        self._expected = raw.length
        self._max_size = max_size
        self._count = 0
        self._released = False
        self._lock = threading.RLock()
        if self._expected == 0:
            self._finish()

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, at least one except at the end, at most `size`; without a size, all the rest."""
        return self.readall() if size is None or size < 0 else self._read(size)

    def readinto(self, buffer: Any) -> int:
        """The next bytes, at least one except at the end."""
        view = memoryview(buffer).cast("B")
        data = self._read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Give up what is left of the body. A thread that waits for it is woken, and gets an error."""
        if not self._released:
            self._connection.interrupt()
        with self._lock:
            self._release(reusable=False)
            super().close()

    def check(self, encodings: Collection[str]) -> None:
        """Refuse a document by its headers: one that is encoded, or whose length is beyond the limit."""
        encoding = self.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding != "identity" and encoding not in encodings:
            raise self._failure(
                f"the server sends {encoding!r} encoding, which was not asked for",
                hint="Perhaps it also has the file itself, packed (.gz): fetch that, and use `prepare`.",
            )
        if self.length is not None and self._max_size is not None and self.length > self._max_size:
            raise self._failure(f"{self.length} bytes are announced, {self._max_size} are allowed")

    def skip(self) -> None:
        """Read the rest if it is short, so that the connection can be used again; else give it up."""
        self._max_size = None
        if self.length is not None and self.length <= _SMALL_BODY:
            self.readall()
        self.close()

    def _read(self, size: int) -> bytes:
        with self._lock:
            if self.closed:
                raise self._client.error(f"{self.shown}: given up after {self._count} bytes")
            return b"" if self._released or not size else self._receive(size)

    def _receive(self, size: int) -> bytes:
        try:
            data = self._raw.read1(size)
        except (OSError, http.client.HTTPException, ValueError) as error:
            problem = f"broken off after {self._count} bytes: {reason(error)}"
            raise self._failure(problem, self._client.interrupted, _AGAIN) from error
        self._count += len(data)
        if self._max_size is not None and self._count > self._max_size:
            raise self._failure(f"more than the {self._max_size} bytes that are allowed")
        if not data or self._count == self._expected:
            self._finish()
        return data

    def _finish(self) -> None:
        if self._expected is not None and self._count < self._expected:
            problem = f"broken off after {self._count} of {self._expected} bytes"
            raise self._failure(problem, self._client.interrupted, _AGAIN)
        surplus = self._connection.surplus()
        if self.status in _DOCUMENTS and self._expected is not None and surplus.strip(b"\r\n"):
            raise self._failure(f"more than the {self._expected} bytes that were announced")
        self._release(reusable=not self._raw.will_close and not surplus)

    def _release(self, *, reusable: bool) -> None:
        if self._released:
            return
        self._released = True
        self._raw.close()
        if reusable:
            self._client.keep(self._connection)
        else:
            self._connection.close()

    def _failure(self, problem: str, error: type[OdfError] | None = None, hint: str | None = None) -> OdfError:
        self.close()
        return (error or self._client.error)(f"{self.shown}: {problem}", hint=hint)


class HttpClient:
    """Asks servers for documents; threads may share it.

    Proxies are taken from the environment (`http_proxy`, `https_proxy`, `no_proxy`).

    Attributes:
        error: the class of the errors that it raises.
        interrupted: the class of those that another try may not meet: a dropped connection, a time-out.
        timeout: seconds to wait for a connection, or for the next bytes.
        authorize: the header `Authorization` for a server where the URL has no user; it is not sent where that
            server redirects to.
        admit: raises where a redirect may not lead to a URL.
        nearest: how near to this machine a server may be, where somebody else says what to ask for.
    """

    def __init__(
        self,
        error: type[OdfError],
        *,
        interrupted: type[OdfError] | None = None,
        timeout: float = TIMEOUT,
        authorize: Callable[[Origin], str | None] = lambda _origin: None,
        admit: Callable[[str], None] | None = None,
        nearest: AddressSpace = AddressSpace.LINK_LOCAL,
    ) -> None:
        self.error = error
        self.interrupted = interrupted or error
        self.timeout = timeout
        self.authorize = authorize
        self.admit = admit
        self.nearest = nearest
        self._lock = threading.Lock()
        self._idle: list[HttpConnection] = []
        weakref.finalize(self, _close_all, self._idle)

    def get(
        self,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        max_size: int | None = None,
        label: str | None = None,
        encodings: Collection[str] = (),
    ) -> HttpResponse:
        """Ask for a document, following redirects. Any other status is an answer, not an error.

        A redirect may not lead nearer to this machine than where it comes from (`odfpy.http.spaces`).

        Args:
            url: an http or https URL; a user name and password in it are sent, and left out of messages.
            headers: more headers; only those that cannot hold secrets follow a redirect to another place.
            max_size: bytes of the body beyond which there is an error.
            label: what to call the document in messages, if its path or query may hold secrets.
            encodings: content encodings that are welcome; the body is given as it comes.

        Raises:
            self.error: no connection, no answer in time, no HTTP, too many redirects, too long.
        """
        answer = self._follow("GET", url, headers, max_size, label)
        if answer.status in _DOCUMENTS:
            answer.check(encodings)
        return answer

    def head(self, url: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
        """Ask for the headers of a document; otherwise as `get`."""
        return self._follow("HEAD", url, headers, None)

    def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        max_size: int | None = None,
        label: str | None = None,
    ) -> HttpResponse:
        """Put a question that is too long for a URL; otherwise as `get`, but a redirect is an answer.

        The question must change nothing on the server: if a connection breaks, it is put again.

        Args:
            url: address of the endpoint.
            body: the question.
            headers: headers beside those of every request.
            max_size: most bytes of the answer; None for the limit of the client.
            label: what messages call the address; the URL by default.
        """
        target = parse_url(url, self.error, label)
        authorization = target.authorization or self.authorize(target.origin)
        fields = {**headers, **({"Authorization": authorization} if authorization else {})}
        answer = self._ask("POST", target, fields, max_size, body=body)
        answer.check(())
        return answer

    def put(
        self, url: str, body: BinaryIO, size: int, headers: Mapping[str, str], *, label: str | None = None
    ) -> HttpResponse:
        """Put a document where it belongs. It is sent once: a redirect is an answer, a broken connection an error.

        Args:
            url: where to.
            body: the document, which has `size` bytes.
            size: bytes.
            headers: more headers.
            label: what to call the document in messages, if its path or query may hold secrets.

        Raises:
            self.error: no connection, no answer in time, no HTTP.
        """
        return self.send("PUT", url, body, size, headers, label=label)

    def send(
        self,
        method: str,
        url: str,
        body: BinaryIO | bytes,
        size: int,
        headers: Mapping[str, str],
        *,
        max_size: int = _SMALL_BODY,
        label: str | None = None,
    ) -> HttpResponse:
        """Send something by another method; otherwise as `put`.

        Args:
            method: PUT, PATCH or POST.
            url: where to.
            body: what is sent, which has `size` bytes.
            size: bytes.
            headers: more headers.
            max_size: bytes that the answer may have.
            label: what messages call the address; the URL by default.
        """
        target = parse_url(url, self.error, label)
        fields = {**headers, **({"Authorization": target.authorization} if target.authorization else {})}
        connection = self._take(target.origin)
        if connection is not None and not connection.is_quiet():
            connection.close()
            connection = None
        connection = connection or self._connect(target.origin)
        try:
            require_no_nearer(target.shown, connection.space, self.nearest, self.error)
            raw = connection.exchange(method, target, {**fields, "Content-Length": str(size)}, body)
            return HttpResponse(self, connection, raw, target, max_size)
        except BaseException as error:
            connection.close()
            self._tell(error, f"Cannot write {target.shown}")
            raise

    def close(self) -> None:
        """Close the connections that are not in use. The client stays usable."""
        with self._lock:
            _close_all(self._idle)

    def keep(self, connection: HttpConnection) -> None:
        """Take back a connection that has no answer in progress."""
        with self._lock:
            self._idle.append(connection)
            surplus = self._idle.pop(0) if len(self._idle) > _MAX_IDLE else None
        if surplus:
            surplus.close()

    def _follow(
        self, method: str, url: str, headers: Mapping[str, str] | None, max_size: int | None, label: str | None = None
    ) -> HttpResponse:
        target = parse_url(url, self.error, label)
        authorization = target.authorization or self.authorize(target.origin)
        fields = {**(headers or {}), **({"Authorization": authorization} if authorization else {})}
        nearest = self.nearest
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._ask(method, target, fields, max_size, nearest)
            location = answer.headers.get("Location")
            if answer.status not in _REDIRECTS or location is None:
                return answer
            answer.skip()
            new = follow(target, location, self.error)
            if new.origin != target.origin:
                if self.admit is not None:
                    self.admit(str(new.origin))
                fields = {name: value for name, value in fields.items() if name.lower() in _PUBLIC_HEADERS}
            target, nearest = new, min(nearest, answer.space)
        raise self.error(
            f"{label or without_user(url)}: redirected more than {MAX_REDIRECTS} times",
            hint="Try the URL in a browser; perhaps the server wants a login first.",
        )

    def _ask(
        self,
        method: str,
        target: Target,
        headers: Mapping[str, str],
        max_size: int | None,
        nearest: AddressSpace | None = None,
        body: bytes | None = None,
    ) -> HttpResponse:
        while True:
            kept = self._take(target.origin)
            connection = kept or self._connect(target.origin)
            try:
                require_no_nearer(
                    target.shown, connection.space, self.nearest if nearest is None else nearest, self.error
                )
                raw = connection.exchange(method, target, headers, body)
                return HttpResponse(self, connection, raw, target, max_size)
            except BaseException as error:
                connection.close()
                if kept is not None and isinstance(error, (ConnectionError, ssl.SSLError)):
                    continue  # a server may close a kept connection at any time: ask again
                self._tell(error, f"Cannot read {target.shown}")
                raise

    def _tell(self, error: BaseException, problem: str) -> None:
        """Raise an error of a connection as one of ours."""
        if isinstance(error, (OSError, http.client.HTTPException, ValueError)):
            failure = self.interrupted if may_pass(error) else self.error
            raise failure(f"{problem}: {reason(error)}", hint=hint(error)) from error

    def _connect(self, origin: Origin) -> HttpConnection:
        return HttpConnection(origin, timeout=self.timeout, tls=lambda: self._tls, error=self.error)

    def _take(self, origin: Origin) -> HttpConnection | None:
        with self._lock:
            for at in reversed(range(len(self._idle))):
                if self._idle[at].origin == origin:
                    return self._idle.pop(at)
        return None

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        # Certificates are checked against those of the machine; loading them is slow, so once for all connections.
        return ssl.create_default_context()


def _close_all(connections: list[HttpConnection]) -> None:
    while connections:
        connections.pop().close()
