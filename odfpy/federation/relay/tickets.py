"""Tickets: what a relay gives away to have it back when rows are read.

A ticket is sealed: nobody else can read the words of the relay in it, or change them. It says what is read, and not
that it may be read: grants are looked up again when it comes back, from whoever holds the key that it is bound to.

A relay that reads for somebody holds tickets for many, which all other relays on the way have seen. So it says for whom
it reads one: else somebody could be given the ticket of another one.
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
"""Seconds for which a ticket is good, if nothing else is said."""

MAX_LENGTH: Final = 4 << 20
"""Characters of a ticket."""

_PREFIX: Final = 44
"""Characters that tell two tickets apart: what is random in them comes first."""

_USE: Final = "ticket of a relay"
_READ_FOR: Final = "~"
"""Is between a ticket and the fingerprint of whom it is read for; neither has it."""


def read_for(ticket: str, reader: str) -> str:
    """The text that a relay shows with a ticket of another one, which it reads for somebody.

    Args:
        ticket: the ticket.
        reader: fingerprint of whoever has asked it.
    """
    return f"{ticket}{_READ_FOR}{reader}"


@dataclass(frozen=True, slots=True)
class Ticket:
    """Rows of a data source, for somebody.

    Attributes:
        source: name of the data source.
        fragment: in the words of the entity.
        seen_by: the holder, whose key it is bound to, and who the holder vouches for.
        id: of the question.
        ends: seconds since 1970.
        is_single: whether it is good for one reading.
        is_signed: whether the relay signs what it has given.
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
        """Return whose key it is bound to."""
        return self.seen_by[0]


@dataclass(frozen=True, slots=True)
class PassedTicket:
    """A ticket of another relay, which this one reads for somebody who could not ask there.

    Attributes:
        part: where it is read.
        holder: who reads it here.
        id: of the question.
        ends: seconds since 1970.
    """

    part: Part
    holder: Identity
    id: str
    ends: float


class Tickets:
    """Makes tickets, and opens those that it has made.

    Attributes:
        seal: with the key of the relay; for other uses, what else it gives away to have it back.
    """

    def __init__(
        self, key: bytes, *, is_first: Callable[[str, float], bool], clock: Callable[[], float] = time.time
    ) -> None:
        """
        Args:
            key: 32 bytes; servers of one relay share them.
            is_first: says of a key whether it was never seen before, for tickets that are good once.
            clock: tells the time, in seconds since 1970.
        """
        self.seal = Seal(key, longest=MAX_LENGTH)
        self._is_first = is_first
        self._clock = clock

    def close(self, ticket: Ticket | PassedTicket) -> str:
        """The text of a ticket."""
        tree: dict[str, Any] = {"id": ticket.id, "ends": ticket.ends}
        if isinstance(ticket, PassedTicket):
            part = ticket.part
            tree |= {"passed": [part.relay, part.location, part.ticket], "by": [_tree_of(ticket.holder)]}
        else:
            tree |= {
                "source": ticket.source,
                "fragment": ticket.fragment.to_json(),
                "by": [_tree_of(one) for one in ticket.seen_by],
                "single": ticket.is_single,
                "signed": ticket.is_signed,
            }
        return self.seal.close(tree, _USE)

    def open(self, text: str, caller: Identity) -> Ticket | PassedTicket:
        """The ticket of a text.

        Args:
            text: what `close` gave; with `read_for`, for whom it is read.
            caller: who shows it.

        Raises:
            TicketRefused: it is not of this relay, has ended, was used, or is somebody else's.
        """
        text, _, reader = text.partition(_READ_FOR)
        tree = self._opened(text)
        seen_by = tuple(Identity(*one) for one in tree["by"])
        if seen_by[0].fingerprint != caller.fingerprint:
            raise TicketRefused(
                "The ticket is bound to another key", hint="Whoever has asked reads it, with the same key."
            )
        if reader != (seen_by[1].fingerprint if len(seen_by) > 1 else ""):
            raise TicketRefused(
                "The ticket is for somebody else", hint="Whoever has asked reads it, at the relay that they have asked."
            )
        left = tree["ends"] - self._clock()
        if left <= 0:
            raise TicketRefused("The ticket has ended", hint="Ask the question again.")
        if tree.get("single") and not self._is_first(f"ticket {text[:_PREFIX]}", left):
            raise TicketRefused("The ticket was already used; it is valid once", hint="Ask the question again.")
        return _ticket_of(tree)

    def reopen(self, text: str) -> Ticket | PassedTicket:
        """The ticket of a text that was opened before: neither its holder, its end nor its use are looked at again.

        Args:
            text: what `close` gave.

        Raises:
            TicketRefused: it is not of this relay.
        """
        return _ticket_of(self._opened(text.partition(_READ_FOR)[0]))

    def _opened(self, text: str) -> Mapping[str, Any]:
        tree: Mapping[str, Any] | None = self.seal.open(text, _USE)
        if tree is None:
            raise TicketRefused("This relay has not given this ticket", hint="Ask the question again.")
        return tree


def _tree_of(identity: Identity) -> list[Any]:
    return [identity.fingerprint, dict(identity.attributes)]


def _ticket_of(tree: Mapping[str, Any]) -> Ticket | PassedTicket:
    seen_by = tuple(Identity(*one) for one in tree["by"])
    if "passed" in tree:
        return PassedTicket(Part(*tree["passed"]), seen_by[0], tree["id"], tree["ends"])
    fragment = Fragment.parse(tree["fragment"])
    return Ticket(tree["source"], fragment, seen_by, tree["id"], tree["ends"], tree["single"], tree["signed"])
