"""Requests: the rows to read from a server."""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.errors import UsageError
from odfpy.flight.filters import Filter


@dataclass(frozen=True)
class Request:
    """The requested rows: of a table, or of a query in the server's own language.

    Attributes:
        table: name of the table; dots in it do not separate schema and table.
        schema: schema of the table, if the server has schemas.
        catalog: catalog of the schema.
        query: a query, instead of a table.
        columns: columns of the table, in this order; all if empty.
        filters: conditions that must all be true.
        limit: maximum number of rows.
    """

    table: str | None = None
    schema: str | None = None
    catalog: str | None = None
    query: str | None = None
    columns: tuple[str, ...] = ()
    filters: tuple[Filter, ...] = ()
    limit: int | None = None

    def __post_init__(self) -> None:
        if (self.table is None) == (self.query is None):
            raise UsageError("A request names either a table or a query", hint="Give one of `table` and `query`.")
        if self.limit is not None and self.limit < 0:
            raise UsageError(f"The limit is {self.limit}, less than no rows at all", hint="Give 0 or more.")

    @property
    def what(self) -> str:
        """Describe the table or query, for messages."""
        return f"table {self.table!r}" if self.table is not None else "the query"
