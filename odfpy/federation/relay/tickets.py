"""Tickets: opaque tokens that a relay issues when planning, and redeems when rows are read.

A ticket is sealed: nobody else can read or change the SQL and names in it. It says what is read, not that it may be
read: grants are checked again when the holder of the key that it is bound to redeems it.

A relay that reads on behalf of clients holds tickets for many of them, which all relays on the way have seen. So it
states for whom it reads a ticket; otherwise a client could be given the rows of another client's ticket.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from odfpy.federation.relay.errors import TicketRefused
from odfpy.federation.relay.question import Part
from odfpy.federation.relay.requesters import Identity
from odfpy.federation.sql.fragment import Fragment
from odfpy.http.seal import Seal

LIFE: Final = 600.0
"""Default lifetime of a ticket in seconds."""

MAX_LENGTH: Final = 4 << 20
"""Characters of a ticket."""

_PREFIX: Final = 44
"""Characters that distinguish two tickets: their random part comes first."""

_USE: Final = "ticket of a relay"
_READ_FOR: Final = "~"
"""Separates a ticket from the fingerprint of its reader; neither contains it."""


def read_for(ticket: str, reader: str) -> str:
    """Return the text that a relay presents with another relay's ticket, which it redeems for a client.

    Args:
        ticket: the ticket.
        reader: fingerprint of the requester who has asked this relay.
    """
    return f"{ticket}{_READ_FOR}{reader}"


@dataclass(frozen=True, slots=True)
class Ticket:
    """The right to try to read rows of a data source.

    Attributes:
        source: name of the data source.
        fragment: the fragment, in the names of the entity.
        seen_by: the holder, whose key it is bound to, and the identities that the holder vouches for.
        id: id of the question.
        ends: expiry, in seconds since the epoch.
        is_single: whether it can be redeemed only once.
        is_signed: whether the relay signs what it sends.
    """

    source: str
    fragment: Fragment
    seen_by: tuple[Identity, ...]
    id: str
    ends: float
    is_single: bool = False
    is_signed: bool = False

    @property
    def holder(self) -> Identity:
        """The identity whose key it is bound to."""
        return self.seen_by[0]


@dataclass(frozen=True, slots=True)
class PassedTicket:
    """A ticket of another relay, which this one redeems for a client that cannot query that relay.

    Attributes:
        part: the part of the other relay.
        holder: the client that reads it here.
        id: id of the question.
        ends: expiry, in seconds since the epoch.
    """

    part: Part
    holder: Identity
    id: str
    ends: float


class Tickets:
    """The tickets of a relay: issued, and opened again.

    Attributes:
        seal: seal with the relay's key; also usable for other opaque tokens of the relay.
    """

    def __init__(
        self, key: bytes, *, is_first: Callable[[str, float], bool], clock: Callable[[], float] = time.time
    ) -> None:
        """
        Args:
            key: 32 bytes, shared by all servers of one relay.
            is_first: remembers a key and returns whether it was new, for single-use tickets.
            clock: returns the current time, in seconds since the epoch.
        """
        self.seal = Seal(key, longest=MAX_LENGTH)
        self._is_first = is_first
        self._clock = clock

    def close(self, ticket: Ticket | PassedTicket) -> str:
        """Seal a ticket into a text."""
        tree: dict[str, Any] = {"id": ticket.id, "ends": ticket.ends}
        if isinstance(ticket, PassedTicket):
            part = ticket.part
            tree |= {"passed": [part.relay, part.location, part.ticket], "by": [_tree_of(ticket.holder)]}
        else:
            tree |= {
                "source": ticket.source,
                "fragment": ticket.fragment.to_json(),
                "by": [_tree_of(identity) for identity in ticket.seen_by],
                "single": ticket.is_single,
                "signed": ticket.is_signed,
            }
        return self.seal.close(tree, _USE)

    def open(self, text: str, caller: Identity) -> Ticket | PassedTicket:
        """Open the ticket of a text.

        Args:
            text: result of `close`; with `read_for`, it also names the client.
            caller: the identity that presents it.

        Raises:
            TicketRefused: it is not of this relay, has expired, was used, or belongs to another caller.
        """
        text, _, reader = text.partition(_READ_FOR)
        tree = self._opened(text)
        seen_by = tuple(Identity(*fields) for fields in tree["by"])
        if seen_by[0].fingerprint != caller.fingerprint:
            raise TicketRefused("The ticket is bound to another key", hint="Read it with the key of the requester.")
        if reader != (seen_by[1].fingerprint if len(seen_by) > 1 else ""):
            raise TicketRefused(
                "The ticket belongs to another requester", hint="Read it through the relay that was queried."
            )
        left = tree["ends"] - self._clock()
        if left <= 0:
            raise TicketRefused("The ticket has expired", hint="Run the query again.")
        if tree.get("single") and not self._is_first(f"ticket {text[:_PREFIX]}", left):
            raise TicketRefused("The ticket was already used; it is valid once", hint="Run the query again.")
        return _ticket_of(tree)

    def reopen(self, text: str) -> Ticket | PassedTicket:
        """Open a ticket that was opened before: its holder, expiry and use are not checked again.

        Args:
            text: result of `close`.

        Raises:
            TicketRefused: it is not of this relay.
        """
        return _ticket_of(self._opened(text.partition(_READ_FOR)[0]))

    def _opened(self, text: str) -> Mapping[str, Any]:
        tree: Mapping[str, Any] | None = self.seal.open(text, _USE)
        if tree is None:
            raise TicketRefused("This relay has not issued this ticket", hint="Run the query again.")
        return tree


def _tree_of(identity: Identity) -> list[Any]:
    return [identity.fingerprint, dict(identity.attributes)]


def _ticket_of(tree: Mapping[str, Any]) -> Ticket | PassedTicket:
    seen_by = tuple(Identity(*fields) for fields in tree["by"])
    if "passed" in tree:
        return PassedTicket(Part(*tree["passed"]), seen_by[0], tree["id"], tree["ends"])
    fragment = Fragment.parse(tree["fragment"])
    return Ticket(tree["source"], fragment, seen_by, tree["id"], tree["ends"], tree["single"], tree["signed"])
