"""Tickets of Flight SQL: a whole query, sealed, and bound to the caller who planned it.

Permissions are checked when it is redeemed.
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
    """The query in a ticket.

    Attributes:
        name: name of the execution, for cancellation.
        sql: the query, including its parameters.
        allows_incomplete: whether the rows of some relays may be missing.
    """

    name: str
    sql: str
    allows_incomplete: bool


class SqlTickets:
    """The Flight SQL tickets of a relay: issued, and opened again."""

    def __init__(self, seal: Seal, clock: Callable[[], float] = time.time) -> None:
        """
        Args:
            seal: seal of the relay.
            clock: returns the current time, in seconds since the epoch.
        """
        self._seal = seal
        self._clock = clock

    def close(self, ticket: SqlTicket, holder: Identity) -> bytes:
        """Seal a ticket.

        Args:
            ticket: the ticket.
            holder: the caller that may redeem it.
        """
        tree = [ticket.name, ticket.sql, ticket.allows_incomplete, holder.fingerprint, self._clock() + LIFE]
        return wrap(message("TicketStatementQuery", statement_handle=self._seal.close(tree, _USE).encode()))

    def open(self, handle: bytes, caller: Identity) -> SqlTicket:
        """Open a ticket.

        Args:
            handle: handle of a `TicketStatementQuery`.
            caller: the caller that presents it.

        Raises:
            TicketRefused: it is not of this relay, has expired, or belongs to another caller.
        """
        tree = self._seal.open(handle.decode("ascii", "replace"), _USE)
        if tree is None:
            raise TicketRefused("This relay has not issued this ticket", hint=_AGAIN)
        name, sql, allows_incomplete, fingerprint, ends = tree
        if fingerprint != caller.fingerprint:
            raise TicketRefused("The ticket is bound to another key", hint="Read it with the key of the requester.")
        if ends <= self._clock():
            raise TicketRefused("The ticket has expired", hint=_AGAIN)
        return SqlTicket(name, sql, allows_incomplete)
