"""A server over Arrow Flight SQL as a place with datasets; the client is Apache Arrow's, `adbc-driver-flightsql`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from odfpy.client.moments import Moment
from odfpy.client.remote_errors import told
from odfpy.client.source import Facts, Stream
from odfpy.errors import (
    DatasetNotFound,
    EngineError,
    EngineUnavailable,
    InvalidQuery,
    OdfError,
    QueryCancelled,
    QueryTimedOut,
    TransferError,
    UsageError,
    did_you_mean,
)
from odfpy.extras import needs_extra
from odfpy.query.dialects import dialect_named
from odfpy.query.question import Query
from odfpy.repository.credentials import advice, check_token, token_for
from odfpy.repository.login import LoginRefused

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.coordinator.results import LineageNode
    from odfpy.provenance.model import Provenance

_DIALECT: Final = "adbc.flight.sql.rpc.call_header.odf-dialect"
_AUTHORIZATION: Final = "adbc.flight.sql.authorization_header"
_TIMEOUTS: Final = tuple(f"adbc.flight.sql.rpc.timeout_seconds.{call}" for call in ("query", "fetch", "update"))
_DRIVERS_WORDS: Final = re.compile(r"^\w+: \[FlightSQL\] |\. Detail: .*$|\.? \(\w+; \w+\).*$", re.DOTALL)
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
class FlightSource:
    """See `odfpy.client.source.Source`. Each question has a connection of its own, so that threads may share it.

    Attributes:
        url: of the server.
        token: what it is shown.
    """

    url: str
    token: str | None = field(repr=False)

    @classmethod
    def open(cls, url: str, token: str | None) -> FlightSource:
        """A server at a URL; nothing is sent yet.

        Raises:
            InvalidValue: not a URL, or not a token.
            UsageError: the client is not installed.
        """
        known = token_for(_as_http(url))  # also sees whether it is a URL
        with needs_extra("flight", "Questions over Flight", UsageError):
            import adbc_driver_flightsql  # noqa: F401
        return cls(url.rstrip("/"), known if token is None else check_token(token, "token"))

    @property
    def place(self) -> str:
        """The URL."""
        return self.url

    @contextmanager
    def ask(self, query: Query) -> Iterator[Stream]:
        """See `Source`. Rows come as the server makes them."""
        options = {_DIALECT: dialect_named(query.dialect).name}
        options |= {name: str(query.timeout) for name in _TIMEOUTS} if query.timeout is not None else {}
        with self._connected(options) as connection, connection.cursor() as cursor:
            with self._told():
                cursor.execute(query.text, query.parameters or None)
                reader = cursor.fetch_record_batch()
            yield _Cut(self, reader, query)

    def as_at(self, query: Query, moment: Moment) -> Query:
        """See `Source`: nothing tells from here which blocks these are."""
        del query
        raise UsageError(
            f"{self.place} cannot be asked for a whole query as at {moment}",
            hint=f"Write it for each dataset, in the query: FROM odf_as_at('NAME', '{moment}').",
        )

    def datasets(self) -> list[Facts]:
        """See `Source`: names are all that it tells."""
        with self._connected({}) as connection, self._told():
            tree = connection.adbc_get_objects(depth="tables").read_all().to_pylist()
        return [
            Facts(name=str(found["table_name"]))
            for catalog in tree
            for schema in catalog["catalog_db_schemas"] or ()
            for found in schema["db_schema_tables"] or ()
        ]

    def dataset(self, name: str) -> Facts:
        """See `Source`."""
        from odfpy.data.arrow import from_arrow

        dialect = dialect_named("datafusion")
        try:
            with self.ask(Query(f"SELECT * FROM {dialect.quoted(name)} LIMIT 0", dialect.name)) as stream:  # noqa: S608
                return Facts(name=name, schema=from_arrow(stream.schema))
        except DatasetNotFound as error:
            names = [one.name for one in self.datasets()]
            hint = did_you_mean(name, names, otherwise=error.hint)
            raise DatasetNotFound(f"No dataset {name!r} at {self.place}", hint=hint) from error

    def lineage(self, name: str) -> LineageNode:
        """See `Source`."""
        raise UsageError(
            f"{self.place} does not tell what {name} is derived from",
            hint="Connect to its https:// URL, or to a workspace that has it.",
        )

    def provenance(self, name: str, offset: int, column: str | None, depth: int | None, check: bool) -> Provenance:
        """See `Source`."""
        del offset, column, depth, check
        raise UsageError(
            f"{self.place} does not tell where rows come from",
            hint=f"Pull {name} and what it is derived from into a workspace, and ask that.",
        )

    def close(self) -> None:
        """See `Source`: nothing is open between questions."""

    @contextmanager
    def _connected(self, options: dict[str, str]) -> Iterator[Any]:
        import adbc_driver_flightsql.dbapi as adbc

        shown = {} if self.token is None else {_AUTHORIZATION: f"Bearer {self.token}"}
        with self._told():
            connection = adbc.connect(self.url, db_kwargs={**options, **shown}, autocommit=True)
        with connection:
            yield connection

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of the client as ours."""
        import pyarrow as pa
        from adbc_driver_manager import Error

        try:
            yield
        except Error as error:
            raise self._as_ours(error.status_code.name, str(error)) from error
        except (pa.ArrowException, OSError) as error:  # what breaks off while rows are read
            raise self._as_ours("", str(error)) from error

    def _as_ours(self, status: str, text: str) -> OdfError:
        said = _DRIVERS_WORDS.sub("", text)
        kind = _KINDS.get(status, EngineError)
        if kind is LoginRefused:
            return LoginRefused(f"{self.place} does not allow that", hint=advice(_as_http(self.url)))
        if kind is EngineUnavailable:
            return TransferError(
                f"Cannot reach {self.place}: {said}", hint="Is it a Flight port (odf serve --flight-port)?"
            )
        if kind is QueryTimedOut:
            return QueryTimedOut(f"{self.place}: the query took longer than it may", hint="Give it a longer timeout.")
        return told(said, kind)


class _Cut:
    """The first rows of an answer, of which the server itself gives all."""

    def __init__(self, source: FlightSource, reader: pa.RecordBatchReader, query: Query) -> None:
        self.schema = reader.schema
        self._source = source
        self._reader = reader
        self._skip = query.skip
        self._limit = query.limit

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows as they come."""
        skip, left = self._skip, self._limit
        while left is None or left > 0:
            with self._source._told():  # noqa: SLF001  it is a part of it
                batch = next(iter(self._reader), None)
            if batch is None:
                return
            first = min(skip, batch.num_rows)
            skip -= first
            batch = batch.slice(first, left)
            left = None if left is None else left - batch.num_rows
            yield batch


def _as_http(url: str) -> str:
    """A URL of the same host and port, by which tokens are kept."""
    scheme, _, rest = url.partition("://")
    return f"{'https' if scheme.lower().endswith('tls') else 'http'}://{rest}"
