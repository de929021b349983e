"""The Flight calls of a relay: GetFlightInfo answers a question, DoGet redeems a ticket, ListFlights lists the
entities.

Commands and tickets that are `Any` messages, not JSON, belong to Flight SQL (`odfpy.serving.relay.flight_sql`).

Aborting GetFlightInfo, and the actions CancelFlightInfo and `odf.web.Cancel`, cancel a query here and at all relays
that were queried.

Callers have presented a certificate in the TLS handshake; the guard in front of gRPC knows which.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow.flight as fl

from odfpy.federation.errors import AuthenticationFailed
from odfpy.federation.relay.actions import CANCEL, body_of, tree_of
from odfpy.federation.relay.flight import info_of, query_of, question_of
from odfpy.federation.relay.query_registry import QueryKey
from odfpy.federation.relay.question import Cancellation, Question, SentFragment
from odfpy.federation.relay.reading import columns_of, entities_of, whole_entity
from odfpy.federation.relay.relay import Relay
from odfpy.federation.relay.requesters import Identity, identity_of
from odfpy.federation.relay.rows import TicketReader
from odfpy.federation.relay.stored_catalog import StoredCatalog
from odfpy.serving.flight.commands import CANCELLED, no_action
from odfpy.serving.flight.errors import NotSupported, Unauthenticated, WrongMessage, as_arrow, guarded
from odfpy.serving.flight.guard import AcceptAnyHandshake, FlightGuard
from odfpy.serving.flight.messages import message, parse
from odfpy.serving.flight.streams import CallBatches, CallCancellation, RunningQueries
from odfpy.serving.http.budget import MemoryBudget
from odfpy.serving.http.listen_address import ListenAddress
from odfpy.serving.http.logs import log
from odfpy.serving.relay.flight_sql import FlightSql, cancelled_query
from odfpy.serving.relay.headers import MIDDLEWARE, CallHeadersFactory
from odfpy.serving.relay.local_client import LocalRelayClient
from odfpy.serving.relay.results import ResultCalls
from odfpy.serving.relay.rows import RowsWithStatement
from odfpy.serving.relay.sql_tickets import SqlTickets
from odfpy.serving.settings import ServeSettings

_MESSAGE: Final = b"\n"
"""The first byte of a protobuf `Any`; other commands are texts, which do not begin with it."""


class RelayServer(fl.FlightServerBase):  # type: ignore[misc]
    """The Flight server of a relay; it serves from construction."""

    def __init__(
        self,
        relay: Callable[[str], Relay],
        catalog: StoredCatalog,
        reader: TicketReader,
        results: ResultCalls,
        address: ListenAddress,
        settings: ServeSettings,
        *,
        public: str | None = None,
    ) -> None:
        """
        Args:
            relay: makes the relay, when it is known where its rows are read.
            catalog: of the relay.
            reader: reads the rows of tickets.
            results: the calls that concern results which are fetched later.
            address: the address to listen on, with the authorities of clients.
            settings: limits and times.
            public: `HOST:PORT` by which others reach it; by default the listening address.

        Raises:
            ArrowException, OSError: the server cannot listen on the address.
        """
        self._catalog, self._reader, self._results, self._settings = catalog, reader, results, settings
        self._has_ended = False
        self.running = RunningQueries(settings.flight_queries, settings.flight_working, settings.patience)
        # Answering a question waits for other relays, which may wait for this one: so it does not occupy a slot for
        # computations.
        self._answering = RunningQueries(0, settings.flight_queries, settings.patience)
        self._sql = FlightSql(self._client, SqlTickets(reader.tickets.seal), self.running, settings, self._check)
        self._actions: Mapping[str, Callable[[Identity, bytes], bytes]] = {
            "CancelFlightInfo": self._cancel_info,
            "CancelQuery": self._cancel_sql,
            CANCEL: self._cancel_query,
            **results.actions,
            **self._sql.actions,
        }
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="odf-relay-")))  # readable by this user only
            path = folder / "server"
            self._guard = FlightGuard(address.host, address.port, path, MemoryBudget(settings), settings, address.tls)
            stack.callback(self._guard.close)
            self.location = f"grpc+tls://{public or f'{address.host}:{self._guard.port}'}"
            self._relay = relay(self.location)
            stack.callback(self._relay.close)
            super().__init__(
                f"grpc+unix://{path}", auth_handler=AcceptAnyHandshake(), middleware={MIDDLEWARE: CallHeadersFactory()}
            )
            self._resources = stack.pop_all()

    def shutdown(self) -> None:
        """Shut down once: accept no more clients, and wait for the current ones."""
        if not self._has_ended:
            self._has_ended = True
            self._guard.hang_up()
            super().shutdown()
            self._resources.close()

    @guarded
    def list_flights(self, context: Any, criteria: bytes) -> Iterator[Any]:
        """List the entities visible to the caller; with criteria, those whose name contains them."""
        caller = self._caller(context)
        infos = []
        for name, columns in entities_of(self._catalog, criteria.decode("utf-8", "replace"), caller).items():
            infos.append(fl.FlightInfo(columns, fl.FlightDescriptor.for_path(name), [], -1, -1))
        return iter(infos)

    @guarded
    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """Return the columns of an entity, which the path names, or of an answer of Flight SQL."""
        caller = self._caller(context)
        if _is_sql(descriptor):
            return fl.SchemaResult(self._sql.schema(caller, descriptor.command))
        return fl.SchemaResult(columns_of(self._catalog, _entity_of(descriptor), caller))

    @guarded
    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """Answer a question; a path is one for all rows of an entity."""
        caller = self._caller(context)
        if _is_sql(descriptor):
            return self._sql.info(context, caller, descriptor)
        if descriptor.descriptor_type == fl.DescriptorType.CMD:
            question = question_of(descriptor.command)
        else:
            fragment = whole_entity(self._catalog, _entity_of(descriptor), caller)
            question = Question(f"{secrets.token_hex(16)} f1", SentFragment.of(fragment))
        control = CallCancellation(context)
        try:
            with self._answering.working():
                answer = self._relay.answer(question, caller, control)
        finally:
            control.leave()
        return info_of(answer, question, descriptor)

    @guarded
    def do_get(self, context: Any, ticket: Any) -> Any:
        """Return the rows of a ticket, or a file of a result."""
        caller = self._caller(context)
        if ticket.ticket.startswith(b"{"):
            return self._results.file(ticket.ticket, caller, partial(self._check, caller))
        if ticket.ticket.startswith(_MESSAGE):
            return self._sql.rows(context, caller, ticket.ticket)
        opened = self._reader.tickets.open(ticket.ticket.decode("ascii", "replace"), caller)
        seconds = self._settings.flight_timeout
        control = CallCancellation(context, seconds)
        with ExitStack() as stack:
            stack.callback(control.close)  # otherwise its timer would keep running
            stack.callback(self.running.end, control)
            self.running.begin(str(QueryKey(opened.holder.fingerprint, opened.id.partition(" ")[0])), control)
            rows = stack.enter_context(self._reader.rows(opened, control, seconds, self._settings.passed_bytes))
            report = lambda count: log("relay read", query=opened.id, rows=count)  # noqa: E731
            batches = CallBatches(rows, self.running, control, stack.pop_all(), report)
            stated = RowsWithStatement(batches, lambda: rows.statement, partial(self._check, caller))
            return fl.GeneratorStream(batches.schema, stated)

    @guarded
    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Set the parameters of a prepared Flight SQL statement; nothing is written.

        Args:
            context: the context of the call.
            descriptor: the descriptor of the call.
            reader: the stream from the client.
            writer: the stream to the client.
        """
        caller = self._caller(context)
        if not _is_sql(descriptor):
            raise NotSupported("Nothing is written here", hint="Relays are read-only.")
        self._sql.bind(caller, descriptor, reader, writer)

    @guarded
    def do_exchange(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Reject exchanges.

        Args:
            context: the context of the call.
            descriptor: the descriptor of the call.
            reader: the stream from the client.
            writer: the stream to the client.
        """
        del context, descriptor, reader, writer
        raise NotSupported("Nothing is exchanged here", hint="Relays are read-only.")

    @guarded
    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """Return the actions of `do_action`."""
        del context
        return [(name, (call.__doc__ or "").splitlines()[0]) for name, call in self._actions.items()]

    @guarded
    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """Everything that is neither a question nor rows."""
        call = self._actions.get(action.type)
        if call is None:
            raise no_action(action.type)
        return iter([call(self._caller(context), action.body.to_pybytes())])

    def _cancel_info(self, caller: Identity, body: bytes) -> bytes:
        """Cancel the query of a FlightInfo, here and at all relays that were asked."""
        self._cancel(Cancellation(_query_in(parse("CancelFlightInfoRequest", body).info)), caller)
        return bytes(message("CancelFlightInfoResult", status=CANCELLED).SerializeToString())

    def _cancel_sql(self, caller: Identity, body: bytes) -> bytes:
        """Cancel the query of a FlightInfo, as older clients say it."""
        info, answer = cancelled_query(body)
        self._cancel(Cancellation(_query_in(info)), caller)
        return answer

    def _cancel_query(self, caller: Identity, body: bytes) -> bytes:
        """Cancel a query by its id, here and at all relays that were asked."""
        self._cancel(Cancellation.parse(tree_of(body)), caller)
        return body_of({})

    def _cancel(self, cancellation: Cancellation, caller: Identity) -> None:
        self.running.cancel(str(self._relay.cancel(cancellation, caller)))

    def _client(self, caller: Identity) -> LocalRelayClient:
        return LocalRelayClient(self._relay, self._catalog, self._reader, self.running, caller)

    def _caller(self, context: Any) -> Identity:
        certificate = self._guard.certificate_of(context.peer())
        if certificate is None:
            raise Unauthenticated("No certificate was shown")
        caller = identity_of(certificate)
        self._check(caller)
        return caller

    def _check(self, caller: Identity) -> None:
        """Check that a certificate is still valid; it was valid when the caller connected.

        Raises:
            AuthenticationFailed: it was revoked, or has expired.
        """
        if self._catalog.is_revoked(caller.fingerprint):
            raise AuthenticationFailed(
                "The certificate was revoked", hint="Ask the operator of the relay for a new one."
            )
        if caller.certificate is not None:
            identity_of(caller.certificate)


def _is_sql(descriptor: Any) -> bool:
    """Return whether a descriptor has a command of Flight SQL, and not a question or the name of an entity."""
    return bool(descriptor.descriptor_type == fl.DescriptorType.CMD and descriptor.command.startswith(_MESSAGE))


def _query_in(data: bytes) -> str:
    """Return the query of a FlightInfo."""
    return query_of(as_arrow(lambda: fl.FlightInfo.deserialize(data), "Not a FlightInfo"))


def _entity_of(descriptor: Any) -> str:
    """Return the entity that a path names."""
    if descriptor.descriptor_type != fl.DescriptorType.PATH or len(descriptor.path) != 1:
        raise WrongMessage("The descriptor names no entity", hint="Give it the name of an entity as path.")
    return str(descriptor.path[0].decode("utf-8", "replace"))
