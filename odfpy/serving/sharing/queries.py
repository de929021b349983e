"""Asynchronous queries: the server prepares the files of a response while the client waits.

The protocol ("asyncQuery", "Get Query Info") lets a client submit a query, get an id immediately, and poll until the
response is ready. The slow part of a response is producing its files, which are cached; so the query runs once in the
background to fill the cache, and the client then gets the lines as of a new request for the same version.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any, Final

from odfpy.errors import OdfError
from odfpy.serving.sharing.bodies import QueryBody
from odfpy.serving.sharing.capabilities import Capabilities
from odfpy.serving.sharing.errors import SharingError, in_protocol

_MAX_COUNT: Final = 1000
_MAX_OF_ONE: Final = 50
_AT_ONCE: Final = 2
_SECONDS: Final = 3600.0
_UNKNOWN: Final = "There is no such query, or it has expired; query the table again"


@dataclass(frozen=True, slots=True)
class GivenQuery:
    """A query as submitted by a client.

    Attributes:
        whose: a text that identifies the caller and the table.
        question: a text that identifies the parameters of the request.
        body: body of the request.
        can: capabilities of the client.
        version: number of the last version in the response.
    """

    whose: str
    question: str
    body: QueryBody
    can: Capabilities
    version: int


@dataclass(frozen=True, slots=True)
class PendingQuery:
    """A submitted query and its progress.

    Attributes:
        id: id for polling.
        given: the query.
        began: time of submission, by the clock of `PendingQueries`.
        work: a future that completes when all files are ready.
    """

    id: str
    given: GivenQuery
    began: float
    work: Future[None]

    def pending(self) -> dict[str, Any]:
        """Return the line that tells the client to poll."""
        return {"queryStatus": {"queryId": self.id, "status": "pending"}}

    def status(self) -> dict[str, Any] | None:
        """Return the line with the progress; None if the response is ready."""
        if not self.work.done():
            return self.pending()
        problem = self.work.exception()
        if problem is None:
            return None
        error = in_protocol(problem) if isinstance(problem, OdfError) else problem
        message = (
            error.message if isinstance(error, SharingError) else "Internal error; the server's log has the details"
        )
        return {"queryStatus": {"queryId": self.id, "status": "failed", "errorMessage": message}}

    def is_same(self, other: GivenQuery) -> bool:
        """Return whether another query is a repetition of this one."""
        key = self.given.body.idempotencyKey
        return bool(key) and (key, self.given.question) == (other.body.idempotencyKey, other.question)


class PendingQueries:
    """The asynchronous queries of a server; each is removed after an hour. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            clock: monotonic clock, in seconds.
        """
        self._clock = clock
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="odf-sharing-query")
        self._kept: dict[str, PendingQuery] = {}  # oldest first
        self._lock = Lock()
        self._stopped = Event()

    def submit(self, given: GivenQuery, lines: Callable[[], Iterable[object]]) -> PendingQuery:
        """Start a query; one that is repeated with its key returns the existing query.

        Args:
            given: the query.
            lines: produces the lines of the response, and thereby its files.

        Raises:
            SharingError: 429, there are too many unfinished queries.
        """
        with self._lock:
            self._make_room()
            own_queries = [query for query in self._kept.values() if query.given.whose == given.whose]
            known = next((query for query in own_queries if query.is_same(given)), None)
            if known is not None:
                return known
            if sum(not query.work.done() for query in own_queries) >= _MAX_OF_ONE or len(self._kept) >= _MAX_COUNT:
                raise SharingError(429, "Too many queries are pending; fetch their results first", retry_after=10)
            key = secrets.token_urlsafe(18)
            self._kept[key] = PendingQuery(key, given, self._clock(), self._pool.submit(self._run, lines))
            return self._kept[key]

    def find(self, key: str, whose: str) -> PendingQuery:
        """Return a query by its id.

        Args:
            key: the id.
            whose: identifies the caller and the table.

        Raises:
            SharingError: 404, it is unknown, expired, or belongs to another caller or table.
        """
        with self._lock:
            self._make_room()
            pending = self._kept.get(key)
        if pending is None or pending.given.whose != whose:
            raise SharingError(404, _UNKNOWN)
        return pending

    def stop(self) -> None:
        """Stop all queries after their current file."""
        self._stopped.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, lines: Callable[[], Iterable[object]]) -> None:
        for _ in lines():
            if self._stopped.is_set():
                return

    def _make_room(self) -> None:
        """Remove expired queries and, if there are too many, the oldest completed ones."""
        now = self._clock()
        for key in [key for key, query in self._kept.items() if now - query.began > _SECONDS]:
            self._kept.pop(key).work.cancel()
        done = [key for key, query in self._kept.items() if query.work.done()]
        for key in done[: max(0, len(self._kept) - _MAX_COUNT + 1)]:
            del self._kept[key]
