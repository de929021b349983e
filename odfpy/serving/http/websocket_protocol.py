"""WebSocket connections whose messages are limited in size, and charged to the server's budget while they are received.

uvicorn has one message limit for all routes, and none on the total. Here the application sets the limit of a connection
once the caller is known. Compression is disabled: some kB of it can expand to gigabytes.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from odfpy.serving.http.addresses import Addresses, address_of
from odfpy.serving.http.budget import BudgetHolder, MemoryBudget, OverBudget, Reservation

if TYPE_CHECKING:
    from asyncio.transports import BaseTransport

    from starlette.requests import HTTPConnection

_FRAME: Final = 64
_TOO_BIG: Final = 1009
TRY_AGAIN_LATER: Final = 1013
_STATE: Final = "intake"


class Intake:
    """The received bytes of one connection.

    Attributes:
        held: reservation for messages that were or are being received.
        most: maximum size of a message; set by the application when it accepts the client.
    """

    def __init__(self, held: Reservation) -> None:
        self.held = held
        self.most = 0


def intake_of(connection: HTTPConnection) -> Intake:
    """Return the intake of a connection that the application handles."""
    intake = connection.scope["state"][_STATE]
    assert isinstance(intake, Intake)  # noqa: S101 - set by the protocol
    return intake


class BudgetedWebSocket(WebSocketsSansIOProtocol):
    """A WebSocket protocol that closes connections which exceed their limits."""

    budget: MemoryBudget
    addresses: Addresses

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._arriving = 0
        self._waiting = 0
        self._given = 0
        self._is_lost = False

    @classmethod
    def within(cls, budget: MemoryBudget, addresses: Addresses) -> type[BudgetedWebSocket]:
        """Return a subclass with a budget and a counter of addresses."""
        return type(cls.__name__, (cls,), {"budget": budget, "addresses": addresses})

    def connection_made(self, transport: BaseTransport) -> None:
        """Accept a client on a connection that was counted already."""
        super().connection_made(transport)
        self._address = address_of(self.client)
        self.addresses.enter(self._address)
        self.intake = Intake(self.budget.reserve(BudgetHolder.at(self._address)))

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the connection is closed; the application may still process what was received."""
        super().connection_lost(exc)
        self.addresses.leave(self._address)
        self._is_lost, self._arriving = True, 0
        self._count()

    def handle_connect(self, event: Any) -> None:
        """Pass the handshake to the application."""
        super().handle_connect(event)
        if hasattr(self, "scope"):
            self.scope["state"][_STATE] = self.intake

    def data_received(self, data: bytes) -> None:
        """Handle received bytes; before the application has accepted the client, none are allowed."""
        if self.handshake_initiated and not self.handshake_complete:
            self.transport.abort()
            return
        super().data_received(data)
        if self._buffered + self._arriving > self.intake.most:
            self._fail(_TOO_BIG, f"a message has {self.intake.most} bytes at most")
            return
        try:
            self._count()
        except OverBudget as error:
            self._fail(TRY_AGAIN_LATER, error.message)

    def handle_text(self, event: Any) -> None:
        """Handle the first frame of a message."""
        self._arriving = len(event.data) + _FRAME
        super().handle_text(event)

    def handle_bytes(self, event: Any) -> None:
        """Handle the first frame of a message."""
        self._arriving = len(event.data) + _FRAME
        super().handle_bytes(event)

    def handle_cont(self, event: Any) -> None:
        """Handle a continuation frame."""
        self._arriving += len(event.data) + _FRAME
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Handle a complete message."""
        self._waiting, self._arriving = self._waiting + self._arriving, 0
        super().send_receive_event_to_app()

    async def receive(self) -> Any:
        """Return the next message to the application, which has finished the previous one."""
        self._given = 0
        self._count()
        message = await super().receive()
        self._given, self._waiting = self._waiting, 0
        return message

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """Clean up after the application has finished."""
        super().on_task_complete(task)
        self._given = self._waiting = 0
        self._count()

    @property
    def _buffered(self) -> int:
        """Return the size of an incomplete frame, or of an incomplete handshake."""
        return 0 if self._is_lost or not self.handshake_initiated else len(self.conn.reader.buffer)

    def _count(self) -> None:
        self.intake.held.resize(self._buffered + self._arriving + self._waiting + self._given)

    def _fail(self, code: int, reason: str) -> None:
        """Close the connection, whatever its state."""
        if self.close_sent or self.transport.is_closing():
            self.transport.abort()
            return
        self.conn.fail(code, reason)
        self.frames, self._arriving = [], 0
        self.conn.reader.buffer.clear()
        self.handle_parser_exception()
