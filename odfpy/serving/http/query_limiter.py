"""Queries of clients: so many at once, for so long, and no longer than the client is there.

Queries run in threads of their own, never in those of other requests, and never on the event loop. Those for which
there is no room wait for it, as long as their clients do and their time lasts (503); when too many wait, more are
refused (503), or already before, more of one client (429).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TypeVar

import anyio
from starlette.requests import HTTPConnection, Request

from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import (
    DatasetNotFound,
    EngineError,
    EngineNotFound,
    EngineUnavailable,
    InvalidQuery,
    MalformedData,
    NondeterministicQuery,
    NotFound,
    ObjectNotFound,
    OdfError,
    QueryCancelled,
    QueryEnded,
    QueryTimedOut,
    ResultTooLarge,
    SandboxRequired,
    SchemaError,
    UnknownTable,
    UnsupportedQuery,
    UsageError,
)
from odfpy.query.wire.reproducible import NotReproducible
from odfpy.serving.callers.access import Caller
from odfpy.serving.http.budget import BudgetHolder
from odfpy.serving.http.errors import Refused
from odfpy.serving.settings import ServeSettings

T = TypeVar("T")

_STATUSES: tuple[tuple[type[OdfError], int], ...] = (
    (QueryTimedOut, 503),
    (QueryCancelled, 503),
    (EngineUnavailable, 503),
    (SandboxRequired, 400),
    (UnknownTable, 400),
    (DatasetNotFound, 404),
    (NotFound, 404),
    (ResultTooLarge, 400),
    (QueryEnded, 400),
    (InvalidQuery, 400),
    (UnsupportedQuery, 400),
    (NondeterministicQuery, 400),
    (NotReproducible, 400),
    (EngineNotFound, 400),
    (UsageError, 400),
    (SchemaError, 400),
    (MalformedData, 400),
)
_BUSY = {"Retry-After": "1"}


class QueryGate:
    """Lets queries of clients in. Used from the event loop only."""

    def __init__(self, settings: ServeSettings) -> None:
        self._settings = settings
        self._room = anyio.Semaphore(settings.running_queries)
        self._threads = anyio.CapacityLimiter(settings.running_queries)
        self._here: Counter[BudgetHolder] = Counter()

    async def run(self, request: Request, caller: Caller, work: Callable[[CancellationToken], T]) -> T:
        """Do a query's work in a thread; when the client goes away, or it takes too long, it is stopped.

        Args:
            request: the request, whose client may go away.
            caller: who asks.
            work: the work; checks its control now and then.

        Raises:
            Refused: there is no room for it, or it is at fault.
        """
        with CancellationToken(self._settings.query_timeout) as control:
            watcher = asyncio.create_task(_stop_when_gone(request, control))
            try:
                return await self.let_in(who_is(caller, request), control, work)
            finally:
                watcher.cancel()
                with suppress(asyncio.CancelledError):
                    await watcher

    async def let_in(self, who: BudgetHolder, control: CancellationToken, work: Callable[[CancellationToken], T]) -> T:
        """Do a query's work in a thread, when there is room for it; somebody else stops it if it is not wanted.

        Args:
            who: with whose queries it is counted.
            control: stops it.
            work: the work; checks its control now and then.

        Raises:
            Refused: there is no room for it, or it is at fault.
        """
        with self._entered(who):
            async with self._room_for(control):
                return await anyio.to_thread.run_sync(_client_message, work, control, limiter=self._threads)

    @contextmanager
    def _entered(self, who: BudgetHolder) -> Iterator[None]:
        settings = self._settings
        if self._here.total() >= settings.max_queries:
            raise Refused(503, "The server has as many queries as it can take; try again in a moment", _BUSY)
        if self._here[who] >= settings.max_queries_each:
            message = f"You have {settings.max_queries_each} queries under way, which is as many as one may have"
            raise Refused(429, message, _BUSY)
        self._here[who] += 1
        try:
            yield
        finally:
            self._here[who] -= 1
            if not self._here[who]:
                del self._here[who]

    @asynccontextmanager
    async def _room_for(self, control: CancellationToken) -> AsyncIterator[None]:
        """Wait for one of the queries that are worked on to end, but no longer than this one is wanted."""
        loop, waiting = asyncio.get_running_loop(), anyio.CancelScope()

        def stop() -> None:
            loop.call_soon_threadsafe(waiting.cancel)

        with waiting:
            control.on_stop(stop)
            await self._room.acquire()
        if waiting.cancelled_caught:
            message = f"The server has too much to do: the query has waited for {self._settings.query_timeout:g} s"
            raise Refused(503, f"{message}\nTry again later.", _BUSY)
        try:
            yield
        finally:
            self._room.release()


def who_is(caller: Caller, connection: HTTPConnection) -> BudgetHolder:
    """With whose queries, and whose bytes, those of a caller are counted together."""
    if caller.token is not None:
        return BudgetHolder.of_token(caller.token.name)
    return BudgetHolder.at(connection.client.host if connection.client else None)


async def _stop_when_gone(request: Request, control: CancellationToken) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    control.cancel()


def _client_message(work: Callable[[CancellationToken], T], control: CancellationToken) -> T:
    try:
        control.check()
        return work(control)
    except OdfError as error:
        found = refusal(error)
        if found is None:
            raise
        raise found from error


def refusal(error: OdfError) -> Refused | None:
    """Return the answer for the client, if the error is about their question; None if it is the server's."""
    if isinstance(error, ObjectNotFound):  # a file is gone: its place is nobody's business
        return None
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            hint = f"\n{error.hint}" if error.hint else ""
            return Refused(status, f"{error.message}{hint}")
    if type(error) is EngineError:
        return Refused(400, error.message)
    return None
