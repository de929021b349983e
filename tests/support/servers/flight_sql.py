"""A small Flight SQL server made of pyarrow alone, over DuckDB: for nobody in particular, with a password, with mTLS."""

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
    """Takes a name and password, and gives a token for them; takes the token from then on."""

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
    """The middleware has looked already; pyarrow wants one of these for the call that logs in."""

    def authenticate(self, outgoing: Any, incoming: Any) -> None: ...

    def is_valid(self, token: Any) -> str:
        del token
        return ""


@contextmanager
def flight_sql_stand_in(
    database: Path, *, password: str | None = None, tls: tuple[Path, Path] | None = None, clients: Path | None = None
) -> Iterator[str]:
    """A server over a database of DuckDB; gives its URL.

    Args:
        database: its file.
        password: of the user ann; None lets everybody in.
        tls: files of its certificate and key.
        clients: the certificates of authorities whose clients are let in; None does not ask for certificates.
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
