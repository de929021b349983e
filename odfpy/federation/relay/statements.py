"""Statements: a relay signs which rows it has given, to whom, as the answer to what.

A statement is a JSON Web Token with the certificate of the relay in it. So whoever has the rows and trusts the
authority of the web can check them, at any time, without asking the relay. Only certificates of servers count:
users, who have certificates of the same authority, cannot sign for a relay.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from odfpy.data.multihash import Multihash
from odfpy.federation.errors import AuthenticationFailed
from odfpy.federation.model.certificates import is_of_server
from odfpy.federation.relay.requesters import Authorities, Credentials, Identity
from odfpy.federation.relay.tickets import Ticket
from odfpy.federation.sql.fragment import explained

AUDIENCE: Final = "odf-web-rows"
MAX_LENGTH: Final = 1 << 20
"""Characters of a statement."""
_PART_DIGITS: Final = 32


@dataclass(frozen=True, slots=True)
class Statement:
    """The rows that a relay has given.

    Attributes:
        relay: its name.
        question: id of the question: of the query, a space, and which of its fragments.
        requester: fingerprint of whoever has got them.
        part: which of the relay's parts of the answer it is: the same each time, and nothing else.
        sql: what was asked, in the words of the relay.
        rows: how many there were.
        hash: of the rows, without their order (`odfpy.data.rows.rows_hash`): a multihash.
        at: seconds since 1970, when the last of them was given.
    """

    relay: str
    question: str
    requester: str
    part: str
    sql: str
    rows: int
    hash: str
    at: int


class RowsSigner:
    """Signs what a relay has given; for all threads."""

    def __init__(self, relay: str, credentials: Credentials, clock: Callable[[], float] = time.time) -> None:
        """
        Args:
            relay: its name.
            credentials: of the relay.
            clock: tells the time, in seconds since 1970.
        """
        self._relay = relay
        self._credentials = credentials
        self._secret = hashlib.sha3_256(b"odf-web-part" + credentials.key).digest()
        self._clock = clock

    def signed(self, ticket: Ticket, rows: int, digest: Multihash) -> str:
        """Sign what was given for a ticket.

        Args:
            ticket: the ticket.
            rows: how many there were.
            digest: their hash, without their order.
        """
        claims = {"aud": AUDIENCE, "iat": int(self._clock()), "relay": self._relay, "question": ticket.id}
        sql = explained(ticket.fragment)
        claims |= {"requester": ticket.holder.fingerprint, "part": self._part(ticket, sql), "sql": sql}
        return self._credentials.signed({**claims, "rows": rows, "hash": str(digest)})

    def _part(self, ticket: Ticket, sql: str) -> str:
        """Mark of one part of a question. It says nothing of the source, which is nobody's concern."""
        text = f"{ticket.id}\0{ticket.source}\0{sql}"
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()[:_PART_DIGITS]


def verified(text: str, authorities: Authorities) -> tuple[Statement, Identity]:
    """Return what a relay has signed, and which one it was, with its certificate.

    Args:
        text: what a `RowsSigner` has made.
        authorities: whose certificates are trusted.

    Raises:
        AuthenticationFailed: it is not a statement, or of nobody who is trusted.
    """
    if len(text) > MAX_LENGTH:
        raise AuthenticationFailed("A statement about rows is too long")
    signer, claims = authorities.signed(text, AUDIENCE)
    if signer.certificate is None or not is_of_server(signer.certificate):
        raise AuthenticationFailed("A statement about rows is signed by somebody who is not a relay")
    if any(type(claims.get(name)) is not kind for name, kind in _FIELDS.items()):
        raise AuthenticationFailed("The statement about rows is malformed")
    return Statement(**{name: claims[name] for name in _FIELDS}, at=claims["iat"]), signer


_FIELDS: Final = {"relay": str, "question": str, "requester": str, "part": str, "sql": str, "rows": int, "hash": str}
