"""One call of Flight SQL: who asks, what they may see, and what answers."""

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
        middleware: who calls.
        resolver: the datasets that the caller may see.
        service: the query service.
    """

    middleware: Middleware
    resolver: CallerResolver
    service: QueryService

    @property
    def dialect(self) -> str:
        """The SQL of the question."""
        return dialect_named(self.middleware.dialect or DEFAULT_DIALECT).name

    def question(self, text: str) -> QueryTicket:
        """Return the question.

        Raises:
            QueryTooLong, QueryTooDeep: the text is not to be read.
        """
        check_text(text, OF_STRANGERS)
        return QueryTicket(without_catalog(text, self.dialect), self.dialect)
