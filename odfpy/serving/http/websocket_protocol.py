"""WebSocket connections whose messages have a limit, and are counted in the server's budget while they come.

uvicorn takes in messages of one size for all routes, and as many as there are connections. Here the application says
how large those of a conversation may be, when it knows who has come. Compression is off: some kB of it are gigabytes.
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
    """The bytes that one connection takes in.

    Attributes:
        held: the bytes of messages that have come, or are coming.
        most: bytes that one message may have; the application says it when it lets the client in.
    """

    def __init__(self, held: Reservation) -> None:
        self.held = held
        self.most = 0


def intake_of(connection: HTTPConnection) -> Intake:
    """The intake of a connection that the application handles."""
    found = connection.scope["state"][_STATE]
    assert isinstance(found, Intake)  # noqa: S101 - the protocol puts it there
    return found


class BudgetedWebSocket(WebSocketsSansIOProtocol):
    """A connection that ends when more comes than may."""

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
        """The same, counted there."""
        return type(cls.__name__, (cls,), {"budget": budget, "addresses": addresses})

    def connection_made(self, transport: BaseTransport) -> None:
        """A client has come, over a connection that had room."""
        super().connection_made(transport)
        self._address = address_of(self.client)
        self.addresses.enter(self._address)
        self.intake = Intake(self.budget.reserve(BudgetHolder.at(self._address)))

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone; the application may still be at work on what has come."""
        super().connection_lost(exc)
        self.addresses.leave(self._address)
        self._is_lost, self._arriving = True, 0
        self._count()

    def handle_connect(self, event: Any) -> None:
        """The application is going to be asked."""
        super().handle_connect(event)
        if hasattr(self, "scope"):
            self.scope["state"][_STATE] = self.intake

    def data_received(self, data: bytes) -> None:
        """Bytes have come; before the application has let the client in, none may."""
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
        """A message begins, and may end with that."""
        self._arriving = len(event.data) + _FRAME
        super().handle_text(event)

    def handle_bytes(self, event: Any) -> None:
        """A message begins, and may end with that."""
        self._arriving = len(event.data) + _FRAME
        super().handle_bytes(event)

    def handle_cont(self, event: Any) -> None:
        """A message goes on."""
        self._arriving += len(event.data) + _FRAME
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """A message has come whole."""
        self._waiting, self._arriving = self._waiting + self._arriving, 0
        super().send_receive_event_to_app()

    async def receive(self) -> Any:
        """The next message, for the application, which is done with the last one."""
        self._given = 0
        self._count()
        message = await super().receive()
        self._given, self._waiting = self._waiting, 0
        return message

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        """The application is done."""
        super().on_task_complete(task)
        self._given = self._waiting = 0
        self._count()

    @property
    def _buffered(self) -> int:
        """Bytes of a frame that has not come whole, or of the head of the connection."""
        return 0 if self._is_lost or not self.handshake_initiated else len(self.conn.reader.buffer)

    def _count(self) -> None:
        self.intake.held.resize(self._buffered + self._arriving + self._waiting + self._given)

    def _fail(self, code: int, reason: str) -> None:
        """End the connection, whatever the client is at."""
        if self.close_sent or self.transport.is_closing():
            self.transport.abort()
            return
        self.conn.fail(code, reason)
        self.frames, self._arriving = [], 0
        self.conn.reader.buffer.clear()
        self.handle_parser_exception()
