"""A persistent connection to a server, with limits on how long the server can block it."""

from __future__ import annotations

import contextlib
import http.client
import io
import os
import select
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from odfpy.errors import OdfError
from odfpy.http.limits import Pace
from odfpy.http.spaces import AddressSpace, space_of_host, space_of_peer
from odfpy.http.url import Origin, Target, parse_url

MAX_HEAD = 512 * 1024
"""Maximum size of a response's headers in bytes."""

_BLOCK = 256 * 1024
_HEADERS = {"User-Agent": "odfpy", "Accept": "*/*", "Accept-Encoding": "identity"}


class HttpConnection:
    """A connection to an origin, directly or through the proxy configured in the environment.

    Attributes:
        origin: the origin.
    """

    def __init__(
        self, origin: Origin, *, timeout: float, tls: Callable[[], ssl.SSLContext], error: type[OdfError]
    ) -> None:
        self.origin = origin
        self._timeout = timeout
        proxy = _proxy_of(origin, error)
        first = proxy.origin if proxy else origin
        proxy_headers = {"Proxy-Authorization": proxy.authorization} if proxy and proxy.authorization else {}
        self._absolute = proxy is not None and origin.scheme == "http"
        self._headers = {**_HEADERS, **(proxy_headers if self._absolute else {})}
        self._http: http.client.HTTPConnection
        if origin.scheme == "https":
            self._http = http.client.HTTPSConnection(
                first.host, first.port, timeout=timeout, context=tls(), blocksize=_BLOCK
            )
            if proxy:
                self._http.set_tunnel(origin.host, origin.port, proxy_headers)
        else:
            self._http = http.client.HTTPConnection(first.host, first.port, timeout=timeout, blocksize=_BLOCK)
        self._http.response_class = _PacedResponse
        self._is_proxied = proxy is not None
        self._space: AddressSpace | None = None
        self._socket: socket.socket | None = None
        self._answer: http.client.HTTPResponse | None = None

    def exchange(
        self, method: str, target: Target, headers: Mapping[str, str], body: bytes | BinaryIO | None = None
    ) -> http.client.HTTPResponse:
        """Send a request and read the head of the response. A server may respond before reading the whole body.

        Args:
            method: method of the request.
            target: request target.
            headers: all headers of the request.
            body: bytes or a file to send, None for no body.

        Raises:
            OSError, http.client.HTTPException, ValueError: errors of the standard library; see `reason`.
        """
        path = str(target) if self._absolute else target.path
        given = {name.lower() for name in headers}
        own = {name: value for name, value in self._headers.items() if name.lower() not in given}
        try:
            self._http.request(method, path, body, {**own, **headers})
        except (BrokenPipeError, ConnectionResetError):
            if body is None or isinstance(body, bytes):
                raise
        self._socket = self._http.sock
        self._answer = self._http.getresponse()
        return self._answer

    @property
    def space(self) -> AddressSpace:
        """Return the address space of the origin; connect if the name does not determine it.

        Raises:
            OSError, http.client.HTTPException, ValueError: errors of the standard library; see `reason`.
        """
        if self._space is None:
            space = space_of_host(self.origin.host)
            if space is AddressSpace.PUBLIC and not self._is_proxied:
                self._http.connect()
                space = space_of_peer(self._http.sock)
            self._space = space
        return self._space

    def is_quiet(self) -> bool:
        """Return whether the connection is idle: open, and without unexpected bytes."""
        if self._socket is None:
            return False
        watch = select.poll()
        watch.register(self._socket, select.POLLIN)
        return not watch.poll(0)

    def surplus(self) -> bytes:
        """Return bytes received after the end of the last response, without waiting."""
        buffered = self._answer.surplus() if isinstance(self._answer, _PacedResponse) else b""
        if not buffered and self._socket is not None:
            with contextlib.suppress(OSError, ValueError):  # no bytes, or TLS, which does not support peeking
                self._socket.settimeout(0)
                buffered = self._socket.recv(64, socket.MSG_PEEK)
            with contextlib.suppress(OSError):
                self._socket.settimeout(self._timeout)
        return buffered

    def interrupt(self) -> None:
        """Wake a thread that waits for bytes; it gets an error."""
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it may be closed already
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """End the connection."""
        self.interrupt()
        self._http.close()


class _PacedResponse(http.client.HTTPResponse):
    """Response of the standard library, with a reader that limits slow servers and endless headers."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self._left = b""
        self._paced = MinimumRateReader(self.fp.detach())
        self.fp = io.BufferedReader(self._paced)

    def begin(self) -> None:
        super().begin()
        self._paced.limit = None

    def surplus(self) -> bytes:
        """Return buffered bytes after the end of the response."""
        if self.fp is not None:
            self._paced.is_shut = True
            self._left = self.fp.peek()
        return self._left

    def _close_conn(self) -> None:
        self.surplus()
        super()._close_conn()  # type: ignore[misc]


class MinimumRateReader(io.RawIOBase):
    """Reader of a socket with a minimum rate. Only the time spent waiting counts.

    Attributes:
        limit: maximum number of bytes.
        is_shut: whether the socket must no longer be read.
    """

    def __init__(self, raw: io.RawIOBase, limit: int | None = MAX_HEAD) -> None:
        super().__init__()
        self.limit = limit
        self.is_shut = False
        self._raw = raw
        self._count = 0
        self._pace = Pace()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self.is_shut:
            return 0
        start = time.monotonic()
        count = self._raw.readinto(buffer) or 0
        self._count += count
        if self.limit is not None and self._count > self.limit:
            raise http.client.HTTPException("its headers are too long")
        self._pace.wait(time.monotonic() - start, count)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


def space_at(origin: Origin, peer: socket.socket, error: type[OdfError]) -> AddressSpace:
    """Return the address space of an origin, for a socket that another library has connected, possibly through a proxy.

    Args:
        origin: the origin.
        peer: the connected socket.
        error: class of the error to raise.
    """
    return space_of_peer(peer) if _proxy_of(origin, error) is None else space_of_host(origin.host)


def _proxy_of(origin: Origin, error: type[OdfError]) -> Target | None:
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    import urllib.request  # rarely needed, slow to load

    proxies = urllib.request.getproxies_environment()
    url = proxies.get(origin.scheme) or proxies.get("all")
    if not url or urllib.request.proxy_bypass(f"{origin.host}:{origin.port}"):
        return None
    return parse_url(url if "://" in url else f"http://{url}", error)


def reason(error: Exception) -> str:
    """Return the reason for an error, for users."""
    match error:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted ({error.verify_message})"
        case http.client.RemoteDisconnected():
            return "the server closed the connection without an answer"
        case http.client.IncompleteRead():
            return "the server closed the connection"
        case http.client.BadStatusLine():
            return "the answer is not HTTP"
        case TimeoutError():
            return "timed out" if str(error) in ("", "timed out") else str(error)
        case OSError():
            return error.strerror or str(error)
    return str(error) or type(error).__name__


def may_pass(error: Exception) -> bool:
    """Return whether a retry may succeed, since the connection was dropped or timed out."""
    passing = (ConnectionError, TimeoutError, EOFError, ssl.SSLEOFError, http.client.IncompleteRead)
    return isinstance(error, passing) and not isinstance(error, ConnectionRefusedError)


def hint(error: Exception) -> str:
    """Return a hint for the user."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "For a certificate of your own authority, set SSL_CERT_FILE to its file."
    return "Check the address and the network connection."
