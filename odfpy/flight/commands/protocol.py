"""The interface for kinds of servers: how requests are encoded, which differs between servers."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import pyarrow.flight as fl

from odfpy.errors import UsageError
from odfpy.flight.filters import filters_to_json
from odfpy.flight.pool import Headers
from odfpy.flight.request import Request


class Commands(ABC):
    """The encoding of requests for a kind of server. Subclasses need one method; instances can be pickled.

    >>> class Mine(Commands):
    ...     def command(self, request):
    ...         return f"{request.table}|{','.join(request.columns)}".encode()
    """

    stream_column: ClassVar[str | None] = None
    """The default column for recognizing new rows of a stream: later rows have greater values."""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Commands:
        """Create an instance from Spark's options.

        Args:
            options: options with names in lower case.
        """
        del options
        return cls()

    @abstractmethod
    def command(self, request: Request) -> bytes:
        """Return the command that requests rows.

        Args:
            request: the requested rows. If the command cannot express all of it, except for the columns, raise
                `UsageError`: ignoring a filter would give wrong rows. Columns may be ignored, since the client
                selects them from the result.
        """

    def descriptor(self, request: Request) -> Any:
        """Return the descriptor that requests some rows: by default one with a command."""
        return fl.FlightDescriptor.for_command(self.command(request))

    def headers(self) -> Headers:
        """Return headers for all calls."""
        return ()

    def write_descriptor(self, request: Request, *, replace: bool, transaction: bytes | None) -> Any:
        """Return the descriptor for writing rows to a table.

        Args:
            request: the table.
            replace: whether to delete existing rows.
            transaction: id of a transaction, if the server supports these.

        Raises:
            UsageError: the server does not support the write.
        """
        if replace or transaction is not None:
            raise UsageError(
                "A plain Flight server can only append rows",
                hint="Write with mode append and without transactions; or the server speaks Flight SQL.",
            )
        return self.descriptor(request)

    def greatest(self, request: Request, column: str) -> Request:
        """Return a request for one row and one column: the maximum of a column.

        Args:
            request: the rows.
            column: name of the column.

        Raises:
            UsageError: the server does not support the request.
        """
        raise UsageError(
            f"The protocol cannot request the greatest value of {column!r} in {request.what}",
            hint="Leave arrow-flight.stream-column out: new rows then are new endpoints.",
        )

    def rows_written(self, result: bytes) -> int | None:
        """Return the number of rows in a server's response to a write; None if unknown.

        Args:
            result: metadata sent by the server.
        """
        del result
        return None


class PathCommands(Commands):
    """Flights that are identified by paths: the slash-separated parts of a table's name. Reads complete tables."""

    def command(self, request: Request) -> bytes:
        """Implement `Commands`: the path, for callers that need bytes."""
        return "/".join(_path(request)).encode()

    def descriptor(self, request: Request) -> Any:
        """Implement `Commands`."""
        return fl.FlightDescriptor.for_path(*_path(request))


class PlainCommands(Commands):
    """The table's name, or the query, as the command: used by many small servers. Always reads complete tables."""

    def command(self, request: Request) -> bytes:
        """Implement `Commands`."""
        _refuse_more(request)
        return (request.query if request.table is None else request.table).encode()  # type: ignore[union-attr]


class JsonCommands(Commands):
    """A complete request as a JSON object with the names of its attributes; for servers designed for it."""

    def command(self, request: Request) -> bytes:
        """Implement `Commands`."""
        members = {
            "table": request.table,
            "schema": request.schema,
            "catalog": request.catalog,
            "query": request.query,
            "columns": list(request.columns),
            "filters": json.loads(filters_to_json(request.filters)),
            "limit": request.limit,
        }
        return json.dumps({name: value for name, value in members.items() if value not in (None, [])}).encode()


def _path(request: Request) -> list[str]:
    _refuse_more(request)
    if request.table is None:
        raise UsageError("A path cannot contain a query", hint="Give `table`, or the protocol flight-sql.")
    return request.table.strip("/").split("/")


def _refuse_more(request: Request) -> None:
    if request.filters or request.limit is not None:
        raise UsageError(
            f"The protocol supports no filters or limit, for {request.what}",
            hint="Filter in Spark, or use a protocol that supports them: flight-sql, odf, json, or your own.",
        )
