"""Limits on clients' queries: their number, their duration, and cancellation when the client disconnects.

Queries run in their own threads, never in those of other requests or on the event loop. Queries beyond the limit wait
for a slot until their timeout or until the client disconnects (503); when too many wait, further ones are rejected
immediately (503), and earlier for a client that has many (429).
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
    """A gate that admits clients' queries within the limits. Only used from the event loop."""

    def __init__(self, settings: ServeSettings) -> None:
        self._settings = settings
        self._room = anyio.Semaphore(settings.running_queries)
        self._threads = anyio.CapacityLimiter(settings.running_queries)
        self._here: Counter[BudgetHolder] = Counter()

    async def run(self, request: Request, caller: Caller, work: Callable[[CancellationToken], T]) -> T:
        """Run a query in a thread; it is cancelled when the client disconnects, or when it takes too long.

        Args:
            request: the request, whose client may disconnect.
            caller: the caller.
            work: the function to run; checks its control regularly.

        Raises:
            Refused: there is no free slot, or the query is at fault.
        """
        with CancellationToken(self._settings.query_timeout) as control:
            watcher = asyncio.create_task(_stop_when_gone(request, control))
            try:
                return await self.admit(party_of(caller, request), control, work)
            finally:
                watcher.cancel()
                with suppress(asyncio.CancelledError):
                    await watcher

    async def admit(self, who: BudgetHolder, control: CancellationToken, work: Callable[[CancellationToken], T]) -> T:
        """Run a query in a thread, as soon as a slot is free; the caller cancels it if it is no longer wanted.

        Args:
            who: the party whose queries are counted together.
            control: cancels it.
            work: the function to run; checks its control regularly.

        Raises:
            Refused: there is no free slot, or the query is at fault.
        """
        with self._entered(who):
            async with self._room_for(control):
                return await anyio.to_thread.run_sync(_client_message, work, control, limiter=self._threads)

    @contextmanager
    def _entered(self, who: BudgetHolder) -> Iterator[None]:
        settings = self._settings
        if self._here.total() >= settings.max_queries:
            raise Refused(503, "The server has reached its limit of queries; try again later", _BUSY)
        if self._here[who] >= settings.max_queries_each:
            message = f"You have {settings.max_queries_each} running queries, which is the limit"
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
        """Wait for a slot, as long as the query is not cancelled."""
        loop, waiting = asyncio.get_running_loop(), anyio.CancelScope()

        def stop() -> None:
            loop.call_soon_threadsafe(waiting.cancel)

        with waiting:
            control.on_stop(stop)
            await self._room.acquire()
        if waiting.cancelled_caught:
            message = f"The server is busy: the query has waited for {self._settings.query_timeout:g} s"
            raise Refused(503, f"{message}\nTry again later.", _BUSY)
        try:
            yield
        finally:
            self._room.release()


def party_of(caller: Caller, connection: HTTPConnection) -> BudgetHolder:
    """Return the party whose queries and bytes are counted together with a caller's."""
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
        answer = refusal(error)
        if answer is None:
            raise
        raise answer from error


def refusal(error: OdfError) -> Refused | None:
    """Return the client's error response if the query is at fault; None if the server is."""
    if isinstance(error, ObjectNotFound):  # a file is missing: its path must not be revealed
        return None
    for kind, status in _STATUSES:
        if isinstance(error, kind):
            return Refused.of(status, error)
    if type(error) is EngineError:
        return Refused(400, error.message)
    return None
