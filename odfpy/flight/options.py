"""Parsing of Spark's options into a service and a request. Names are those of Presto's connectors, if these exist."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from odfpy.errors import InvalidValue, UsageError, did_you_mean
from odfpy.flight.authenticators import AUTHENTICATOR, authenticator_of, plug_in
from odfpy.flight.commands.odf import OdfCommands
from odfpy.flight.commands.protocol import Commands, JsonCommands, PathCommands, PlainCommands
from odfpy.flight.commands.sql import FlightSql
from odfpy.flight.filters import Filter, filters_from_json
from odfpy.flight.request import Request
from odfpy.flight.server import Limits
from odfpy.flight.service import FlightService
from odfpy.flight.tls import Tls

_Value = TypeVar("_Value")

PROTOCOLS: Final[dict[str, type[Commands]]] = {
    "flight-sql": FlightSql,
    "odf": OdfCommands,
    "path": PathCommands,
    "plain": PlainCommands,
    "json": JsonCommands,
}
"""Kinds of servers, by the option `arrow-flight.protocol`."""

_SERVER, _PORT = "arrow-flight.server", "arrow-flight.server.port"
_SSL, _VERIFY = "arrow-flight.server-ssl-enabled", "arrow-flight.server.verify"
_ROOTS, _HOST_NAME = "arrow-flight.server-ssl-certificate", "arrow-flight.server-host-name"
_CERTIFICATE, _KEY = "arrow-flight.client-ssl-certificate", "arrow-flight.client-ssl-key"
_PROTOCOL, _QUOTE = "arrow-flight.protocol", "arrow-flight.identifier-quote"
_LIMITS: Final = {
    "arrow-flight.call-timeout": "call",
    "arrow-flight.patience": "patience",
    "arrow-flight.rounds": "rounds",
    "arrow-flight.held-bytes": "held_bytes",
}
_CASE: Final = "case-sensitive-name-matching"
_STREAM_COLUMN, _TRANSACTIONS = "arrow-flight.stream-column", "arrow-flight.transactions"
_SINGLE_USE: Final = "arrow-flight.single-use-tickets"
_HEADERS, _CREDENTIALS = "arrow-flight.header.", "flight.credential."
_KNOWN: Final = frozenset(
    [
        *(_SERVER, _PORT, _SSL, _VERIFY, _ROOTS, _HOST_NAME, _CERTIFICATE, _KEY, _PROTOCOL, _QUOTE, *_LIMITS),
        *(
            _STREAM_COLUMN,
            _TRANSACTIONS,
            _SINGLE_USE,
            AUTHENTICATOR,
            "flight.auth.user",
            "flight.auth.password",
            "flight.auth.token",
        ),
        *("odf.state", "odf.as-at", "odf.as-of"),
    ]
)
_OURS: Final = ("arrow-flight.", "flight.", "odf.")


@dataclass(frozen=True)
class Source:
    """A server and a request, as specified by Spark's options.

    Attributes:
        service: the server.
        request: the rows.
        stream_column: column that identifies new rows of a stream; None if new rows are new endpoints of the
            FlightInfo.
        transactions: whether each task writes in its own transaction.
        single_use: whether the server's tickets can be redeemed only once.
    """

    service: FlightService
    request: Request
    stream_column: str | None = None
    transactions: bool = False
    single_use: bool = False


def source_of(given: Mapping[str, str]) -> Source:
    """Parse options into a service and a request.

    Args:
        given: options; names are case-insensitive.

    Raises:
        UsageError, InvalidValue: an option is missing, misspelt or wrong; the message names it.
    """
    options = {name.lower(): value for name, value in given.items()}
    _check_names(options)
    tls = Tls.from_files(
        roots=options.get(_ROOTS),
        verify=truth_of(options, _VERIFY, otherwise=True),
        certificate=options.get(_CERTIFICATE),
        key=options.get(_KEY),
        host_name=options.get(_HOST_NAME),
    )
    commands = _commands(options)
    service = FlightService(
        _location(options),
        commands=commands,
        authenticator=authenticator_of(options, tls),
        tls=tls,
        limits=_limits(options),
        headers=tuple(_below(options, _HEADERS).items()),
        credentials=_below(options, _CREDENTIALS),
    )
    request = _request(options)
    if not truth_of(options, _CASE, otherwise=True):
        request = _in_the_servers_case(service, request)
    column = options.get(_STREAM_COLUMN, commands.stream_column)
    transactions, single_use = (truth_of(options, name, otherwise=False) for name in (_TRANSACTIONS, _SINGLE_USE))
    return Source(service, request, column, transactions, single_use)


def _check_names(options: Mapping[str, str]) -> None:
    for name in options:
        if name.startswith(_OURS) and name not in _KNOWN and not name.startswith((_HEADERS, _CREDENTIALS)):
            raise UsageError(f"There is no option {name!r}", hint=did_you_mean(name, _KNOWN))


def _location(options: Mapping[str, str]) -> str:
    server = options.get(_SERVER)
    if not server:
        raise UsageError(f"The option {_SERVER} is missing", hint=f'.option("{_SERVER}", "grpc://HOST:PORT")')
    if "://" in server:
        return server
    port = options.get(_PORT)
    if port is None:
        raise UsageError(f"The option {_PORT} is missing", hint=f'.option("{_PORT}", 50050), or a URL as {_SERVER}')
    return f"grpc{'+tls' if truth_of(options, _SSL, otherwise=False) else ''}://{server}:{port}"


def _commands(options: Mapping[str, str]) -> Commands:
    name = options.get(_PROTOCOL, "flight-sql")
    kind = PROTOCOLS.get(name) or plug_in(name, Commands)
    if kind is None:
        hint = did_you_mean(name, PROTOCOLS, otherwise=f"One of {', '.join(PROTOCOLS)}, or module:Class.")
        raise UsageError(f"There is no protocol {name!r}", hint=hint)
    return kind.from_options(options)


def _limits(options: Mapping[str, str]) -> Limits:
    limits = Limits()
    for name, attribute in _LIMITS.items():
        if name in options:
            kind = type(getattr(limits, attribute))
            limits = replace(limits, **{attribute: _read(options, name, kind, "a number")})
    return limits


def _request(options: Mapping[str, str]) -> Request:
    query = options.get("query")
    table = options.get("table", options.get("path"))
    if table is None and query is None:
        raise UsageError("The options contain neither a table nor a query", hint='.option("table", "orders")')
    return Request(
        table=table,
        schema=options.get("schema"),
        catalog=options.get("catalog"),
        query=query,
        columns=_columns(options.get("columns", "")),
        filters=filters_from_json(options.get("filters", "[]")),
        limit=_read(options, "limit", int, "a number") if "limit" in options else None,
    )


def _columns(text: str) -> tuple[str, ...]:
    """Parse comma-separated names, or a JSON list of names that contain commas themselves."""
    if not text.lstrip().startswith("["):
        return tuple(name.strip() for name in text.split(",") if name.strip())
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InvalidValue(f"The option columns is not a list: {error}", hint='Write "a,b" or ["a", "b"].') from error
    return tuple(map(str, found))


def _in_the_servers_case(service: FlightService, request: Request) -> Request:
    """Return the request with the server's spelling of columns, which takes a call."""
    if not request.columns and not request.filters:
        return request
    every = Request(request.table, request.schema, request.catalog, request.query)
    names = service.plan(every).schema.names
    by_lower = {name.lower(): name for name in names}

    def known(name: str) -> str:
        return name if name in names else by_lower.get(name.lower(), name)

    columns = tuple(map(known, request.columns))
    filters = tuple(
        Filter(known(condition.column), condition.operator, condition.value) for condition in request.filters
    )
    return replace(request, columns=columns, filters=filters)


def _below(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}


def truth_of(options: Mapping[str, str], name: str, *, otherwise: bool) -> bool:
    """Parse a boolean option.

    Args:
        options: all options.
        name: name of the option.
        otherwise: default value.

    Raises:
        InvalidValue: the value is not boolean.
    """
    words = {"true": True, "false": False}
    text = options.get(name, str(otherwise)).lower()
    if text not in words:
        raise InvalidValue(f"The option {name} is {text!r}", hint="Write true or false.")
    return words[text]


def _read(options: Mapping[str, str], name: str, kind: Callable[[str], _Value], what: str) -> _Value:
    try:
        return kind(options[name])
    except ValueError as error:
        raise InvalidValue(f"The option {name} is {options[name]!r}, not {what}") from error
