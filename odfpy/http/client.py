"""An HTTP client with connection reuse."""

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
    """A response: status, headers, and the body as a stream. Must be closed after use.

    Reading a body that is truncated, too slow or too long raises the client's error.

    Attributes:
        status: status code.
        headers: headers; lookup is case-insensitive.
        url: URL of the response after redirects, without user and password.
        shown: name of the document in messages.
        space: address space of the server.
        length: length of the body, if the server has announced it.
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
        """Return True."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Read at least one byte except at the end, at most `size`; without a size, the rest."""
        return self.readall() if size is None or size < 0 else self._read(size)

    def readinto(self, buffer: Any) -> int:
        """Read at least one byte, except at the end."""
        view = memoryview(buffer).cast("B")
        data = self._read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Discard the rest of the body. A thread that is waiting for it is woken, and gets an error."""
        if not self._released:
            self._connection.interrupt()
        with self._lock:
            self._release(reusable=False)
            super().close()

    def check(self, encodings: Collection[str]) -> None:
        """Reject a document by its headers, if it has a content encoding or is longer than the limit."""
        encoding = self.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding != "identity" and encoding not in encodings:
            raise self._failure(
                f"the server sends {encoding!r} encoding, which was not asked for",
                hint="The server may also have a compressed file (.gz): fetch that, and use `prepare`.",
            )
        if self.length is not None and self._max_size is not None and self.length > self._max_size:
            raise self._failure(f"{self.length} bytes are announced, {self._max_size} are allowed")

    def skip(self) -> None:
        """Read the rest if it is short, so that the connection can be reused; otherwise close the connection."""
        self._max_size = None
        if self.length is not None and self.length <= _SMALL_BODY:
            self.readall()
        self.close()

    def _read(self, size: int) -> bytes:
        with self._lock:
            if self.closed:
                raise self._client.error(f"{self.shown}: stopped after {self._count} bytes")
            return b"" if self._released or not size else self._receive(size)

    def _receive(self, size: int) -> bytes:
        try:
            data = self._raw.read1(size)
        except (OSError, http.client.HTTPException, ValueError) as error:
            problem = f"interrupted after {self._count} bytes: {reason(error)}"
            raise self._failure(problem, self._client.interrupted, _AGAIN) from error
        self._count += len(data)
        if self._max_size is not None and self._count > self._max_size:
            raise self._failure(f"more than the {self._max_size} bytes that are allowed")
        if not data or self._count == self._expected:
            self._finish()
        return data

    def _finish(self) -> None:
        if self._expected is not None and self._count < self._expected:
            problem = f"interrupted after {self._count} of {self._expected} bytes"
            raise self._failure(problem, self._client.interrupted, _AGAIN)
        surplus = self._connection.surplus()
        if self.status in _DOCUMENTS and self._expected is not None and surplus.strip(b"\r\n"):
            raise self._failure(f"more than the {self._expected} announced bytes")
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
    """Sends requests to servers; thread-safe.

    Proxies are taken from the environment (`http_proxy`, `https_proxy`, `no_proxy`).

    Attributes:
        error: class of the exceptions to raise.
        interrupted: class of exceptions for errors that a retry may avoid: a dropped connection, a timeout.
        timeout: seconds to wait for a connection, or for the next bytes.
        authorize: returns the `Authorization` header for a server if the URL has no user; the header is never sent to
            another server after a redirect.
        admit: raises an error if a redirect to a URL is not permitted.
        nearest: the nearest permitted address space of servers, for untrusted URLs.
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
        """Request a document, following redirects. A response with any other status is not an error.

        A redirect must not lead to a nearer address space than that of its server (`odfpy.http.spaces`).

        Args:
            url: an http or https URL; a user name and password in it are sent, and omitted in messages.
            headers: additional headers; after a redirect to another server, only those that cannot contain secrets are
                sent.
            max_size: maximum length of the body.
            label: name of the document in messages, if its path or query may contain secrets.
            encodings: accepted content encodings; the body is not decoded.

        Raises:
            self.error: the connection fails, times out, violates HTTP, has too many redirects, or the body is too long.
        """
        answer = self._follow("GET", url, headers, max_size, label)
        if answer.status in _DOCUMENTS:
            answer.check(encodings)
        return answer

    def head(self, url: str, headers: Mapping[str, str] | None = None) -> HttpResponse:
        """Request the headers of a document; otherwise like `get`."""
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
        """Send a query that is too long for a URL; otherwise like `get`, but redirects are not followed.

        The request must be idempotent: it is repeated if the connection breaks.

        Args:
            url: URL of the endpoint.
            body: body of the request.
            headers: additional headers.
            max_size: maximum length of the response; None for the client's limit.
            label: name of the URL in messages; the URL by default.
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
        """Upload a document. It is sent once: redirects are not followed, and a broken connection is an error.

        Args:
            url: target URL.
            body: the document, which has `size` bytes.
            size: size in bytes.
            headers: additional headers.
            label: name of the document in messages, if its path or query may contain secrets.

        Raises:
            self.error: the connection fails, times out, or violates HTTP.
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
        """Send a request with another method; otherwise like `put`.

        Args:
            method: PUT, PATCH or POST.
            url: target URL.
            body: body of the request, which has `size` bytes.
            size: size in bytes.
            headers: additional headers.
            max_size: maximum length of the response.
            label: name of the URL in messages; the URL by default.
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
            self._raise_translated(error, f"Cannot write {target.shown}")
            raise

    def close(self) -> None:
        """Close idle connections. The client stays usable."""
        with self._lock:
            _close_all(self._idle)

    def keep(self, connection: HttpConnection) -> None:
        """Return an idle connection to the pool."""
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
            hint="Try the URL in a browser; the server may require a login.",
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
                    continue  # a server may close an idle connection at any time: retry
                self._raise_translated(error, f"Cannot read {target.shown}")
                raise

    def _raise_translated(self, error: BaseException, problem: str) -> None:
        """Convert an error of a connection to the client's error, and raise it."""
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
        # Certificates are verified against those of the system; loading these is slow, so all connections share them.
        return ssl.create_default_context()


def _close_all(connections: list[HttpConnection]) -> None:
    while connections:
        connections.pop().close()
