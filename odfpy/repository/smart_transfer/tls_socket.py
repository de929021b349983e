"""TLS sockets that one thread reads while another one writes.

OpenSSL wants calls on one connection to come one after the other. Two threads that call at the same time are not merely
slow: a session ticket of TLS 1.3 that is read while a request is written leaves the writer waiting for bytes that the
reader already took, and both wait until the server gives up.
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

# The other thread may take the bytes that a call waits for, so a call looks again after this many seconds.
_LOOK_AGAIN = 0.05


class SharedTlsSocket:
    """Those methods of a TLS socket that a WebSocket connection uses, for one reader and one writer at a time."""

    def __init__(self, peer: ssl.SSLSocket) -> None:
        self._peer = peer
        self._timeout = peer.gettimeout()
        self._lock = threading.Lock()
        peer.setblocking(False)

    def recv(self, size: int) -> bytes:
        """Bytes that were received, at most `size`; none when the other side has closed.

        Raises:
            OSError: the connection broke, or the time of `settimeout` went by.
        """
        return self._finished(partial(self._peer.recv, size))

    def sendall(self, data: bytes) -> None:
        """Send all of the bytes.

        Raises:
            OSError: the connection broke, or the time of `settimeout` went by.
        """
        left = memoryview(data)
        while left:
            left = left[self._finished(partial(self._peer.send, left)) :]

    def settimeout(self, seconds: float | None) -> None:
        """Let calls that begin from now on take at most this long."""
        self._timeout = seconds

    def gettimeout(self) -> float | None:
        """The seconds that a call may take."""
        return self._timeout

    def shutdown(self, how: int) -> None:
        """End one or both directions, and wake the calls that wait."""
        socket.socket.shutdown(self._peer, how)

    def close(self) -> None:
        """Close the socket; a call that waits in another thread ends."""
        with suppress(OSError):  # the other side has gone already
            self.shutdown(socket.SHUT_RDWR)
        self._peer.close()

    def fileno(self) -> int:
        """The file descriptor; -1 when closed."""
        return self._peer.fileno()

    def getsockname(self) -> object:
        """The address of this side."""
        return self._peer.getsockname()

    def getpeername(self) -> object:
        """The address of the other side."""
        return self._peer.getpeername()

    def _finished(self, call: Callable[[], T]) -> T:
        """The result of a call that is made again until it need not wait; others go on while it waits."""
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
