"""Bodies of requests have a limit, before anything is made of them. Objects at signed URLs have one of their own."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from odfpy.repository.smart_transfer.signed_urls import KINDS


class BoundedBodies:
    """Refuses bodies that are too long, also those that do not say how long they are."""

    def __init__(self, app: ASGIApp, max_body: int) -> None:
        self._app = app
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection."""
        if scope["type"] != "http" or scope["path"].rpartition("/")[0].rpartition("/")[2] in KINDS:
            await self._app(scope, receive, send)
            return
        count = 0

        async def counted() -> Message:
            nonlocal count
            message = await receive()
            count += len(message.get("body", b""))
            if count > self._max_body:
                raise HTTPException(413, f"More than {self._max_body} bytes")
            return message

        await self._app(scope, counted, send)
