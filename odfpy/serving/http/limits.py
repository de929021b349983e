"""Middleware that limits the size of request bodies before they are parsed. Streamed bodies have their own limits.

Received bytes are charged to the server's budget. Anonymous callers may only send little: FastAPI reads a body before
the caller is authenticated.

Routes that stream their bodies declare that (`Streamed`). It is not decided by the path: datasets may have any name,
also one that is a part of other paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fastapi import Depends
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from odfpy.coordinator.storage.storage import Storage
from odfpy.serving.callers.access import find_caller, token_in, unauthorized_error
from odfpy.serving.http.budget import BudgetHolder, MemoryBudget, OverBudget, Reservation, weight_of_json
from odfpy.serving.settings import ServeSettings

BUSY: Final = {"Retry-After": "1"}

_STATE: Final = "body"


class BoundedBodies:
    """Middleware that rejects bodies that are too long, declared or not, and too many at once."""

    def __init__(
        self, app: ASGIApp, settings: ServeSettings, budget: MemoryBudget, storages: Sequence[Storage]
    ) -> None:
        self._app = app
        self._settings = settings
        self._budget = budget
        self._storages = storages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with self._budget.reserve(BudgetHolder.at((scope.get("client") or (None,))[0])) as held:
            body = _Body(self, HTTPConnection(scope), receive, held)
            scope.setdefault("state", {})[_STATE] = body
            await self._app(scope, body.receive, send)

    async def most(self, connection: HTTPConnection, held: Reservation) -> int:
        """Return the maximum size of a body beyond what anonymous callers may send; it is charged to the token from now
        on.

        Raises:
            HTTPException: there is no valid token of this server.
        """
        text = token_in(connection)
        if text is None:
            most = self._settings.max_stranger_body
            raise HTTPException(413, f"The body is larger than the limit of {most} bytes")
        caller = await run_in_threadpool(find_caller, text, self._storages)
        if caller is None or caller.token is None:
            raise unauthorized_error("Unknown or expired access token")
        held.pass_to(BudgetHolder.of_token(caller.token.name))
        return self._settings.max_body

    @property
    def strangers(self) -> int:
        """Return the maximum size of an anonymous caller's body."""
        return min(self._settings.max_stranger_body, self._settings.max_body)


class _Body:
    """The body of a request, counted while it is received.

    Attributes:
        is_streamed: whether the route limits it itself, and never holds more than a piece of it.
    """

    def __init__(self, bounds: BoundedBodies, connection: HTTPConnection, receive: Receive, held: Reservation) -> None:
        self._bounds = bounds
        self._connection = connection
        self.is_streamed = False
        self._receive = receive
        self._held = held
        self._most = bounds.strangers
        self._is_known = False
        self._count = 0

    async def receive(self) -> Message:
        """Return the next ASGI message.

        Raises:
            HTTPException: the limit is exceeded.
        """
        message = await self._receive()
        piece: bytes = message.get("body", b"")
        if piece and not self.is_streamed:
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
        self._held.grow(len(piece) + weight_of_json(piece))  # the raw bytes, and the parsed document


async def _stream_body(connection: HTTPConnection) -> None:
    body = connection.scope["state"][_STATE]
    assert isinstance(body, _Body)  # noqa: S101 - the middleware puts it there
    body.is_streamed = True


Streamed: Any = Depends(_stream_body)
"""Among the dependencies of a route: it reads its body piece by piece, within limits of its own."""
