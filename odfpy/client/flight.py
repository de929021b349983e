"""A server over Arrow Flight SQL as a backend; the client is Apache Arrow's, `adbc-driver-flightsql`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from odfpy.client.backend import DatasetFacts, RowStream
from odfpy.client.remote import Remote
from odfpy.client.remote_errors import error_of
from odfpy.errors import (
    DatasetNotFound,
    EngineError,
    EngineUnavailable,
    InvalidQuery,
    InvalidValue,
    OdfError,
    QueryCancelled,
    QueryTimedOut,
    SchemaError,
    TransferError,
    UsageError,
    did_you_mean,
)
from odfpy.extras import needs_extra
from odfpy.http.url import without_user
from odfpy.query.dialects import dialect_named
from odfpy.query.query import Query
from odfpy.repository.credentials import advice, check_token, token_for
from odfpy.repository.login import LoginRefused

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.coordinator.storage.results import LineageNode
    from odfpy.provenance.model import Provenance

_DIALECT: Final = "adbc.flight.sql.rpc.call_header.odf-dialect"
_AUTHORIZATION: Final = "adbc.flight.sql.authorization_header"
_OPTIONS: Final = "adbc.flight.sql.session.options"
_CONNECT_SECONDS: Final = 5.0
"""Timeout for reaching a server; gRPC itself waits 20 s for an unresponsive host, or forever."""
_NO_TIME: Final = 0.001
_LIMITS: Final = {"adbc.flight.sql.client_option.with_max_msg_size": str(2**31 - 1)}
"""Removes the driver's limit of 16 MiB per message: rows may be larger."""
_DRIVERS_WORDS: Final = re.compile(r"^(?:\w+: )?\[FlightSQL\] |\. Detail: .*$|\.? \(\w+; \w+\).*$", re.DOTALL)
_STATUS: Final = re.compile(r"\((\w+); \w+: endpoint")
_STATUSES: Final = {"DeadlineExceeded": "TIMEOUT", "Unavailable": "IO", "Canceled": "CANCELLED"}
"""Names of errors by gRPC status, which is all that the driver reports for errors while rows are read."""
_KINDS: Final[dict[str, type[OdfError]]] = {
    "NOT_FOUND": DatasetNotFound,
    "INVALID_ARGUMENT": InvalidQuery,
    "UNAUTHENTICATED": LoginRefused,
    "UNAUTHORIZED": LoginRefused,
    "TIMEOUT": QueryTimedOut,
    "CANCELLED": QueryCancelled,
    "IO": EngineUnavailable,
}


@dataclass(frozen=True)
class FlightBackend(Remote):
    """The backend for a Flight SQL server. Each query has its own connection; thread-safe.

    Attributes:
        url: URL of the server.
        token: the access token.
    """

    url: str
    token: str | None = field(repr=False)

    @classmethod
    def open(cls, url: str, token: str | None) -> FlightBackend:
        """Create the backend for a URL; no request is sent yet.

        Raises:
            InvalidValue: the URL or the token is invalid.
            UsageError: the client library is not installed.
        """
        try:
            known = token_for(_as_http(url))
        except InvalidValue as error:
            raise InvalidValue(
                f"Not a URL of a server: {without_user(url)!r}", hint="Write grpc://HOST:PORT."
            ) from error
        with needs_extra("flight", "Questions over Flight", UsageError):
            import adbc_driver_flightsql  # noqa: F401
        return cls(url.rstrip("/"), known if token is None else check_token(token, "token"))

    @property
    def place(self) -> str:
        """The URL, without user and password."""
        return without_user(self.url)

    @contextmanager
    def ask(self, query: Query) -> Iterator[RowStream]:
        """Implement `Backend`: rows are streamed as the server produces them."""
        options = {_DIALECT: dialect_named(query.dialect).name}
        connected = self._connected(options, query.timeout)
        with self._translating_driver_errors(), connected as connection, connection.cursor() as cursor:
            with self._translating_errors():
                cursor.execute(query.text, query.parameters or None)
                reader = cursor.fetch_record_batch()
            yield _Cut(self, reader, query)

    def datasets(self) -> list[DatasetFacts]:
        """Implement `Backend`: the server reports only names."""
        with self._connected({}) as connection, self._translating_errors():
            tree = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
        return [
            DatasetFacts(name=str(found["table_name"]))
            for catalog in tree
            for schema in catalog["catalog_db_schemas"] or ()
            for found in schema["db_schema_tables"] or ()
        ]

    def dataset(self, name: str) -> DatasetFacts:
        """Implement `Backend`."""
        from odfpy.data.schemas.arrow import from_arrow

        dialect = dialect_named("datafusion")
        try:
            with self.ask(Query(f"SELECT * FROM {dialect.quoted(name)} LIMIT 0", dialect.name)) as stream:  # noqa: S608
                return DatasetFacts(name=name, schema=from_arrow(stream.schema))
        except SchemaError:  # the dataset has no data yet
            return DatasetFacts(name=name)
        except DatasetNotFound as error:
            names = [one.name for one in self.datasets()]
            hint = did_you_mean(name, names, otherwise=error.hint)
            raise DatasetNotFound(f"No dataset {name!r} at {self.place}", hint=hint) from error

    def lineage(self, name: str) -> LineageNode:
        """Implement `Backend`."""
        raise UsageError(
            f"{self.place} does not provide lineage, here of {name}",
            hint="Connect to its https:// URL, or to a workspace that has it.",
        )

    def provenance(self, name: str, offset: int, column: str | None, depth: int | None, check: bool) -> Provenance:
        """Implement `Backend`."""
        del offset, column, depth, check
        raise UsageError(
            f"{self.place} does not provide provenance",
            hint=f"Pull {name} and its inputs into a workspace, and query that.",
        )

    def close(self) -> None:
        """Implement `Backend`: no connection remains open between queries."""

    @contextmanager
    def _connected(self, options: dict[str, str], timeout: float | None = None) -> Iterator[Any]:
        """Open a connection for the block; each of its calls may take `timeout` seconds."""
        import adbc_driver_flightsql.dbapi as adbc

        shown = {} if self.token is None else {_AUTHORIZATION: f"Bearer {self.token}"}
        # The driver sends a request about transactions, which are not supported, and continues without an answer.
        with self._translating_errors():
            connection = adbc.connect(self.url, {**options, **shown, **_LIMITS, **_within(_NO_TIME)}, autocommit=True)
        with connection:
            self._reach(connection.adbc_connection, timeout)
            yield connection

    def _reach(self, connection: Any, timeout: float | None) -> None:
        """Exchange messages to detect an unresponsive host, as opposed to a server that is slow to answer."""
        from adbc_driver_manager import Error

        patience = min(timeout or _CONNECT_SECONDS, _CONNECT_SECONDS)
        connection.set_options(**_within(patience))
        try:
            connection.get_option(_OPTIONS)
        except Error as error:
            status = error.status_code.name
            if status == "TIMEOUT":
                connection.set_options(**_within(_NO_TIME))  # for the closing messages
            if status == "TIMEOUT" and patience != timeout:
                raise self._unreachable(f"it did not respond for {patience:g} s") from error
            if status in ("TIMEOUT", "IO", "UNAUTHENTICATED", "UNAUTHORIZED"):
                raise self._as_ours(status, str(error)) from error
            # a server without sessions, but reachable
        connection.set_options(**_within(timeout or 0))

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Convert errors of the client to errors of odfpy."""
        import pyarrow as pa

        try:
            with self._translating_driver_errors():
                yield
        except (pa.ArrowException, OSError) as error:  # the stream breaks while rows are read
            status = _STATUS.search(str(error))
            raise self._as_ours(_STATUSES.get(status[1], "") if status else "", str(error)) from error

    @contextmanager
    def _translating_driver_errors(self) -> Iterator[None]:
        """Convert errors of the driver to errors of odfpy; they also occur on close if the server has ended."""
        from adbc_driver_manager import Error

        try:
            yield
        except Error as error:
            raise self._as_ours(error.status_code.name, str(error)) from error

    def _as_ours(self, status: str, text: str) -> OdfError:
        said = _DRIVERS_WORDS.sub("", text)
        kind = _KINDS.get(status, EngineError)
        if kind is LoginRefused:
            return LoginRefused(f"{self.place} does not allow that", hint=advice(_as_http(self.url)))
        if kind is EngineUnavailable:
            return self._unreachable(said)
        if kind is QueryTimedOut:
            return QueryTimedOut(f"{self.place}: the query exceeded its time limit", hint="Give it a longer timeout.")
        return error_of(said, kind)

    def _unreachable(self, why: str) -> TransferError:
        hint = "Check that it is a Flight port (odf serve --flight-port)."
        if "failed to verify certificate" in why:
            hint = "For a certificate of your own CA, set the environment variable SSL_CERT_FILE to its PEM file."
        return TransferError(f"Cannot reach {self.place}: {why}", hint=hint)


def _within(seconds: float) -> dict[str, str]:
    """Return options that limit the duration of each call, 0 for no limit."""
    return {f"adbc.flight.sql.rpc.timeout_seconds.{call}": str(seconds) for call in ("query", "fetch", "update")}


class _Cut:
    """The requested range of a result; the server sends all rows."""

    def __init__(self, source: FlightBackend, reader: pa.RecordBatchReader, query: Query) -> None:
        self.schema = reader.schema
        self._source = source
        self._reader = reader
        self._skip = query.skip
        self._limit = query.limit

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they arrive."""
        skip, left = self._skip, self._limit
        while left is None or left > 0:
            with self._source._translating_errors():  # noqa: SLF001  it is a part of it
                batch = next(iter(self._reader), None)
            if batch is None:
                return
            first = min(skip, batch.num_rows)
            skip -= first
            batch = batch.slice(first, left)
            left = None if left is None else left - batch.num_rows
            yield batch


def _as_http(url: str) -> str:
    """Return the HTTP(S) URL of the same host and port, which identifies stored tokens."""
    scheme, _, rest = url.partition("://")
    return f"{'https' if scheme.lower().endswith('tls') else 'http'}://{rest}"
