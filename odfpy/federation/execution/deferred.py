"""Deferred queries: relays write the parts of a query to files, and the client fetches these later.

The relay that received the query stores it, so users only need its id to return, from any machine with their key. Each
part is a result at the relay that reads it. Files are checked against their hashes, and complete files are kept: an
interrupted fetch continues where it was.
"""

from __future__ import annotations

import io
import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final, cast

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.chain.stores.object_store import LocalObjectStore
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import OdfError, ResultTooLarge, UsageError
from odfpy.federation.execution.answer import WebAnswer
from odfpy.federation.execution.deferred_query import (
    DeferredPart,
    DeferredQuery,
    answered_text,
    query_of,
    record_of,
    with_state,
)
from odfpy.federation.execution.execute import AT_ONCE, missing_relays, rest_rows, start_query
from odfpy.federation.execution.options import DEFAULTS, QueryOptions
from odfpy.federation.execution.parts import ReadPart
from odfpy.federation.execution.relay_client import PartRows
from odfpy.federation.execution.user import User
from odfpy.federation.relay.bounds import Received
from odfpy.federation.relay.errors import InvalidAnswer, ResultNotReady
from odfpy.federation.relay.question import AnswerOptions, MissingRelay, Part
from odfpy.files import cache_folder

_LOOK: Final = 0.2
_MAX_LOOK: Final = 2.0
_QUERY: Final = re.compile(r"[0-9a-f]{8,64}")


class DeferredQueries:
    """The deferred queries of a user: submits them, reports their state and fetches their rows."""

    def __init__(self, user: User) -> None:
        """
        Args:
            user: the user, as a client of relays.
        """
        self._user = user

    def start(self, sql: str, options: QueryOptions = DEFAULTS) -> DeferredQuery:
        """Submit a query, and have all relays start to produce its parts.

        Args:
            sql: a DataFusion query over the entities.
            options: limits, and requested additions; `seconds` only limits the submission.

        Raises:
            InvalidQuery: the query is invalid.
            IncompleteAnswer: a relay is missing, and the answer must be complete.
            OdfError: the relay does not answer, or refuses.
        """
        ends = time.monotonic() + options.seconds
        started = start_query(
            self._user, sql, ends, AnswerOptions(single_use=options.single_use, signed=options.signed)
        )
        missing_relays(started, (), require_complete=options.require_complete)
        wanted = [(name, part) for name, answer in started.answers.items() for part in answer.parts]

        def begin(named_part: tuple[str, Part]) -> DeferredPart:
            name, part = named_part
            bare = DeferredPart(name, part.relay, part.location, "")
            try:
                state = self._user.store_result(part, max(0.1, ends - time.monotonic()))
                return with_state(replace(bare, result=answered_text(state, "result")), state)
            except OdfError as error:
                return replace(bare, state="failed", why=error.message)

        with ThreadPoolExecutor(AT_ONCE) as threads:
            parts = tuple(threads.map(begin, wanted))
        kept = self._user.keep_query(started.query, record_of(started, parts))
        return DeferredQuery(started.query, "", str(kept.get("expires", "")), started, parts)

    def all(self) -> list[DeferredQuery]:
        """Return the queries that the relay remembers, newest first; their parts are as of submission.

        Raises:
            OdfError: the relay does not respond.
        """
        return [query_of(query) for query in self._user.queries()]

    def find(self, query: str) -> DeferredQuery:
        """Return a query, with the current state of its parts.

        Args:
            query: id of the query.

        Raises:
            OdfError: the relay does not respond, or has no such query.
        """
        deferred = query_of(self._user.query(query))
        with ThreadPoolExecutor(AT_ONCE) as threads:
            return replace(deferred, parts=tuple(threads.map(self._now, deferred.parts)))

    def cancel(self, query: str) -> DeferredQuery:
        """Stop the relays from producing further parts.

        Args:
            query: id of the query.

        Raises:
            OdfError: the relay does not respond, or has no such query.
        """
        for part in self.find(query).parts:
            if part.is_under_way:
                self._user.cancel_result(part.location, part.result)
        self._user.cancel(query)
        return self.find(query)

    def _now(self, part: DeferredPart) -> DeferredPart:
        if not part.result:
            return part
        try:
            return with_state(part, self._user.result(part.location, part.result))
        except OdfError as error:
            return replace(part, state="unknown", why=error.message)

    # --- Fetching ---

    def fetch(
        self,
        query: str,
        options: QueryOptions = DEFAULTS,
        *,
        folder: Path | None = None,
        control: CancellationToken | None = None,
        tell: Callable[[DeferredQuery], object] = lambda _: None,
    ) -> WebAnswer:
        """Wait until all parts are complete, fetch them, and combine the answer.

        Args:
            query: its id.
            options: bounds.
            folder: where the files go, and stay; a folder of the cache by default.
            control: lets another thread cancel it.
            tell: called with the progress of the query.

        Raises:
            ResultNotReady: parts are still being made when the time is over.
            IncompleteAnswer: a part is missing, and the answer must be complete.
            OdfError: a relay does not respond; fetched files are kept for the next attempt.
        """
        ends = time.monotonic() + options.seconds
        with ExitStack() as stack:
            inner = stack.enter_context(CancellationToken(options.seconds, parent=control))
            deferred = self._finished(query, ends, inner, tell)
            target = folder or _cached(query)
            received = Received(options.received)

            def fetched(part: DeferredPart) -> ReadPart:
                schema = deferred.asked.fragments[part.fragment].schema
                try:
                    return _checked(self._fetched(part, target / part.result, ends, inner, received), schema)
                except (InvalidAnswer, ResultTooLarge) as error:
                    return _missing(part, error.message)

            with ThreadPoolExecutor(AT_ONCE) as threads:
                try:
                    read = list(threads.map(fetched, deferred.parts))
                except BaseException:
                    inner.cancel()
                    raise
            missing = missing_relays(deferred.asked, read, require_complete=options.require_complete)
            rows = rest_rows(deferred.asked, read, options.memory, inner)
            stack.callback(rows.close)
            relays = tuple(deferred_part.relay for deferred_part in deferred.parts)
            return WebAnswer(deferred.asked, rows, relays, missing, read, stack.pop_all())

    @staticmethod
    def forget_files(query: str) -> None:
        """Delete the files of a query from the local cache.

        Args:
            query: id of the query.
        """
        shutil.rmtree(_cached(query), ignore_errors=True)

    def _finished(
        self, query: str, ends: float, control: CancellationToken, tell: Callable[[DeferredQuery], object]
    ) -> DeferredQuery:
        pause = _LOOK
        while True:
            deferred = self.find(query)
            tell(deferred)
            if deferred.state != "running":
                return deferred
            if time.monotonic() + pause > ends:
                done = sum(not part.is_under_way for part in deferred.parts)
                raise ResultNotReady(
                    f"{done} of {len(deferred.parts)} parts of query {query} are made",
                    hint="Try again later, or wait longer with --timeout.",
                )
            control.check()
            time.sleep(pause)
            pause = min(_MAX_LOOK, pause * 1.5)

    def _fetched(
        self, part: DeferredPart, folder: Path, ends: float, control: CancellationToken, received: Received
    ) -> ReadPart:
        """Return the files of a part; those that are cached are not fetched again."""
        if part.state != "done":
            return _missing(part, part.why or f"its part is {part.state}")
        began = time.monotonic()
        store = LocalObjectStore(folder)
        for number, file in enumerate(part.files):
            control.check()
            if file.hash not in store:
                with self._user.result_file(part.location, part.result, number, ends - time.monotonic()) as rows:
                    pieces = _Pieces(_bytes_of(rows, received, part.result), control)
                    store.insert_stream(cast("BinaryIO", pieces), file.hash, size=file.bytes)
        paths = tuple(folder / str(result_file.hash) for result_file in part.files)
        seconds = time.monotonic() - began
        plain = Part(part.relay, part.location, "")
        return ReadPart(
            part.fragment, plain, paths, None, part.rows or 0, part.bytes or 0, seconds, None, part.statement
        )


def _cached(query: str) -> Path:
    if not _QUERY.fullmatch(query):
        raise UsageError(f"Not the id of a query: {query[:100]!r}", hint="`odf web status` lists yours.")
    return cache_folder() / "web" / query


def _checked(part: ReadPart, schema: pa.Schema) -> ReadPart:
    """Return the part, if its files have the requested columns.

    Raises:
        InvalidAnswer: they have other columns, or are not Parquet files.
    """
    try:
        is_good = all(pq.read_schema(path).equals(schema) for path in part.paths)
    except pa.ArrowException as error:
        raise InvalidAnswer("it returned files that are not Parquet") from error
    if not is_good:
        raise InvalidAnswer("it returned other columns than requested")
    return part


def _missing(part: DeferredPart, why: str) -> ReadPart:
    return ReadPart(part.fragment, Part(part.relay, part.location, ""), missing=MissingRelay(part.relay, why))


def _bytes_of(rows: PartRows, received: Received, result: str) -> Iterator[bytes]:
    """Return the bytes of a file that is streamed as rows with one column.

    Raises:
        InvalidAnswer: the stream has another form.
        ResultTooLarge: it exceeds the limit.
    """
    for chunk in rows:
        if chunk.data is not None:
            batch = received.taken(result, chunk.data)
            if [field.type for field in batch.schema] != [pa.binary()] or batch.column(0).null_count:
                raise InvalidAnswer("it did not return the bytes of a file")
            yield from batch.column(0).to_pylist()


class _Pieces(io.RawIOBase):
    """A file that is being received, as a stream of bytes."""

    def __init__(self, pieces: Iterator[bytes], control: CancellationToken) -> None:
        super().__init__()
        self._left = pieces
        self._control = control

    def read(self, size: int = -1) -> bytes:
        """Return the next piece, whatever its size."""
        del size
        self._control.check()
        return next(self._left, b"")
