"""A small Flight SQL server built with pyarrow only, over DuckDB: anonymous, with a password, or with mTLS."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.flight as fl

from odfpy.serving.flight.messages import message, unwrap, wrap

_ROWS = 4096
_TOKEN = "the-token-that-a-login-gives"


class FlightSqlStandIn(fl.FlightServerBase):
    """The server; it answers `CommandStatementQuery`."""

    def __init__(self, database: Path, location: str, **options: Any) -> None:
        super().__init__(location, **options)
        self.database = duckdb.connect(database, read_only=True)

    def get_flight_info(self, context: Any, descriptor: Any) -> Any:
        del context
        query = unwrap(descriptor.command).query
        try:
            schema = self._reader(f"SELECT * FROM ({query}) LIMIT 0").schema
        except duckdb.Error as error:
            raise fl.FlightServerError(str(error)) from error
        ticket = wrap(message("TicketStatementQuery", statement_handle=query.encode()))
        return fl.FlightInfo(schema, descriptor, [fl.FlightEndpoint(ticket, [])], -1, -1)

    def do_get(self, context: Any, ticket: Any) -> Any:
        del context
        reader = self._reader(unwrap(ticket.ticket).statement_handle.decode())
        return fl.GeneratorStream(reader.schema, self._batches(reader))

    def _batches(self, reader: Any) -> Iterator[Any]:
        try:
            yield from reader
        except Exception as error:
            raise fl.FlightServerError(str(error)) from error
        finally:
            reader.close()

    def _reader(self, query: str) -> Any:
        return self.database.cursor().sql(query).to_arrow_reader(_ROWS)


class _Login(fl.ServerMiddlewareFactory):
    """Exchanges a name and password for a token; accepts the token from then on."""

    def __init__(self, password: str) -> None:
        super().__init__()
        self._basic = base64.b64encode(f"ann:{password}".encode()).decode()

    def start_call(self, info: Any, headers: Any) -> Any:
        del info
        (given,) = next((value for name, value in headers.items() if name.lower() == "authorization"), [""])
        if given == f"Bearer {_TOKEN}":
            return None
        if given.rstrip("=") != f"Basic {self._basic}".rstrip("="):
            raise fl.FlightUnauthenticatedError("nobody known")
        return _Token()


class _Token(fl.ServerMiddleware):
    def sending_headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {_TOKEN}"}


class _Anybody(fl.ServerAuthHandler):
    """The middleware has checked already; pyarrow requires a handler for the login call."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None: ...

    def is_valid(self, token: Any) -> str:
        del token
        return ""


@contextmanager
def flight_sql_stand_in(
    database: Path, *, password: str | None = None, tls: tuple[Path, Path] | None = None, clients: Path | None = None
) -> Iterator[str]:
    """Run a server over a DuckDB database; yield its URL.

    Args:
        database: file of the database.
        password: password of the user ann; None permits anonymous access.
        tls: files of its certificate and key.
        clients: certificates of authorities of permitted clients; None requests no certificates.
    """
    options: dict[str, Any] = {}
    if password is not None:
        options |= {"middleware": {"login": _Login(password)}, "auth_handler": _Anybody()}
    if tls is not None:
        options["tls_certificates"] = [tuple(path.read_bytes() for path in tls)]
    if clients is not None:
        options |= {"verify_client": True, "root_certificates": clients.read_bytes()}
    scheme = "grpc" if tls is None else "grpc+tls"
    server = FlightSqlStandIn(database, f"{scheme}://127.0.0.1:0", **options)
    try:
        yield f"{scheme}://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        server.database.close()
