"""HTTP connections with timeouts and a limit for each address.

uvicorn itself waits forever for the rest of a request, and for a client that does not read its response.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

from odfpy.serving.http.addresses import Addresses, address_of

PATIENCE = 60.0
"""Maximum seconds for a client to send the head of a request, or to receive the next bytes of a response."""

_CROWDED: Final = b"Too many connections from this address"
_REFUSAL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(_CROWDED), _CROWDED)
)


class GuardedProtocol(H11Protocol):
    """A uvicorn protocol that closes connections whose client stalls for too long."""

    patience = PATIENCE
    addresses: Addresses
    _timer: asyncio.TimerHandle | None = None
    _is_counted = False

    @classmethod
    def within(cls, patience: float, addresses: Addresses) -> type[GuardedProtocol]:
        """Return a subclass with a timeout and a counter of addresses."""
        return type(cls.__name__, (cls,), {"patience": patience, "addresses": addresses})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a client, which must send a request in time."""
        super().connection_made(transport)
        self._address = address_of(transport.get_extra_info("peername"))
        self._is_counted = True
        if not self.addresses.enter(self._address):
            transport.write(_REFUSAL)
            transport.close()
            return
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Handle received bytes; the timeout keeps running until the head of a request is complete."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        is_busy = self.cycle is not None and not self.cycle.response_complete
        if is_busy and self.cycle.more_body and not self.flow.read_paused:
            self._wait()  # for further bytes of the client
        elif is_busy or self.transport.get_protocol() is not self:  # it is a WebSocket now, with its own timeout
            self._rest()
        elif self._timer is None:
            self._wait()

    def pause_writing(self) -> None:
        """Start the timeout: the client does not read."""
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        """Stop the timeout: the client reads again."""
        super().resume_writing()
        self._rest()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the connection is closed."""
        self._rest()
        self._leave()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Count the connection as a WebSocket from now on."""
        self._leave()
        super().handle_websocket_upgrade(event)

    def _leave(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self.addresses.leave(self._address)

    def _wait(self) -> None:
        self._rest()
        self._timer = self.loop.call_later(self.patience, self._give_up)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        self.transport.abort()
