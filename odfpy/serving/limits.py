"""Bodies of requests have a limit, before anything is made of them. What is streamed to the disk has one of its own."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from odfpy.repository.smart_transfer.signed_urls import KINDS

INGEST = "ingest"
"""The last part of the paths at which data comes in."""


class BoundedBodies:
    """Refuses bodies that are too long, also those that do not say how long they are."""

    def __init__(self, app: ASGIApp, max_body: int) -> None:
        self._app = app
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection."""
        if scope["type"] != "http" or _is_streamed(scope["path"]):
            await self._app(scope, receive, send)
            return
        count = 0

        async def counted() -> Message:
            nonlocal count
            message = await receive()
            count += len(message.get("body", b""))
            if count > self._max_body:
                raise HTTPException(
                    413, f"The body has more than {self._max_body} bytes, which is as much as it may have"
                )
            return message

        await self._app(scope, counted, send)


def _is_streamed(path: str) -> bool:
    """Whether it is that of an object at a signed URL, or of data to ingest."""
    before, _, last = path.rpartition("/")
    return before.rpartition("/")[2] in KINDS or last == INGEST
