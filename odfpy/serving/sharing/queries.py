"""Asynchronous queries: the server makes the files of an answer while the client waits elsewhere.

The protocol ("asyncQuery", "Get Query Info") lets a client give a query, get an id at once, and come back with it until
the answer is there. What takes long in an answer is making its files, which are kept; so the query runs once in the
background for their sake, and whoever comes back gets the lines as if they had asked now, of the same version.
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
_UNKNOWN: Final = "There is no such query, or it has ended; ask the table again"


@dataclass(frozen=True, slots=True)
class GivenQuery:
    """A query as a client gives it.

    Attributes:
        whose: the caller and the table, as a text that is the same for no others.
        question: likewise all that it asks for.
        body: what it asks for.
        can: what the client can read.
        version: number of the version that the answer ends with.
    """

    whose: str
    question: str
    body: QueryBody
    can: Capabilities
    version: int


@dataclass(frozen=True, slots=True)
class PendingQuery:
    """A query that is or was worked on.

    Attributes:
        id: what clients come back with.
        given: the query.
        began: when it was given, by the clock of `PendingQueries`.
        work: is done when all files are made.
    """

    id: str
    given: GivenQuery
    began: float
    work: Future[None]

    def pending(self) -> dict[str, Any]:
        """Return the line that tells the client to come back."""
        return {"queryStatus": {"queryId": self.id, "status": "pending"}}

    def status(self) -> dict[str, Any] | None:
        """Return the line that says how far it is; None if the answer can be had."""
        if not self.work.done():
            return self.pending()
        problem = self.work.exception()
        if problem is None:
            return None
        error = in_protocol(problem) if isinstance(problem, OdfError) else problem
        message = error.message if isinstance(error, SharingError) else "The server could not do that; its log says why"
        return {"queryStatus": {"queryId": self.id, "status": "failed", "errorMessage": message}}

    def is_same(self, other: GivenQuery) -> bool:
        """Return whether another query is this one, sent again."""
        key = self.given.body.idempotencyKey
        return bool(key) and (key, self.given.question) == (other.body.idempotencyKey, other.question)


class PendingQueries:
    """The asynchronous queries of a server. For all threads; nothing is kept longer than an hour."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Args:
            clock: tells the seconds that have gone by.
        """
        self._clock = clock
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="odf-sharing-query")
        self._kept: dict[str, PendingQuery] = {}  # the oldest first
        self._lock = Lock()
        self._stopped = Event()

    def submit(self, given: GivenQuery, lines: Callable[[], Iterable[object]]) -> PendingQuery:
        """Work on a query; one that is sent again with its key is the query that is there.

        Args:
            given: the query.
            lines: makes the lines of the answer, and by that its files.

        Raises:
            SharingError: 429, there are too many queries that are not done.
        """
        with self._lock:
            self._make_room()
            mine = [query for query in self._kept.values() if query.given.whose == given.whose]
            known = next((query for query in mine if query.is_same(given)), None)
            if known is not None:
                return known
            if sum(not query.work.done() for query in mine) >= _MAX_OF_ONE or len(self._kept) >= _MAX_COUNT:
                raise SharingError(429, "Too many queries are pending; come back for them first", retry_after=10)
            key = secrets.token_urlsafe(18)
            self._kept[key] = PendingQuery(key, given, self._clock(), self._pool.submit(self._run, lines))
            return self._kept[key]

    def find(self, key: str, whose: str) -> PendingQuery:
        """A query by its id.

        Args:
            key: the id.
            whose: who comes back for it, and to which table.

        Raises:
            SharingError: 404, it is not known, was given by somebody else or for another table, or is over.
        """
        with self._lock:
            self._make_room()
            found = self._kept.get(key)
        if found is None or found.given.whose != whose:
            raise SharingError(404, _UNKNOWN)
        return found

    def stop(self) -> None:
        """End what is worked on after the file at hand."""
        self._stopped.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, lines: Callable[[], Iterable[object]]) -> None:
        for _ in lines():
            if self._stopped.is_set():
                return

    def _make_room(self) -> None:
        """Drop queries that are over, and where there are too many, the oldest of those that are done."""
        now = self._clock()
        for key in [key for key, query in self._kept.items() if now - query.began > _SECONDS]:
            self._kept.pop(key).work.cancel()
        done = [key for key, query in self._kept.items() if query.work.done()]
        for key in done[: max(0, len(self._kept) - _MAX_COUNT + 1)]:
            del self._kept[key]
