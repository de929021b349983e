"""The calls of a relay: GetFlightInfo answers a question, DoGet reads a ticket, ListFlights names the entities.

Whoever calls has shown a certificate in the TLS handshake; the guard in front of gRPC tells which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.flight as fl

from odfpy.federation.errors import NotBelieved
from odfpy.federation.relay.bounds import Received
from odfpy.federation.relay.flight import Connections, info_of, question_of
from odfpy.federation.relay.reading import SourceReader, columns_of, names_of
from odfpy.federation.relay.relay import Relay
from odfpy.federation.relay.requesters import Identity, identity_of
from odfpy.federation.relay.stored import StoredKnowledge
from odfpy.federation.relay.tickets import PassedTicket, Tickets
from odfpy.serving.flight.errors import NotSupported, Unauthenticated, WrongMessage, guarded
from odfpy.serving.flight.guard import FlightGuard
from odfpy.serving.flight.streams import Batches, CallControl, Rows, RunningQueries
from odfpy.serving.http.budget import MemoryBudget
from odfpy.serving.http.logs import log
from odfpy.serving.http.tls import Tls
from odfpy.serving.settings import ServeSettings


class RelayServer(fl.FlightServerBase):  # type: ignore[misc]
    """Answers; it does so from the moment it is made."""

    def __init__(
        self,
        relay: Callable[[str], Relay],
        knowledge: StoredKnowledge,
        reader: SourceReader,
        tickets: Tickets,
        connections: Connections,
        *,
        host: str,
        port: int,
        tls: Tls,
        settings: ServeSettings,
        public: str | None = None,
    ) -> None:
        """
        Args:
            relay: makes the relay, when it is known where its rows are read.
            knowledge: of the relay.
            reader: reads its sources.
            tickets: opens its tickets.
            connections: to other relays, for tickets of theirs that are passed on.
            host: name or address to listen at.
            port: port to listen at; 0 for any that is free.
            tls: certificate and key, and the authorities of clients.
            settings: limits and times.
            public: `HOST:PORT` by which others reach it; as it listens by default.

        Raises:
            ArrowException, OSError: it cannot listen there.
        """
        self._knowledge, self._reader, self._tickets, self._connections = knowledge, reader, tickets, connections
        self._settings = settings
        self._has_ended = False
        self.running = RunningQueries(settings.flight_queries, settings.flight_working, settings.patience)
        # Whoever answers a question waits for other relays, which perhaps wait for this one: it takes no place of those
        # who work.
        self._answering = RunningQueries(0, settings.flight_queries, settings.patience)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="odf-relay-")))  # nobody else may enter it
            path = folder / "server"
            self._guard = FlightGuard(host, port, path, MemoryBudget(settings), settings, tls)
            stack.callback(self._guard.close)
            self.location = f"grpc+tls://{public or f'{host}:{self._guard.port}'}"
            self._relay = relay(self.location)
            stack.callback(self._relay.close)
            super().__init__(f"grpc+unix://{path}")
            self._resources = stack.pop_all()

    def shutdown(self) -> None:
        """End it, once: nobody comes any more, and those that are there are waited for."""
        if not self._has_ended:
            self._has_ended = True
            self._guard.hang_up()
            super().shutdown()
            self._resources.close()

    @guarded
    def list_flights(self, context: Any, criteria: bytes) -> Iterator[Any]:
        """The entities; with criteria, those whose name has these in it."""
        self._caller(context)
        infos = []
        for name in names_of(self._knowledge, criteria.decode("utf-8", "replace")):
            descriptor = fl.FlightDescriptor.for_path(name)
            infos.append(fl.FlightInfo(columns_of(self._knowledge, name), descriptor, [], -1, -1))
        return iter(infos)

    @guarded
    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """The columns of an entity, which the path names."""
        self._caller(context)
        if descriptor.descriptor_type != fl.DescriptorType.PATH or len(descriptor.path) != 1:
            raise WrongMessage("The descriptor names no entity", hint="Give it the name of an entity as path.")
        return fl.SchemaResult(columns_of(self._knowledge, descriptor.path[0].decode("utf-8", "replace")))

    @guarded
    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """Answer a question."""
        caller = self._caller(context)
        if descriptor.descriptor_type != fl.DescriptorType.CMD:
            raise WrongMessage("The descriptor is no question", hint="Ask with `odf web sql`.")
        question = question_of(descriptor.command)
        with self._answering.working():
            answer = self._relay.answer(question, caller)
        return info_of(answer, question.fragment.schema, descriptor)

    @guarded
    def do_get(self, context: Any, ticket: Any) -> Any:
        """The rows of a ticket."""
        opened = self._tickets.open(ticket.ticket.decode("ascii", "replace"), self._caller(context))
        seconds = self._settings.flight_timeout
        control = CallControl(context, seconds)
        with ExitStack() as stack:
            stack.callback(self.running.end, control)
            self.running.begin(opened.id, control)
            rows: Rows
            if isinstance(opened, PassedTicket):
                passed = self._connections.rows(opened.part, seconds, reader=opened.holder.fingerprint)
                rows = _Passed(stack.enter_context(passed), Received(self._settings.passed_bytes))
            else:
                rows = self._reader.read(opened, control)
            tell = lambda count: log("relay read", query=opened.id, rows=count)  # noqa: E731
            batches = Batches(rows, self.running, control, stack.pop_all(), tell)
            return fl.GeneratorStream(batches.schema, batches)

    @guarded
    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Nothing is written.

        Args:
            context: the context of the call.
            descriptor: the descriptor of the call.
            reader: the stream from the client.
            writer: the stream to the client.
        """
        del context, descriptor, reader, writer
        raise NotSupported("Nothing is written here", hint="Relays only read.")

    @guarded
    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Nothing goes both ways.

        Args:
            context: the context of the call.
            descriptor: the descriptor of the call.
            reader: the stream from the client.
            writer: the stream to the client.
        """
        del context, descriptor, reader, writer
        raise NotSupported("Nothing is exchanged here", hint="Relays only read.")

    @guarded
    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """There are no actions."""
        del context
        raise NotSupported(f"There is no action {action.type[:100]!r} here")

    def _caller(self, context: Any) -> Identity:
        certificate = self._guard.certificate_of(context.peer())
        if certificate is None:
            raise Unauthenticated("No certificate was shown")
        caller = identity_of(certificate)
        if self._knowledge.is_revoked(caller.fingerprint):
            raise NotBelieved("The certificate was revoked", hint="Ask the operator of the relay for a new one.")
        return caller


class _Passed:
    """The rows of another relay, which go on as they come."""

    def __init__(self, reader: Any, received: Received) -> None:
        self.schema: pa.Schema = reader.schema
        self._reader = reader
        self._received = received

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return (self._received.taken("", chunk.data) for chunk in self._reader if chunk.data is not None)
