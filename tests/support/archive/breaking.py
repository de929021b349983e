"""A proxy before a server, that breaks connections off after some bytes."""

from __future__ import annotations

import contextlib
import socket
import threading
from urllib.parse import urlsplit


class BreakingProxy:
    """A proxy that breaks the connection after a number of bytes, a few times.

    Attributes:
        url: URL of the proxy.
        broken: connections that it has broken off.
        up: bytes that it has passed on to the server.
        down: bytes that it has passed on to clients.
    """

    def __init__(self, url: str, *, up: int = 1 << 60, down: int = 1 << 60, times: int = 1) -> None:
        """
        Args:
            url: URL of the server.
            up: bytes of one connection to the server after which it breaks.
            down: bytes of one connection to the client after which it breaks.
            times: how often.
        """
        parts = urlsplit(url)
        self._server = (parts.hostname or "", parts.port or 80)
        self._most = {True: up, False: down}
        self._times = times
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.broken = self.up = self.down = 0
        self._threads[0].start()

    def close(self) -> None:
        """Stop the proxy."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._open:
            _end(one)
        for thread in self._threads:
            thread.join(30)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._server)
            self._open += [client, server]
            for source, target, is_up in ((client, server, True), (server, client, False)):
                thread = threading.Thread(target=self._pass, args=(source, target, is_up))
                self._threads.append(thread)
                thread.start()

    def _pass(self, source: socket.socket, target: socket.socket, is_up: bool) -> None:
        count = 0
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
                count += len(data)
                with self._lock:
                    self.up += len(data) if is_up else 0
                    self.down += 0 if is_up else len(data)
                    if count >= self._most[is_up] and self.broken < self._times:
                        self.broken += 1
                        break
        _end(source)
        _end(target)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
