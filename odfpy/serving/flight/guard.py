"""A proxy in front of the Flight SQL server, which only lets through what fits the memory budget.

gRPC accepts messages of any length, decompresses them, and starts a thread for each call, before it invokes any
handler. Python cannot configure that. So gRPC listens on a socket in a private folder, and clients connect to the
guard, which parses the passing frames: it charges them to the server's budget, and closes connections that violate a
rule.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow.flight as fl

from odfpy.serving.flight.frames import PREFACE, Call, Frames, Violation, payload_of
from odfpy.serving.http.addresses import Addresses, address_of
from odfpy.serving.http.budget import BudgetHolder, MemoryBudget, OverBudget, Reservation
from odfpy.serving.http.logs import log
from odfpy.serving.http.tls import Tls
from odfpy.serving.settings import ServeSettings

_COPIES: Final = 3
"""Number of copies of received data in memory: in gRPC, as Python bytes, and parsed."""

_HIGH_WATER: Final = 1 << 20
_LOOKS: Final = 4
_ROUNDS: Final = 5
_MIN_PATIENCE: Final = 1.0
_CALLS_PER_ANSWER: Final = 2
_GOAWAY: Final = 0x7
_ENHANCE_YOUR_CALM: Final = 0xB
_PEER: Final = "odf-flight-"


@dataclass(slots=True)
class _Open:
    """A call in progress.

    Attributes:
        call: parser of the client's messages.
        held: memory reserved for them.
        heard: when the client last sent something, by the event loop's clock.
    """

    call: Call
    held: Reservation
    heard: float


@dataclass
class _Rules:
    """Settings and budget shared by all connections."""

    path: Path
    budget: MemoryBudget
    settings: ServeSettings
    addresses: Addresses
    certificates: dict[str, bytes] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    clients: set[_Client] = field(default_factory=set)


class _Client(asyncio.Protocol):
    """The protocol on the client's side of a connection."""

    def __init__(self, rules: _Rules) -> None:
        self._rules = rules
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._open: dict[int, _Open] = {}
        self._first = b""
        self._server: _Server | None = None
        self._dialing: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a client."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - of a stream
        self.transport = transport
        transport.set_write_buffer_limits(_HIGH_WATER)
        peer = transport.get_extra_info("peername")
        self.address = address_of(peer)
        # The server knows the client by this name.
        self._name = f"{_PEER}{os.getpid()}-{secrets.token_hex(4)}-{self.address}:{peer[1] if peer else ''}"
        encrypted = transport.get_extra_info("ssl_object")
        certificate = encrypted.getpeercert(binary_form=True) if encrypted else None
        if certificate is not None:
            self._rules.certificates[self._name] = certificate
        self._rules.clients.add(self)
        self._look()
        if not self._rules.addresses.enter(self.address) or len(self._rules.addresses) > self._most_connections:
            self.end("too many connections")

    @property
    def _most_connections(self) -> int:
        return self._rules.settings.max_connections

    def data_received(self, data: bytes) -> None:
        """Parse received bytes, and forward them if they comply with the rules."""
        if self.transport.is_closing():
            return
        try:
            if self._server is None:
                self._begin(data)
                return
            self._check(data)
        except (Violation, OverBudget) as error:
            self.end(str(error))
            return
        self._server.write(data)

    def _begin(self, data: bytes) -> None:
        """Buffer the first bytes until they are known to be HTTP/2; only then connect to the server."""
        self._first += data
        if not (self._first.startswith(PREFACE) or PREFACE.startswith(self._first)):
            raise Violation("this is not Flight")
        if len(self._first) >= len(PREFACE) and self._dialing is None:
            self.transport.pause_reading()
            self._dialing = self._loop.create_task(self._dial())

    async def _dial(self) -> None:
        dialed = socket.socket(socket.AF_UNIX)
        try:
            dialed.setblocking(False)
            dialed.bind(f"\0{self._name}")  # an abstract socket leaves no file behind, and its name must be unique
            await self._loop.sock_connect(dialed, str(self._rules.path))
            _, self._server = await self._loop.create_unix_connection(lambda: _Server(self), sock=dialed)
        except OSError as error:
            dialed.close()
            self.end(f"the server does not answer: {error.strerror}")
            return
        if self.transport.is_closing():
            self._server.close()
            return
        first, self._first = self._first, b""
        self._server.write(first[: len(PREFACE)])
        if len(first) > len(PREFACE):
            self.data_received(first[len(PREFACE) :])
        self.transport.resume_reading()

    def _check(self, data: bytes) -> None:
        for frame, piece in self._frames.feed(data):
            if frame.resets:
                self._leave(frame.stream)
                continue
            payload = payload_of(frame, piece)
            if frame.stream and not frame.stream % 2:
                raise Violation("streams of clients have odd numbers")
            opened = self._of(frame.stream, is_new=frame.begins_call)
            if opened is None:
                continue
            opened.heard = self._loop.time()
            before = opened.call.total
            opened.call.take(payload)
            if opened.call.total > before:
                opened.held.grow(_COPIES * (opened.call.total - before))
            opened.call.is_said |= frame.ends_stream and not frame.left

    def _of(self, stream: int, *, is_new: bool) -> _Open | None:
        """Return the call of a stream; frames after its end do not count, since they are ignored."""
        if stream and stream not in self._open and is_new:
            calls, most = self._rules.calls, _CALLS_PER_ANSWER * self._rules.settings.flight_queries
            if calls[self.address] >= most or calls.total() >= 2 * most:
                raise Violation(f"{most} calls of one address may be under way, and {2 * most} of all")
            calls[self.address] += 1
            held = self._rules.budget.reserve(BudgetHolder.at(self.address))
            self._open[stream] = _Open(Call(), held, self._loop.time())
        return self._open.get(stream)

    def over(self, stream: int) -> None:
        """End a call."""
        call = self._open.pop(stream, None)
        if call is not None:
            self._forget(call)

    def _leave(self, stream: int) -> None:
        """Handle a stream that the client resets; the server may still be busy as long as it lets calls wait."""
        call = self._open.pop(stream, None)
        if call is not None:
            self._loop.call_later(self._rules.settings.patience, self._forget, call)

    def _forget(self, call: _Open) -> None:
        call.held.release()
        self._rules.calls[self.address] -= 1
        if not self._rules.calls[self.address]:
            del self._rules.calls[self.address]

    def _look(self) -> None:
        """Close connections of clients that have started something and do not continue."""
        patience = max(self._rules.settings.patience, _MIN_PATIENCE)
        late = self._loop.time() - patience
        if self._timer is not None and self._server is None:
            self.end("nothing has come")
        elif any(open_call.heard < late and not open_call.call.is_said for open_call in self._open.values()):
            self.end("a call does not go on")
        else:
            self._timer = self._loop.call_later(patience / _LOOKS if self._timer else patience, self._look)

    def end(self, why: str) -> None:
        """Close the connection, and log the reason."""
        log("flight connection ended", client=self.address, problem=why[:200])
        text = why.encode()[:200]
        payload = bytes(4) + _ENHANCE_YOUR_CALM.to_bytes(4, "big") + text
        self.transport.write(len(payload).to_bytes(3, "big") + bytes([_GOAWAY]) + bytes(5) + payload)
        self.transport.close()
        self._loop.call_later(1, self.transport.abort)

    def connection_lost(self, error: Exception | None) -> None:
        """Release everything that the client has reserved."""
        del error
        if self._timer is not None:
            self._timer.cancel()
        for stream in list(self._open):
            self._leave(stream)
        self._rules.addresses.leave(self.address)
        self._rules.clients.discard(self)
        self._rules.certificates.pop(self._name, None)
        if self._server is not None:
            self._server.close()

    def pause_writing(self) -> None:
        """Stop reading from the server: the client does not read."""
        if self._server is not None:
            self._server.transport.pause_reading()

    def resume_writing(self) -> None:
        """Resume reading from the server: the client reads again."""
        if self._server is not None and not self._server.transport.is_closing():
            self._server.transport.resume_reading()


class _Server(asyncio.Protocol):
    """The protocol on the server's side of a connection."""

    def __init__(self, client: _Client) -> None:
        self._client = client
        self._frames = Frames()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection to the server."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - of a stream
        self.transport = transport
        transport.set_write_buffer_limits(_HIGH_WATER)

    def write(self, data: bytes) -> None:
        """Forward bytes of the client."""
        if not self.transport.is_closing():
            self.transport.write(data)

    def data_received(self, data: bytes) -> None:
        """Forward bytes of the server."""
        for frame, _ in self._frames.feed(data):
            if (frame.ends_stream and not frame.left) or frame.resets:
                self._client.over(frame.stream)
        if not self._client.transport.is_closing():
            self._client.transport.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        """Close the client's side: the server has disconnected."""
        del error
        self._client.transport.close()

    def pause_writing(self) -> None:
        """Stop reading from the client: the server does not read."""
        if not self._client.transport.is_closing():
            self._client.transport.pause_reading()

    def resume_writing(self) -> None:
        """Resume reading from the client: the server reads again."""
        if not self._client.transport.is_closing():
            self._client.transport.resume_reading()

    def close(self) -> None:
        """Close the connection."""
        self.transport.abort()


class FlightGuard:
    """A listener for clients, which runs in its own thread from its construction on.

    Attributes:
        port: port that it listens on.
    """

    def __init__(
        self, host: str, port: int, path: Path, budget: MemoryBudget, settings: ServeSettings, tls: Tls | None
    ) -> None:
        """
        Args:
            host: host name or address to listen on.
            port: port to listen on; 0 for any free port.
            path: socket of the server.
            budget: memory budget for received data.
            settings: limits and timeouts.
            tls: certificate and key; None for an unencrypted connection.

        Raises:
            OSError: it cannot listen on that address.
        """
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = addresses[0]
        self._listener = socket.create_server(address[:2], family=family, backlog=settings.max_connections)
        self._listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port: int = self._listener.getsockname()[1]
        self._rules = _Rules(path, budget, settings, Addresses(settings.max_connections_each))
        self._loop = asyncio.new_event_loop()
        self._listening = self._loop.run_until_complete(
            self._loop.create_server(lambda: _Client(self._rules), sock=self._listener, ssl=_context(tls))
        )
        self._thread = threading.Thread(target=self._loop.run_forever, name="flight-guard", daemon=True)
        self._thread.start()

    def certificate_of(self, peer: str) -> bytes | None:
        """Return the certificate that a client has presented, in DER form; None without one, or after it has
        disconnected.

        Args:
            peer: name of the client, as known to gRPC.
        """
        return self._rules.certificates.get(peer[peer.index(_PEER) :]) if _PEER in peer else None

    def hang_up(self) -> None:
        """Accept no new connections; existing ones stay."""
        self._do(self._listening.close)

    def close(self) -> None:
        """Close all connections."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._end_all(), self._loop).result()
        self._do(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end_all(self) -> None:
        self._listening.close()
        for client in list(self._rules.clients):
            client.transport.abort()
        for _ in range(_ROUNDS):  # clients are disconnected one round later, and their server sides another round later
            await asyncio.sleep(0)

    def _do(self, work: Callable[[], object]) -> None:
        self._loop.call_soon_threadsafe(work)


def _context(tls: Tls | None) -> ssl.SSLContext | None:
    if tls is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tls.certificate, tls.key, password=lambda: b"")
    context.set_alpn_protocols(["h2"])
    if tls.authorities is not None:
        context.load_verify_locations(tls.authorities)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def client_of(peer: str) -> str:
    """Return the client behind gRPC's name for it."""
    return peer.partition(_PEER)[2].split("-", 2)[-1] if _PEER in peer else peer


class AcceptAnyHandshake(fl.ServerAuthHandler):  # type: ignore[misc]
    """A handler that accepts all handshakes: the guard, or middleware, has authenticated the caller before."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None:
        """Accept the handshake: authentication is in headers."""

    def is_valid(self, token: bytes) -> bytes:
        """Return no name."""
        del token
        return b""
