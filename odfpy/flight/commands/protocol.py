"""Words of a kind of server: the one thing that differs from server to server."""

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
    """The words of a kind of server. A subclass needs one method; instances can be pickled.

    >>> class Mine(Commands):
    ...     def command(self, request):
    ...         return f"{request.table}|{','.join(request.columns)}".encode()
    """

    stream_column: ClassVar[str | None] = None
    """The column by which new rows are known if nothing else is said: later rows have greater values."""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Commands:
        """Make one from options of Spark.

        Args:
            options: names in small letters.
        """
        del options
        return cls()

    @abstractmethod
    def command(self, request: Request) -> bytes:
        """Return the bytes of the command that asks for some rows.

        Args:
            request: the rows that are wanted. If the command cannot say all of it, except for the columns, this raises
                `UsageError`: a filter that is left out would give wrong rows. Columns may be left out, since the client
                picks those that are wanted.
        """

    def descriptor(self, request: Request) -> Any:
        """The descriptor that asks for some rows: by default one with a command."""
        return fl.FlightDescriptor.for_command(self.command(request))

    def headers(self) -> Headers:
        """Headers that all calls have."""
        return ()

    def write_descriptor(self, request: Request, *, replace: bool, transaction: bytes | None) -> Any:
        """The descriptor by which rows are written to a table.

        Args:
            request: the table.
            replace: whether rows that are there are to go.
            transaction: of a server that has transactions.

        Raises:
            UsageError: that cannot be said to the server.
        """
        if replace or transaction is not None:
            raise UsageError(
                "A plain Flight server can only be told to add rows",
                hint="Write with mode append and without transactions; or the server speaks Flight SQL.",
            )
        return self.descriptor(request)

    def greatest(self, request: Request, column: str) -> Request:
        """A request for one row and one column: the greatest value of a column.

        Args:
            request: the rows.
            column: one of theirs.

        Raises:
            UsageError: that cannot be said to the server.
        """
        raise UsageError(
            f"The server cannot be asked for the greatest value of {column!r} in {request.what}",
            hint="Leave arrow-flight.stream-column out: new rows then are new endpoints.",
        )

    def rows_written(self, result: bytes) -> int | None:
        """The number of rows in what a server says of a write; None if it does not say.

        Args:
            result: the metadata that it has sent.
        """
        del result
        return None


class PathCommands(Commands):
    """Flights that are known by paths: the parts of a table's name between slashes. All of it is read."""

    def command(self, request: Request) -> bytes:
        """Implement `Commands`: the path, to those who want bytes."""
        return "/".join(_path(request)).encode()

    def descriptor(self, request: Request) -> Any:
        """Implement `Commands`."""
        return fl.FlightDescriptor.for_path(*_path(request))


class PlainCommands(Commands):
    """The table's name, or the query, as it is: the command of many small servers. All of it is read."""

    def command(self, request: Request) -> bytes:
        """Implement `Commands`."""
        _refuse_more(request)
        return (request.query if request.table is None else request.table).encode()  # type: ignore[union-attr]


class JsonCommands(Commands):
    """All of a request, as a JSON object with the names of its attributes; for servers made to take it."""

    def command(self, request: Request) -> bytes:
        """Implement `Commands`."""
        said = {
            "table": request.table,
            "schema": request.schema,
            "catalog": request.catalog,
            "query": request.query,
            "columns": list(request.columns),
            "filters": json.loads(filters_to_json(request.filters)),
            "limit": request.limit,
        }
        return json.dumps({name: value for name, value in said.items() if value not in (None, [])}).encode()


def _path(request: Request) -> list[str]:
    _refuse_more(request)
    if request.table is None:
        raise UsageError("A path does not say a query", hint="Give `table`, or the protocol flight-sql.")
    return request.table.strip("/").split("/")


def _refuse_more(request: Request) -> None:
    if request.filters or request.limit is not None:
        raise UsageError(
            f"The server cannot be told filters or a limit for {request.what}",
            hint="Filter in Spark, or give a protocol that says them: flight-sql, odf, json, or one of your own.",
        )
