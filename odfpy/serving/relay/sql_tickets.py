"""Tickets of Flight SQL: a whole query, sealed, for whoever has asked it.

What may be seen is looked up when it is run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from odfpy.federation.relay.errors import TicketRefused
from odfpy.federation.relay.requesters import Identity
from odfpy.federation.relay.tickets import LIFE
from odfpy.http.seal import Seal
from odfpy.serving.flight.messages import message, wrap

_USE: Final = "query of Flight SQL"
_AGAIN: Final = "Execute the query again."


@dataclass(frozen=True, slots=True)
class SqlTicket:
    """A query in a ticket.

    Attributes:
        name: of the execution, by which it can be cancelled.
        sql: the query, with its parameters.
        allows_incomplete: whether the rows of some relays may be missing.
    """

    name: str
    sql: str
    allows_incomplete: bool


class SqlTickets:
    """Makes tickets, and opens those that it has made."""

    def __init__(self, seal: Seal, clock: Callable[[], float] = time.time) -> None:
        """
        Args:
            seal: of the relay.
            clock: tells the time, in seconds since 1970.
        """
        self._seal = seal
        self._clock = clock

    def close(self, ticket: SqlTicket, holder: Identity) -> bytes:
        """The bytes of a ticket.

        Args:
            ticket: the ticket.
            holder: who has asked.
        """
        tree = [ticket.name, ticket.sql, ticket.allows_incomplete, holder.fingerprint, self._clock() + LIFE]
        return wrap(message("TicketStatementQuery", statement_handle=self._seal.close(tree, _USE).encode()))

    def open(self, handle: bytes, caller: Identity) -> SqlTicket:
        """The ticket of a handle.

        Args:
            handle: of a `TicketStatementQuery`.
            caller: who shows it.

        Raises:
            TicketRefused: it is not of this relay, has ended, or is somebody else's.
        """
        tree = self._seal.open(handle.decode("ascii", "replace"), _USE)
        if tree is None:
            raise TicketRefused("This relay has not given this ticket", hint=_AGAIN)
        name, sql, allows_incomplete, fingerprint, ends = tree
        if fingerprint != caller.fingerprint:
            raise TicketRefused(
                "The ticket is bound to another key", hint="Whoever has asked reads it, with the same key."
            )
        if ends <= self._clock():
            raise TicketRefused("The ticket has ended", hint=_AGAIN)
        return SqlTicket(name, sql, allows_incomplete)
