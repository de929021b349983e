"""Flight SQL over the entities of a relay, for tools that know nothing about webs: each entity is a table.

GetFlightInfo plans an answer without querying relays, and returns a ticket; DoGet queries and reads all relays, and
assembles the answer here. Missing rows of a relay are an error, since tools cannot show what is missing. If the header
`odf-allow-incomplete` permits it, the schema's metadata `odf.missing` names the missing relays, and so does the
metadata of the last message.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.flight as fl

from odfpy.data.sql_text import OF_STRANGERS, check_text
from odfpy.federation.execution.answer import WebAnswer
from odfpy.federation.execution.execute import execute
from odfpy.federation.execution.options import QueryOptions
from odfpy.federation.relay.errors import IncompleteAnswer
from odfpy.federation.relay.query_registry import QueryKey
from odfpy.federation.relay.question import MissingRelay
from odfpy.federation.relay.requesters import Identity
from odfpy.serving.flight.binding import bound_values
from odfpy.serving.flight.commands import (
    CANCELLED,
    CLOSED,
    expect,
    no_rows,
    no_writing,
    option_bytes,
    refuse_transaction,
)
from odfpy.serving.flight.errors import UnknownStatement, WrongMessage
from odfpy.serving.flight.messages import message, name_of, parse, unwrap, wrap
from odfpy.serving.flight.metadata import is_metadata, metadata, metadata_schema
from odfpy.serving.flight.names import CATALOG, DB_SCHEMA, DEFAULT_DIALECT, without_catalog
from odfpy.serving.flight.statements import Statement, Statements
from odfpy.serving.flight.streams import CallBatches, CallCancellation, RunningQueries
from odfpy.serving.flight.tickets import QueryTicket
from odfpy.serving.http.budget import BudgetHolder
from odfpy.serving.http.logs import log
from odfpy.serving.relay.entity_tables import EntityTables, bound, parameters_of
from odfpy.serving.relay.headers import ALLOW_INCOMPLETE, allows_incomplete
from odfpy.serving.relay.local_client import LocalRelayClient, SchemaOnlyClient, execute_for_call
from odfpy.serving.relay.rows import RowsWithStatement
from odfpy.serving.relay.sql_tickets import SqlTicket, SqlTickets
from odfpy.serving.settings import ServeSettings

MISSING: Final = b"odf.missing"
"""Metadata key for the relays whose rows are missing: a JSON list of names with reasons."""

MAX_SIZE: Final = 8 << 30
"""Maximum total bytes of Arrow data of an answer's parts; they are stored on the relay's disk."""

_PLANNING: Final = 30.0
"""Maximum seconds for planning an answer."""

_READ_ONLY: Final = "Relays are read-only."
_INVALID_NAME, _INVALID_VALUE, _CANNOT = 1, 2, 3
_SET: Final = {"catalog": CATALOG, "schema": DB_SCHEMA, "dialect": DEFAULT_DIALECT}
"""Options set by tools, each with its only value."""


class FlightSql:
    """The Flight SQL calls of a relay; thread-safe.

    Attributes:
        actions: the handler of each action, which takes the caller and the body.
    """

    def __init__(
        self,
        client: Callable[[Identity], LocalRelayClient],
        tickets: SqlTickets,
        running: RunningQueries,
        settings: ServeSettings,
        check: Callable[[Identity], object],
    ) -> None:
        """
        Args:
            client: creates the relay client for a caller.
            tickets: issues and opens tickets.
            running: the running queries.
            settings: limits and timeouts.
            check: raises an error if a caller's access has ended.
        """
        self._client, self._tickets, self._running, self._settings = client, tickets, running, settings
        self._check = check
        self._statements = Statements()
        self.actions: Final[Mapping[str, Callable[[Identity, bytes], bytes]]] = {
            "CreatePreparedStatement": self._prepare,
            "ClosePreparedStatement": self._close_prepared,
            "CloseSession": self._close_session,
            "SetSessionOptions": self._set_options,
            "GetSessionOptions": self._get_options,
        }

    # --- Queries ---

    def schema(self, caller: Identity, data: bytes) -> pa.Schema:
        """Return the columns of the answer to a command.

        Args:
            caller: the caller.
            data: the command.

        Raises:
            WrongMessage: it is invalid.
            OdfError: it is not a valid query.
        """
        command = unwrap(data)
        if is_metadata(command):
            return metadata_schema(command)
        return self._columns(caller, bound(self._question(caller, command), is_complete=False))

    def info(self, context: Any, caller: Identity, descriptor: Any) -> Any:
        """Return the plan of the answer to a command, as a FlightInfo.

        Args:
            context: context of the call.
            caller: the caller.
            descriptor: descriptor with the command.

        Raises:
            WrongMessage: it has no command.
            OdfError: it is not a valid query.
        """
        command = unwrap(descriptor.command)
        if is_metadata(command):
            endpoint = fl.FlightEndpoint(wrap(command), [])
            return fl.FlightInfo(metadata_schema(command), descriptor, [endpoint], -1, -1)
        ticket = SqlTicket(secrets.token_hex(16), bound(self._question(caller, command)), allows_incomplete(context))
        schema = self._columns(caller, ticket.sql)
        endpoint = fl.FlightEndpoint(self._tickets.close(ticket, caller), [])
        app_metadata = json.dumps({"query": ticket.name}).encode()
        return fl.FlightInfo(schema, descriptor, [endpoint], -1, -1, True, app_metadata=app_metadata)

    def _question(self, caller: Identity, command: Any) -> QueryTicket:
        """Return the query in a command."""
        match name_of(command):
            case "CommandStatementQuery":
                refuse_transaction(command)
                return _question_of(command.query)
            case "CommandPreparedStatementQuery":
                return self._statement(caller, command.prepared_statement_handle).question
        raise no_rows(command, _READ_ONLY)

    def _columns(self, caller: Identity, sql: str) -> pa.Schema:
        """Return the columns of an answer, without querying relays."""
        options = QueryOptions(seconds=_PLANNING, memory=self._settings.query_memory)
        with self._running.working():
            entities = self._client(caller).entities(_PLANNING)
            with execute(SchemaOnlyClient(entities), sql, options) as answer:
                return answer.schema

    # --- Rows ---

    def rows(self, context: Any, caller: Identity, ticket: bytes) -> Any:
        """Return the rows of a ticket.

        Args:
            context: context of the call.
            caller: the caller.
            ticket: the ticket.

        Raises:
            WrongMessage: it is invalid.
            TicketRefused: it is not of this relay, has expired, or belongs to another caller.
            IncompleteAnswer: a relay is missing, and that was not permitted.
            OdfError: the query fails.
        """
        command = unwrap(ticket)
        if is_metadata(command):
            with self._running.working():
                return fl.RecordBatchStream(
                    metadata(command, EntityTables(self._client(caller).entities(_PLANNING)), DEFAULT_DIALECT)
                )
        if name_of(command) != "TicketStatementQuery":
            raise WrongMessage(f"{name_of(command)} is not a ticket", hint="Use tickets as GetFlightInfo returns them.")
        return self._run(context, caller, self._tickets.open(command.statement_handle, caller))

    def _run(self, context: Any, caller: Identity, ticket: SqlTicket) -> Any:
        seconds, began = self._settings.flight_timeout, time.monotonic()
        options = QueryOptions(not ticket.allows_incomplete, seconds, self._settings.query_memory, MAX_SIZE)
        with ExitStack() as stack:
            control = CallCancellation(context, seconds)
            stack.callback(control.close)
            stack.callback(self._running.end, control)
            self._running.begin(str(QueryKey(caller.fingerprint, ticket.name)), control)
            try:
                answer = execute_for_call(self._client(caller), ticket.sql, options, control)
            except IncompleteAnswer as error:
                raise error.with_message(error.message, hint=_HOW_TO_PERMIT) from None
            stack.callback(answer.close)
            missing = _missing_text(answer.missing)

            def report(rows: int) -> None:
                took = round(time.monotonic() - began, 4)
                log("relay query", query=answer.query, rows=rows, seconds=took, missing=len(answer.missing))

            rows = _MarkedRows(answer, missing) if ticket.allows_incomplete else answer
            batches = CallBatches(rows, self._running, control, stack.pop_all(), report)
            statement = f'{{"missing":{missing}}}' if answer.missing else None
            return fl.GeneratorStream(
                batches.schema, RowsWithStatement(batches, lambda: statement, partial(self._check, caller))
            )

    # --- Prepared statements ---

    def bind(self, caller: Identity, descriptor: Any, reader: Any, writer: Any) -> None:
        """Bind parameters to a prepared statement; every other DoPut would write, and is rejected.

        Args:
            caller: the caller.
            descriptor: descriptor with the command.
            reader: the stream from the client.
            writer: the stream to the client.

        Raises:
            ReadOnly: the command would write.
            UnknownStatement: there is no such statement.
            OdfError: the parameters are invalid.
        """
        command = unwrap(descriptor.command or b"")
        if name_of(command) != "CommandPreparedStatementQuery":
            raise no_writing(command, _READ_ONLY)
        handle = command.prepared_statement_handle
        statement = self._statement(caller, handle)
        question = QueryTicket(statement.question.text, DEFAULT_DIALECT, bound_values(reader))
        self._columns(caller, bound(question, is_complete=False))
        self._statements.replace(handle, Statement("", statement.who, question))
        result = message("DoPutPreparedStatementResult", prepared_statement_handle=handle)
        writer.write(pa.py_buffer(result.SerializeToString()))

    def _statement(self, caller: Identity, handle: bytes) -> Statement:
        statement = self._statements.get(handle)
        if statement.who != _who(caller):
            raise UnknownStatement("You have no such prepared statement", hint="Prepare it again.")
        return statement

    def _prepare(self, caller: Identity, body: bytes) -> bytes:
        """Prepare a statement."""
        request = expect(unwrap(body), "ActionCreatePreparedStatementRequest")
        refuse_transaction(request)
        question = _question_of(request.query)
        schema = self._columns(caller, bound(question, is_complete=False))
        parameters = parameters_of(question, self._client(caller).entities(_PLANNING))
        handle = self._statements.add(Statement("", _who(caller), question))
        result = message(
            "ActionCreatePreparedStatementResult",
            prepared_statement_handle=handle,
            dataset_schema=schema.serialize().to_pybytes(),
            parameter_schema=parameters.serialize().to_pybytes() if len(parameters) else b"",
            is_update=False,
        )
        return wrap(result)

    def _close_prepared(self, caller: Identity, body: bytes) -> bytes:
        """Close a prepared statement."""
        handle = expect(unwrap(body), "ActionClosePreparedStatementRequest").prepared_statement_handle
        try:
            self._statement(caller, handle)
        except UnknownStatement:
            return b""  # closing a statement twice is not an error
        self._statements.close(handle)
        return b""

    # --- Sessions: stateless, since the certificate identifies the caller ---

    def _close_session(self, caller: Identity, body: bytes) -> bytes:
        """Close the session, of which nothing is stored."""
        del caller
        parse("CloseSessionRequest", body)
        return bytes(message("CloseSessionResult", status=CLOSED).SerializeToString())

    def _set_options(self, caller: Identity, body: bytes) -> bytes:
        """Set session options; each only accepts one value."""
        del caller
        errors = []
        for entry in parse("SetSessionOptionsRequest", body).session_options:
            option = parse("SessionOption", entry)
            value = parse("SessionOptionValue", option.value).string_value
            problem = _problem_of(option.key, value)
            if problem:
                errors.append(option_bytes(option.key, message("SessionOptionError", value=problem)))
        return bytes(message("SetSessionOptionsResult", errors=errors).SerializeToString())

    def _get_options(self, caller: Identity, body: bytes) -> bytes:
        """Return the options of the session."""
        del caller
        parse("GetSessionOptionsRequest", body)
        options = [option_bytes(key, message("SessionOptionValue", string_value=value)) for key, value in _SET.items()]
        return bytes(message("GetSessionOptionsResult", session_options=options).SerializeToString())


_HOW_TO_PERMIT: Final = (
    f"Try again later, or allow answers without them with the header {ALLOW_INCOMPLETE}: true. ADBC: the option"
    f" adbc.flight.sql.rpc.call_header.{ALLOW_INCOMPLETE}; JDBC: {ALLOW_INCOMPLETE}=true in the URL;"
    f" Spark: the option arrow-flight.header.{ALLOW_INCOMPLETE}."
)


def cancelled_query(body: bytes) -> tuple[bytes, bytes]:
    """Return the FlightInfo of the query that older clients cancel, and the result they expect.

    Args:
        body: body of the action CancelQuery.

    Raises:
        WrongMessage: it is invalid.
    """
    info = expect(unwrap(body), "ActionCancelQueryRequest").info
    return info, wrap(message("ActionCancelQueryResult", result=CANCELLED))


class _MarkedRows:
    """The rows of an answer, whose schema names the missing relays."""

    def __init__(self, answer: WebAnswer, missing: str) -> None:
        self._metadata = {**(answer.schema.metadata or {}), MISSING: missing.encode()}
        self.schema: pa.Schema = answer.schema.with_metadata(self._metadata)
        self._answer = answer

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return (batch.replace_schema_metadata(self._metadata) for batch in self._answer)


def _question_of(text: str) -> QueryTicket:
    check_text(text, OF_STRANGERS)
    return QueryTicket(without_catalog(text, DEFAULT_DIALECT), DEFAULT_DIALECT)


def _who(caller: Identity) -> BudgetHolder:
    return BudgetHolder.of_token(caller.fingerprint)


def _problem_of(name: str, value: str) -> int:
    """Return the error number of an option, or 0."""
    if name == ALLOW_INCOMPLETE:
        return _CANNOT
    if name not in _SET:
        return _INVALID_NAME
    return _INVALID_VALUE if value not in ("", _SET[name]) else 0


def _missing_text(missing: tuple[MissingRelay, ...]) -> str:
    return json.dumps([[part.relay, part.why] for part in missing], separators=(",", ":"))
