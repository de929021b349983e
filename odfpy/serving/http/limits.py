"""Bodies of requests have a limit, before anything is made of them. What is streamed to the disk has one of its own.

Bytes are counted as they come, in the server's budget. Whoever shows no token may send little: FastAPI reads a body
before it is asked who sends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from odfpy.coordinator.storage.storage import Storage
from odfpy.repository.smart_transfer.signed_urls import KINDS
from odfpy.serving.callers.access import find_caller, token_in, unauthorized_error
from odfpy.serving.http.budget import BudgetHolder, MemoryBudget, OverBudget, Reservation, weight_of_json
from odfpy.serving.settings import ServeSettings

INGEST: Final = "ingest"
"""The last part of the paths at which data comes in."""

OBJECTS: Final = "/v0/archive/objects"
"""The part of paths below which the bytes of archived files come in."""

BUSY: Final = {"Retry-After": "1"}


class BoundedBodies:
    """Refuses bodies that are too long, also those that do not say how long they are, and too many at once."""

    def __init__(
        self, app: ASGIApp, settings: ServeSettings, budget: MemoryBudget, storages: Sequence[Storage]
    ) -> None:
        self._app = app
        self._settings = settings
        self._budget = budget
        self._storages = storages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a connection."""
        if scope["type"] != "http" or _is_streamed(scope["path"]):
            await self._app(scope, receive, send)
            return
        with self._budget.reserve(BudgetHolder.at((scope.get("client") or (None,))[0])) as held:
            body = _Body(self, HTTPConnection(scope), receive, held)
            await self._app(scope, body.receive, send)

    async def most(self, connection: HTTPConnection, held: Reservation) -> int:
        """Bytes that a body may have that is more than a stranger may send; it is counted as that of the token now.

        Raises:
            HTTPException: no token of this server is shown.
        """
        text = token_in(connection)
        if text is None:
            most = self._settings.max_stranger_body
            raise HTTPException(413, f"The body is larger than the limit of {most} bytes")
        found = await run_in_threadpool(find_caller, text, self._storages)
        if found is None or found.token is None:
            raise unauthorized_error("Unknown or expired access token")
        held.pass_to(BudgetHolder.of_token(found.token.name))
        return self._settings.max_body

    @property
    def strangers(self) -> int:
        """Bytes that anybody's body may have."""
        return min(self._settings.max_stranger_body, self._settings.max_body)


class _Body:
    """The body of a request, counted."""

    def __init__(self, bounds: BoundedBodies, connection: HTTPConnection, receive: Receive, held: Reservation) -> None:
        self._bounds = bounds
        self._connection = connection
        self._receive = receive
        self._held = held
        self._most = bounds.strangers
        self._is_known = False
        self._count = 0

    async def receive(self) -> Message:
        """The next message.

        Raises:
            HTTPException: more comes than may.
        """
        message = await self._receive()
        piece: bytes = message.get("body", b"")
        if piece:
            try:
                await self._take(piece)
            except OverBudget as error:
                status = 429 if error.is_own else 503
                raise HTTPException(status, f"{error.message}\n{error.hint}", BUSY) from error
        return message

    async def _take(self, piece: bytes) -> None:
        self._count += len(piece)
        if self._count > self._most and not self._is_known:
            self._most, self._is_known = await self._bounds.most(self._connection, self._held), True
        if self._count > self._most:
            raise HTTPException(413, f"The body is larger than the limit of {self._most} bytes")
        self._held.grow(len(piece) + weight_of_json(piece))  # the pieces, and what is made of all of them


def _is_streamed(path: str) -> bool:
    """Return whether it is that of an object at a signed URL, of files to archive, or of data to ingest."""
    before, _, last = path.rpartition("/")
    return before.rpartition("/")[2] in KINDS or last == INGEST or path.endswith(OBJECTS) or before.endswith(OBJECTS)
