"""TLS sockets that are read and written by two threads at the same time."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from support.servers.certificates import self_signed

from odfpy.repository.smart_transfer.tls_socket import SharedTlsSocket

PATIENCE = 300.0
LARGE = bytes(range(256)) * (1 << 14)  # 4 MiB: more than both sides' buffers take


class OneAtATime(ssl.SSLSocket):
    """A peer that notices calls which overlap, as OpenSSL does not."""

    overlaps = 0
    busy = False

    def _alone(self, call):
        if self.busy:
            type(self).overlaps += 1
        self.busy = True
        try:
            time.sleep(0.0005)  # lets the other thread in, if it may come in
            return call()
        finally:
            self.busy = False

    def recv(self, *args):
        return self._alone(lambda: ssl.SSLSocket.recv(self, *args))

    def send(self, *args):
        return self._alone(lambda: ssl.SSLSocket.send(self, *args))


@pytest.fixture
def ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[SharedTlsSocket, ssl.SSLSocket]]:
    """The client's end, and the server's end as the library gives it."""
    certificate, key = self_signed(tmp_path)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    asking = ssl.create_default_context(cafile=str(certificate))
    monkeypatch.setattr(asking, "sslsocket_class", OneAtATime, raising=False)
    monkeypatch.setattr(OneAtATime, "overlaps", 0)
    here, there = socket.socketpair()
    with ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(serving.wrap_socket, there, server_side=True)
        peer = asking.wrap_socket(here, server_hostname="127.0.0.1")
        server = accepted.result(PATIENCE)
    shared = SharedTlsSocket(peer)
    shared.settimeout(PATIENCE)
    server.settimeout(PATIENCE)
    yield shared, server
    shared.close()
    server.close()


def _read(end: SharedTlsSocket | ssl.SSLSocket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = end.recv(1 << 16)
        assert part
        parts += part
    return parts


def test_reads_and_writes_take_turns_and_none_waits_for_the_other(ends: tuple[SharedTlsSocket, ssl.SSLSocket]):
    shared, server = ends
    with ThreadPoolExecutor(2) as pool:
        read = pool.submit(_read, shared, len(LARGE))
        wrote = pool.submit(shared.sendall, LARGE)
        # The server writes all before it reads a byte: the client must go on reading while it cannot write.
        server.sendall(LARGE)
        assert _read(server, len(LARGE)) == LARGE
        assert read.result(PATIENCE) == LARGE
        wrote.result(PATIENCE)
    assert OneAtATime.overlaps == 0


def test_a_call_ends_after_its_timeout(ends: tuple[SharedTlsSocket, ssl.SSLSocket]):
    shared, _ = ends
    shared.settimeout(0.2)
    with pytest.raises(TimeoutError):
        shared.recv(10)


def test_closing_wakes_a_thread_that_reads(ends: tuple[SharedTlsSocket, ssl.SSLSocket]):
    shared, _ = ends
    shared.settimeout(None)
    ended = threading.Event()

    def read() -> None:
        with suppress(OSError, ValueError):
            shared.recv(10)
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    time.sleep(0.2)
    shared.close()
    assert ended.wait(PATIENCE)


def test_the_other_sides_end_is_the_end(ends: tuple[SharedTlsSocket, ssl.SSLSocket]):
    shared, server = ends
    server.sendall(b"last words")
    server.close()
    assert _read(shared, 10) == b"last words"
    assert shared.recv(10) == b""
