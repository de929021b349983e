"""TLS sockets for one reading and one writing thread.

OpenSSL requires calls on one connection to be serialized. Concurrent calls may deadlock: if a TLS 1.3 session ticket is
read while a request is written, the writer waits for bytes that the reader has already consumed, and both block until
the server times out.
"""

from __future__ import annotations

import selectors
import socket
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

T = TypeVar("T")

# The other thread may consume the bytes that a call waits for, so calls poll at this interval, in seconds.
_LOOK_AGAIN = 0.05


class SharedTlsSocket:
    """The socket methods that a WebSocket connection uses, for one concurrent reader and one writer."""

    def __init__(self, peer: ssl.SSLSocket) -> None:
        self._peer = peer
        self._timeout = peer.gettimeout()
        self._lock = threading.Lock()
        peer.setblocking(False)

    def recv(self, size: int) -> bytes:
        """Receive at most `size` bytes; none if the peer has closed the connection.

        Raises:
            OSError: the connection is broken, or the timeout has expired.
        """
        return self._finished(partial(self._peer.recv, size))

    def sendall(self, data: bytes) -> None:
        """Send all bytes.

        Raises:
            OSError: the connection is broken, or the timeout has expired.
        """
        left = memoryview(data)
        while left:
            left = left[self._finished(partial(self._peer.send, left)) :]

    def settimeout(self, seconds: float | None) -> None:
        """Set the timeout of subsequent calls."""
        self._timeout = seconds

    def gettimeout(self) -> float | None:
        """Return the timeout."""
        return self._timeout

    def shutdown(self, how: int) -> None:
        """Shut down one or both directions, and wake waiting calls."""
        socket.socket.shutdown(self._peer, how)

    def close(self) -> None:
        """Close the socket, and end waiting calls in other threads."""
        with suppress(OSError):  # the peer has already disconnected
            self.shutdown(socket.SHUT_RDWR)
        self._peer.close()

    def fileno(self) -> int:
        """Return the file descriptor; -1 when closed."""
        return self._peer.fileno()

    def getsockname(self) -> object:
        """Return the local address."""
        return self._peer.getsockname()

    def getpeername(self) -> object:
        """Return the peer's address."""
        return self._peer.getpeername()

    def _finished(self, call: Callable[[], T]) -> T:
        """Repeat a non-blocking call until it succeeds; calls of the other thread can run while this one waits."""
        timeout = self._timeout
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                with self._lock:
                    return call()
            except ssl.SSLWantReadError:
                events = selectors.EVENT_READ
            except ssl.SSLWantWriteError:
                events = selectors.EVENT_WRITE
            left = _LOOK_AGAIN if end is None else min(_LOOK_AGAIN, end - time.monotonic())
            if left <= 0:
                raise TimeoutError("timed out")
            with selectors.DefaultSelector() as selector:
                selector.register(self._peer, events)
                selector.select(left)
