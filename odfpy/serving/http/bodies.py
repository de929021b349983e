"""Bodies of requests that are streamed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import anyio
import anyio.from_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request

_PIECE: Final = 256 * 1024


class BodyReader:
    """The body of a request as a blocking stream for a thread; a client that stalls for too long is disconnected."""

    def __init__(self, request: Request, patience: float) -> None:
        """
        Args:
            request: the request.
            patience: maximum seconds to wait for a piece.
        """
        self._chunks: AsyncIterator[bytes] = request.stream()
        self._patience = patience

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes: one piece, whatever `size` is; empty at the end.

        Raises:
            HTTPException: 408, the client stalls.
            ClientDisconnect: the client has disconnected.
        """
        del size
        return anyio.from_thread.run(self._piece)

    async def _piece(self) -> bytes:
        piece = bytearray()
        try:
            with anyio.fail_after(self._patience):
                while len(piece) < _PIECE and (chunk := await anext(self._chunks, b"")):
                    piece += chunk
        except TimeoutError as error:
            raise HTTPException(408, "Timed out waiting for the request body") from error
        return bytes(piece)
