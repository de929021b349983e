"""A relay that queries on behalf of a client that cannot sign tokens: it authenticates as itself, and vouches for it.

Other relays return what both the relay and the client may see. Rows are read here: those of the relay's own sources,
and those of other relays by tickets that are bound to its key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final

import pyarrow as pa

from odfpy.data.rows.batch_stream import BatchStream
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import OdfError
from odfpy.federation.execution.answer import WebAnswer
from odfpy.federation.execution.execute import execute
from odfpy.federation.execution.options import QueryOptions
from odfpy.federation.execution.relay_client import Chunk, PartRows, RelayClient
from odfpy.federation.relay.errors import RelayUnavailable
from odfpy.federation.relay.question import Answer, AnswerOptions, Cancellation, Part, Question, SentFragment
from odfpy.federation.relay.reading import entities_of
from odfpy.federation.relay.relay import Relay
from odfpy.federation.relay.requesters import Identity
from odfpy.federation.relay.rows import TicketReader
from odfpy.federation.relay.stored_catalog import StoredCatalog
from odfpy.federation.relay.tickets import PassedTicket
from odfpy.federation.sql.fragment import Fragment
from odfpy.serving.flight.streams import CallCancellation, RunningQueries

PATIENCE: Final = 30.0
"""Seconds for peers to report where rows can be read."""

_LOOK: Final = 0.2
"""Seconds between two checks whether the client is still connected."""


class LocalRelayClient(RelayClient):
    """The `RelayClient` of a relay on behalf of a client; used for Flight SQL."""

    def __init__(
        self,
        relay: Relay,
        catalog: StoredCatalog,
        reader: TicketReader,
        running: RunningQueries,
        caller: Identity,
    ) -> None:
        """
        Args:
            relay: the relay.
            catalog: catalog of the relay.
            reader: reads the rows of tickets.
            running: limits on concurrent computations.
            caller: the client.
        """
        self._relay = relay
        self._catalog = catalog
        self._reader = reader
        self._running = running
        self._caller = caller

    def entities(self, seconds: float) -> Mapping[str, pa.Schema]:
        """Return the entities of which the client may see something, by name.

        Args:
            seconds: unused, since nothing is waited for.
        """
        del seconds
        return entities_of(self._catalog, "", self._caller)

    def ask(
        self, query: str, fragments: Mapping[str, Fragment], options: AnswerOptions, seconds: float
    ) -> Mapping[str, Answer]:
        """Return the answers of the relay to the fragments of a query; the fragments are sent concurrently.

        Args:
            query: its id.
            fragments: fragments by name.
            options: requested additions to the rows.
            seconds: to wait.

        Raises:
            OdfError: the relay refuses.
        """

        def ask(item: tuple[str, Fragment]) -> Answer:
            name, fragment = item
            question = Question(
                f"{query} {name}", SentFragment.of(fragment), seconds=min(seconds, PATIENCE), options=options
            )
            return self._relay.answer(question, self._caller)

        return self._at_once(query, fragments, ask)

    @contextmanager
    def rows(self, part: Part, seconds: float) -> Iterator[PartRows]:
        """Open the rows of a part, from the relay's own source or from the relay that has them.

        Args:
            part: the part to read.
            seconds: time limit for the whole operation.

        Raises:
            TicketRefused: the client may no longer see them.
            OdfError: they cannot be read.
        """
        opened = self._reader.tickets.open(part.ticket, self._caller)
        if isinstance(opened, PassedTicket):
            with self._reader.connections.rows(opened.part, seconds, reader=opened.holder.fingerprint) as local_rows:
                yield local_rows
            return
        with CancellationToken(seconds) as control:
            with self._running.working():
                rows = self._reader.sources.read(opened, control)
            yield _OwnRows(rows, control, self._running)

    def cancel(self, query: str) -> None:
        """Cancel a query here and at all relays that were queried.

        Args:
            query: id of the query.
        """
        with suppress(OdfError):
            self._relay.cancel(Cancellation(query), self._caller)


class SchemaOnlyClient(RelayClient):
    """A `RelayClient` without relays, for determining the columns of an answer: they do not depend on relays."""

    def __init__(self, entities: Mapping[str, pa.Schema]) -> None:
        """
        Args:
            entities: schemas by name.
        """
        self._entities = entities

    def entities(self, seconds: float) -> Mapping[str, pa.Schema]:
        """Implement `RelayClient`."""
        del seconds
        return self._entities

    def ask(
        self, query: str, fragments: Mapping[str, Fragment], options: AnswerOptions, seconds: float
    ) -> Mapping[str, Answer]:
        """Implement `RelayClient`: there are no parts."""
        del query, options, seconds
        return dict.fromkeys(fragments, Answer())

    def rows(self, part: Part, seconds: float) -> AbstractContextManager[PartRows]:
        """Implement `RelayClient`: there are no rows.

        Raises:
            RelayUnavailable: always.
        """
        del seconds
        raise RelayUnavailable(f"The relay {part.relay} was not asked")

    def cancel(self, query: str) -> None:
        """Implement `RelayClient`: no relay is notified."""


class _OwnRows:
    """Rows of the relay's own source, computed when a slot is free."""

    def __init__(self, rows: BatchStream, control: CancellationToken, running: RunningQueries) -> None:
        self.schema: pa.Schema = rows.schema
        self._rows = rows
        self._control = control
        self._running = running

    def __iter__(self) -> Iterator[Chunk]:
        rows = iter(self._rows)
        while True:
            with self._running.working():
                batch = next(rows, None)
            if batch is None:
                return
            yield Chunk(batch)

    def cancel(self) -> None:
        self._control.cancel()


def execute_for_call(client: RelayClient, sql: str, options: QueryOptions, control: CallCancellation) -> WebAnswer:
    """Run a query for a call until its client disconnects; the thread of the call checks this.

    Args:
        client: the client of the relays.
        sql: the query.
        options: limits of the query.
        control: cancellation of the call.

    Raises:
        QueryCancelled: the client has disconnected, or the query was canceled.
        OdfError: as `execute`.
    """
    with ThreadPoolExecutor(1) as threads:
        future = threads.submit(execute, client, sql, options, control)
        while not wait([future], _LOOK).done:
            with suppress(OdfError):  # the query reports the error
                control.check()
        return future.result()
