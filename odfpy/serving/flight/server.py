"""The calls of Flight SQL.

GetFlightInfo plans an answer and returns tickets, DoGet runs it. A query is sent as a statement, as a prepared
statement, or as the path of a plain Flight descriptor, which stands for the complete dataset of that name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.flight as fl

from odfpy.coordinator.workspace import Workspace
from odfpy.query.dialects import dialect_named
from odfpy.query.service import QueryService
from odfpy.serving.callers.engines import ServedEngines
from odfpy.serving.callers.reachable_objects import ReachableObjectsCache
from odfpy.serving.callers.registry import ServedRegistry
from odfpy.serving.callers.resolver import CallerResolver
from odfpy.serving.flight.binding import bound_values
from odfpy.serving.flight.call_context import CallContext
from odfpy.serving.flight.commands import (
    CANCELLED,
    CLOSED,
    expect,
    no_action,
    no_rows,
    no_writing,
    option_bytes,
    refuse_transaction,
)
from odfpy.serving.flight.errors import NotSupported, WrongMessage, as_arrow, guarded
from odfpy.serving.flight.guard import AcceptAnyHandshake, FlightGuard, client_of
from odfpy.serving.flight.messages import message, name_of, parse, unwrap, wrap
from odfpy.serving.flight.metadata import is_metadata, metadata, metadata_schema
from odfpy.serving.flight.names import CATALOG, DB_SCHEMA, DEFAULT_DIALECT
from odfpy.serving.flight.sessions import MIDDLEWARE, Middleware, MiddlewareFactory, Sessions, set_option
from odfpy.serving.flight.statements import PlannedStatement, Schemas, Statement, Statements, plan_answer
from odfpy.serving.flight.streams import CallBatches, CallCancellation, RunningQueries
from odfpy.serving.flight.tables import DatasetTables
from odfpy.serving.flight.tickets import QueryTicket, Ticket
from odfpy.serving.http.budget import BudgetHolder, MemoryBudget
from odfpy.serving.http.logs import log
from odfpy.serving.http.tls import Tls
from odfpy.serving.settings import ServeSettings

_READ_ONLY: Final = "Use `odf ingest` or `odf pull`: SQL is read-only."


class FlightSqlServer(fl.FlightServerBase):  # type: ignore[misc]
    """The Flight SQL server of `odf serve`; it serves from construction.

    Attributes:
        running: the running queries.
    """

    def __init__(
        self,
        workspaces: Sequence[Workspace],
        location: str,
        settings: ServeSettings,
        *,
        tls: Tls | None = None,
        budget: MemoryBudget | None = None,
    ) -> None:
        """
        Args:
            workspaces: the served workspaces; the engines of the first one run queries.
            location: where to listen: a URL with a port, 0 for any that is free.
            settings: limits and times.
            tls: certificate and key; without them nothing is encrypted.
            budget: memory budget for received data, if shared with other servers of this process.

        Raises:
            ArrowException, OSError: the server cannot listen on the address.
        """
        self._served = ServedRegistry([workspace.storage for workspace in workspaces])
        self._reaches = ReachableObjectsCache()
        self._engines = ServedEngines(workspaces[0], settings.query_memory, settings.query_timeout)
        self._settings = settings
        self._schemas = Schemas()
        self._statements = Statements()
        self._sessions = Sessions(self._served.storages, self._statements.close_all)
        self.running = RunningQueries(settings.flight_queries, settings.flight_working, settings.patience)
        where = urlsplit(location)
        with ExitStack() as stack:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="odf-flight-")))  # readable by this user only
            path = folder / "server"
            self._guard = FlightGuard(
                where.hostname or "", where.port or 0, path, budget or MemoryBudget(settings), settings, tls
            )
            stack.callback(self._guard.close)
            super().__init__(
                f"grpc+unix://{path}",
                auth_handler=AcceptAnyHandshake(),
                middleware={MIDDLEWARE: MiddlewareFactory(self._sessions)},
            )
            self._resources = stack.pop_all()

    @property
    def port(self) -> int:
        """Return where clients reach it."""
        return self._guard.port

    def shutdown(self) -> None:
        """Shut down: accept no more clients, and wait for the current ones."""
        self._guard.hang_up()
        super().shutdown()
        self._resources.close()

    # --- What there is ---

    @guarded
    def list_flights(self, context: Any, criteria: bytes) -> Iterator[Any]:
        """List the datasets visible to the caller as plain Flights; with criteria, those whose name contains them."""
        resolver = self._call_context(context).resolver
        tables = DatasetTables(resolver)
        wanted = criteria.decode("utf-8", "replace")
        infos = []
        for name in resolver.names():
            schema = tables.schema(name) if wanted in name else None
            if schema is not None:
                descriptor = fl.FlightDescriptor.for_path(name)
                infos.append(fl.FlightInfo(schema, descriptor, [], resolver.find(name).state.num_records, -1))
        return iter(infos)

    @guarded
    def get_schema(self, context: Any, descriptor: Any) -> Any:
        """Return the columns of an answer."""
        call = self._call_context(context)
        command = _command(descriptor)
        schema = metadata_schema(command) if is_metadata(command) else self._planned(call, command).schema
        return fl.SchemaResult(schema)

    @guarded
    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        """Plan an answer."""
        call = self._call_context(context)
        command = _command(descriptor)
        if is_metadata(command):
            endpoint = fl.FlightEndpoint(wrap(command), [])
            return fl.FlightInfo(metadata_schema(command), descriptor, [endpoint], -1, -1)
        planned = self._planned(call, command)
        endpoints = [fl.FlightEndpoint(ticket.to_bytes(), []) for ticket in planned.tickets()]
        return fl.FlightInfo(planned.schema, descriptor, endpoints, planned.num_rows, -1, True)

    # --- Rows ---

    @guarded
    def do_get(self, context: Any, ticket: Any) -> Any:
        """Return the rows of a ticket."""
        call = self._call_context(context)
        command = unwrap(ticket.ticket)
        if is_metadata(command):
            with self.running.working():
                return fl.RecordBatchStream(metadata(command, DatasetTables(call.resolver), call.dialect))
        if name_of(command) != "TicketStatementQuery":
            raise WrongMessage(f"{name_of(command)} is not a ticket", hint="Use tickets as GetFlightInfo returns them.")
        batches = self._run(context, call, Ticket.parse(command.statement_handle))
        return fl.GeneratorStream(batches.schema, batches)

    def _run(self, context: Any, call: CallContext, ticket: Ticket) -> CallBatches:
        control = CallCancellation(context, self._settings.flight_timeout)
        began = time.monotonic()
        with ExitStack() as stack:
            stack.callback(control.close)  # otherwise its timer would keep running
            stack.callback(self.running.end, control)
            self.running.begin(ticket.name, control)
            with self.running.working():
                answer = stack.enter_context(call.service.run(ticket.query(), control))
            token = call.middleware.session.caller.token
            peer = client_of(context.peer())
            fields: dict[str, Any] = {"path": answer.path, "peer": peer, "token": token.name if token else None}
            report = lambda rows: log("query", rows=rows, seconds=_since(began), **fields)  # noqa: E731
            return CallBatches(answer, self.running, control, stack.pop_all(), report)

    @guarded
    def do_put(self, context: Any, descriptor: Any, reader: Any, writer: Any) -> None:
        """Set the parameters of a prepared statement; any other upload would be a write.

        Args:
            context: the context of the call.
            descriptor: the descriptor of the call.
            reader: the stream from the client.
            writer: the stream to the client.
        """
        call = self._call_context(context)
        command = _command(descriptor)
        if name_of(command) != "CommandPreparedStatementQuery":
            raise no_writing(command, _READ_ONLY)
        handle = command.prepared_statement_handle
        statement = self._statements.get(handle)
        question = replace(statement.question, parameters=bound_values(reader))
        self._plan(call, question)
        self._statements.replace(handle, replace(statement, question=question))
        bound = message("DoPutPreparedStatementResult", prepared_statement_handle=handle)
        writer.write(pa.py_buffer(bound.SerializeToString()))

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
        raise NotSupported("DoExchange is not supported", hint="Flight SQL does not need it.")

    # --- Actions ---

    @guarded
    def list_actions(self, context: Any) -> list[tuple[str, str]]:
        """Return the actions of `do_action`."""
        del context
        return [(name, (call.__doc__ or "").splitlines()[0]) for name, call in _ACTIONS.items()]

    @guarded
    def do_action(self, context: Any, action: Any) -> Iterator[bytes]:
        """Everything that is neither a question nor rows."""
        call = _ACTIONS.get(action.type)
        if call is None:
            raise no_action(action.type)
        return iter([call(self, context, action.body.to_pybytes())])

    def _prepare(self, context: Any, body: bytes) -> bytes:
        """Prepare a statement."""
        request = expect(unwrap(body), "ActionCreatePreparedStatementRequest")
        refuse_transaction(request)
        call = self._call_context(context)
        planned = self._plan(call, call.question(request.query))
        handle = self._statements.add(Statement(call.middleware.session.name, _who(call, context), planned.question))
        result = message(
            "ActionCreatePreparedStatementResult",
            prepared_statement_handle=handle,
            dataset_schema=planned.schema.serialize().to_pybytes(),
            parameter_schema=planned.parameters.serialize().to_pybytes() if len(planned.parameters) else b"",
            is_update=False,
        )
        return wrap(result)

    def _close_prepared(self, context: Any, body: bytes) -> bytes:
        """Close a prepared statement."""
        del context
        request = expect(unwrap(body), "ActionClosePreparedStatementRequest")
        self._statements.close(request.prepared_statement_handle)
        return b""

    def _cancel_info(self, context: Any, body: bytes) -> bytes:
        """Stop a query."""
        del context
        self._cancel(parse("CancelFlightInfoRequest", body).info)
        return bytes(message("CancelFlightInfoResult", status=CANCELLED).SerializeToString())

    def _cancel_query(self, context: Any, body: bytes) -> bytes:
        """Stop a query, as older clients say it."""
        del context
        self._cancel(expect(unwrap(body), "ActionCancelQueryRequest").info)
        return wrap(message("ActionCancelQueryResult", result=CANCELLED))

    def _cancel(self, data: bytes) -> None:
        info = as_arrow(lambda: fl.FlightInfo.deserialize(data), "Not a FlightInfo")
        for endpoint in info.endpoints:
            ticket = unwrap(endpoint.ticket.ticket)
            if name_of(ticket) == "TicketStatementQuery":
                self.running.cancel(Ticket.parse(ticket.statement_handle).name)

    def _close_session(self, context: Any, body: bytes) -> bytes:
        """End the session, and what was prepared in it."""
        parse("CloseSessionRequest", body)
        middleware: Middleware = context.get_middleware(MIDDLEWARE)
        if middleware.is_known:
            self._sessions.end(middleware.session)
        return bytes(message("CloseSessionResult", status=CLOSED).SerializeToString())

    def _set_options(self, context: Any, body: bytes) -> bytes:
        """Choose the SQL of the session, by its option `dialect`."""
        session = self._call_context(context).middleware.session
        errors = []
        for entry in parse("SetSessionOptionsRequest", body).session_options:
            option = parse("SessionOption", entry)
            problem = set_option(session, option.key, parse("SessionOptionValue", option.value).string_value)
            if problem:
                errors.append(option_bytes(option.key, message("SessionOptionError", value=problem)))
        return bytes(message("SetSessionOptionsResult", errors=errors).SerializeToString())

    def _get_options(self, context: Any, body: bytes) -> bytes:
        """The options of the session."""
        parse("GetSessionOptionsRequest", body)
        values = {"dialect": self._call_context(context).dialect, "catalog": CATALOG, "schema": DB_SCHEMA}
        options = [
            option_bytes(key, message("SessionOptionValue", string_value=value)) for key, value in values.items()
        ]
        return bytes(message("GetSessionOptionsResult", session_options=options).SerializeToString())

    # --- Pieces ---

    def _call_context(self, context: Any) -> CallContext:
        middleware: Middleware = context.get_middleware(MIDDLEWARE)
        caller = middleware.session.caller
        resolver = CallerResolver(self._served, self._reaches, caller)
        return CallContext(middleware, resolver, QueryService(resolver, self._engines.get(caller)))

    def _planned(self, call: CallContext, command: Any) -> PlannedStatement:
        """Return how the question in a command is answered."""
        match name_of(command):
            case "CommandStatementQuery":
                refuse_transaction(command)
                return self._plan(call, call.question(command.query))
            case "CommandPreparedStatementQuery":
                return self._plan(call, self._statements.get(command.prepared_statement_handle).question)
        raise no_rows(command, _READ_ONLY)

    def _plan(self, call: CallContext, question: QueryTicket) -> PlannedStatement:
        with self.running.working():
            return plan_answer(call.service, question, self._schemas)


_ACTIONS: Final[dict[str, Callable[[FlightSqlServer, Any, bytes], bytes]]] = {
    "CreatePreparedStatement": FlightSqlServer._prepare,  # noqa: SLF001
    "ClosePreparedStatement": FlightSqlServer._close_prepared,  # noqa: SLF001
    "CancelFlightInfo": FlightSqlServer._cancel_info,  # noqa: SLF001
    "CancelQuery": FlightSqlServer._cancel_query,  # noqa: SLF001
    "CloseSession": FlightSqlServer._close_session,  # noqa: SLF001
    "SetSessionOptions": FlightSqlServer._set_options,  # noqa: SLF001
    "GetSessionOptions": FlightSqlServer._get_options,  # noqa: SLF001
}


def _command(descriptor: Any) -> Any:
    """Return the command of a descriptor; a path is a scan of the named dataset."""
    if descriptor.descriptor_type == fl.DescriptorType.CMD:
        return unwrap(descriptor.command)
    parts = [part.decode("utf-8", "replace") for part in descriptor.path or []]
    if not parts:
        raise WrongMessage("The descriptor is empty", hint="Give it the name of a dataset as path.")
    name = dialect_named(DEFAULT_DIALECT).quoted("/".join(parts))
    return message("CommandStatementQuery", query=f"SELECT * FROM {name}")  # noqa: S608


def _who(call: CallContext, context: Any) -> BudgetHolder:
    token = call.middleware.session.caller.token
    return BudgetHolder.of_token(token.name) if token else BudgetHolder.at(client_of(context.peer()).rpartition(":")[0])


def _since(began: float) -> float:
    return round(time.monotonic() - began, 4)
