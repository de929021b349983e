"""The calls of a relay for deferred results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.flight as fl

from odfpy.data.timestamp import Timestamp
from odfpy.federation.errors import WebObjectNotFound
from odfpy.federation.relay.actions import (
    CANCEL_RESULT,
    KEEP_QUERY,
    QUERIES,
    QUERY,
    RESULT,
    STORE_RESULT,
    body_of,
    text_in,
    tree_of,
)
from odfpy.federation.relay.errors import InvalidQuestion
from odfpy.federation.relay.requesters import Identity
from odfpy.federation.relay.results import ResultMaker
from odfpy.federation.relay.tickets import Tickets
from odfpy.federation.store.results import Result, Results, ResultState
from odfpy.serving.flight.errors import as_client_errors

FILE: Final = pa.schema([pa.field("data", pa.binary(), nullable=False)])
"""Columns of the rows that a file travels as."""

_PIECE: Final = 1 << 20
_QUERY: Final = "query "
_MAX_QUERY_LENGTH: Final = 100
_MAX_QUERIES: Final = 1_000
_NANOS: Final = 1_000_000_000


class ResultCalls:
    """The actions for results, and the streams of their files."""

    def __init__(self, maker: ResultMaker, results: Results, tickets: Tickets, lifetime: float) -> None:
        """
        Args:
            maker: makes the results.
            results: stored states of results.
            tickets: opens the relay's tickets.
            lifetime: seconds for which queries are remembered.
        """
        self._maker, self._results, self._tickets, self._lifetime = maker, results, tickets, lifetime
        self.actions: Final[Mapping[str, Callable[[Identity, bytes], bytes]]] = {
            STORE_RESULT: self._store,
            RESULT: self._result,
            CANCEL_RESULT: self._cancel,
            KEEP_QUERY: self._keep,
            QUERY: self._query,
            QUERIES: self._queries,
        }

    def file(self, ticket: bytes, caller: Identity, check: Callable[[], object]) -> Any:
        """Stream a file.

        Args:
            ticket: JSON, `{result, file}`.
            caller: the caller.
            check: raises an error if the caller's access has ended.

        Raises:
            WebObjectNotFound: the caller has no such file.
            TicketRefused: the caller's permissions have changed.
        """
        tree = tree_of(ticket)
        number = tree.get("file")
        if type(number) is not int:
            raise InvalidQuestion("The ticket of a file has a number")
        stream = self._maker.open(text_in(tree, "result"), caller.fingerprint, number)

        def pieces() -> Iterator[pa.RecordBatch]:
            with stream, as_client_errors():
                while piece := stream.read(_PIECE):
                    check()
                    yield pa.record_batch([pa.array([piece], pa.binary())], schema=FILE)

        return fl.GeneratorStream(FILE, pieces())

    def _store(self, caller: Identity, body: bytes) -> bytes:
        """Read a ticket into files of the result store."""
        text = text_in(tree_of(body), "ticket")
        return body_of(_state_of(self._maker.start(text, self._tickets.open(text, caller))))

    def _result(self, caller: Identity, body: bytes) -> bytes:
        """The state of a result."""
        return body_of(_state_of(self._maker.find(text_in(tree_of(body), "result"), caller.fingerprint)))

    def _cancel(self, caller: Identity, body: bytes) -> bytes:
        """Stop computing a result."""
        name = text_in(tree_of(body), "result")
        self._maker.cancel(name, caller.fingerprint)
        return body_of(_state_of(self._maker.find(name, caller.fingerprint)))

    def _keep(self, caller: Identity, body: bytes) -> bytes:
        """Remember a query whose results are made."""
        tree = tree_of(body)
        query = text_in(tree, "query")
        if len(query) > _MAX_QUERY_LENGTH or not isinstance(tree.get("record"), dict):
            raise InvalidQuestion("A query is remembered by its id, with a record")
        if self._results.count(caller.fingerprint, _QUERY) >= _MAX_QUERIES:
            raise InvalidQuestion(f"The relay remembers {_MAX_QUERIES} queries of you at most")
        until = Timestamp(Timestamp.now().nanos + int(self._lifetime * _NANOS))
        stored, _ = self._results.add(f"{_QUERY}{query}", caller.fingerprint, {"record": tree["record"]}, until)
        self._results.move(stored.id, ResultState.DONE)
        return body_of({"query": query, "expires": str(until)})

    def _query(self, caller: Identity, body: bytes) -> bytes:
        """The record of a query."""
        query = text_in(tree_of(body), "query")
        try:
            stored = self._results.get(f"{_QUERY}{query}", caller.fingerprint)
        except WebObjectNotFound as error:
            raise error.with_message(
                f"This relay remembers no query {query[:_MAX_QUERY_LENGTH]} of yours",
                hint="`odf web status` lists the stored ones. They expire after some time.",
            ) from None
        return body_of(_record_of(stored))

    def _queries(self, caller: Identity, body: bytes) -> bytes:
        """The queries of the caller that are remembered, the newest first."""
        tree_of(body)
        return body_of(
            [
                _record_of(result)
                for result in self._results.owned_by(caller.fingerprint)
                if result.id.startswith(_QUERY)
            ]
        )


def _state_of(result: Result) -> dict[str, Any]:
    details = {key: result.detail[key] for key in ("files", "rows", "why", "statement") if key in result.detail}
    return {"result": result.id, "state": result.state.value, "expires": str(result.expires_at), **details}


def _record_of(result: Result) -> dict[str, Any]:
    return {
        "query": result.id.removeprefix(_QUERY),
        "at": str(result.created_at),
        "expires": str(result.expires_at),
        "record": result.detail["record"],
    }
