"""HTTP connections that no client can hold on to forever.

uvicorn waits without end for a request that has begun, and for a client that does not read what it has asked for.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 60.0
"""Seconds that a client may take to send the head of a request, or to take the next bytes of an answer."""


class GuardedProtocol(H11Protocol):
    """A connection that ends when its client has kept the server waiting for too long."""

    patience = PATIENCE
    _timer: asyncio.TimerHandle | None = None

    @classmethod
    def with_patience(cls, patience: float) -> type[GuardedProtocol]:
        """The same, with another limit."""
        return type(cls.__name__, (cls,), {"patience": patience})

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A client has come, and should say what it wants."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Bytes have come; while they are no whole head of a request, the clock that is running goes on."""
        super().data_received(data)
        is_busy = self.cycle is not None and not self.cycle.response_complete
        if is_busy and self.cycle.more_body and not self.flow.read_paused:
            self._wait()  # for more of what the client sends
        elif is_busy or self.transport.get_protocol() is not self:  # it is a WebSocket now, with a clock of its own
            self._rest()
        elif self._timer is None:
            self._wait()

    def pause_writing(self) -> None:
        """The client takes nothing at the moment."""
        super().pause_writing()
        self._wait()

    def resume_writing(self) -> None:
        """It has taken what there was."""
        super().resume_writing()
        self._rest()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._rest()
        super().connection_lost(exc)

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
