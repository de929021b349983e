"""One call of Flight SQL: its caller, the visible datasets, and the query service."""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.data.sql_text import OF_STRANGERS, check_text
from odfpy.query.dialects import dialect_named
from odfpy.query.service import QueryService
from odfpy.serving.callers.resolver import CallerResolver
from odfpy.serving.flight.names import DEFAULT_DIALECT, without_catalog
from odfpy.serving.flight.sessions import Middleware
from odfpy.serving.flight.tickets import QueryTicket


@dataclass(frozen=True, slots=True)
class CallContext:
    """The context of a call.

    Attributes:
        middleware: middleware that knows the caller.
        resolver: datasets that the caller may read.
        service: the query service.
    """

    middleware: Middleware
    resolver: CallerResolver
    service: QueryService

    @property
    def dialect(self) -> str:
        """Return the SQL dialect of the query."""
        return dialect_named(self.middleware.dialect or DEFAULT_DIALECT).name

    def question(self, text: str) -> QueryTicket:
        """Build the question for the query service.

        Raises:
            QueryTooLong, QueryTooDeep: the text exceeds a limit.
        """
        check_text(text, OF_STRANGERS)
        return QueryTicket(without_catalog(text, self.dialect), self.dialect)
