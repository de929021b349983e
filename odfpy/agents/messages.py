"""Messages of a client; invalid ones are answered with errors, since the MCP library would silently ignore them."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final

import anyio
from mcp.shared.message import SessionMessage
from mcp.types import PARSE_ERROR, ErrorData, JSONRPCError

_NO_MESSAGE: Final = "This is not a message of JSON-RPC 2.0, or it is longer than a message may be"


class Messages:
    """The messages of a stream; lines that are not messages become errors."""

    def __init__(self, incoming: Any, outgoing: Any) -> None:
        """
        Args:
            incoming: the stream.
            outgoing: the stream to the client.
        """
        self._incoming = incoming
        self._outgoing = outgoing

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message.

        Raises:
            anyio.EndOfStream: there are no more messages.
        """
        while isinstance(found := await self._incoming.receive(), Exception):
            error = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=PARSE_ERROR, message=_NO_MESSAGE))
            await self._outgoing.send(SessionMessage(error))
        message: SessionMessage = found
        return message

    async def aclose(self) -> None:
        """Close the stream."""
        await self._incoming.aclose()

    def __aiter__(self) -> Messages:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Messages:  # noqa: PYI034
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()
