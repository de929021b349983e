"""Statements: a relay signs which rows it has sent, to whom, and in answer to which question.

A statement is a JSON Web Token that contains the relay's certificate. So anyone who has the rows and trusts the web's
authority can verify them at any time, without the relay. Only server certificates count: users, whose certificates come
from the same authority, cannot sign for a relay.
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
    """The claims of a relay about the rows that it has sent.

    Attributes:
        relay: name of the relay.
        question: id of the question: id of the query, a space, and the fragment's name.
        requester: fingerprint of the recipient.
        part: opaque id of the part within the relay's answer, the same each time.
        sql: the executed query, in the relay's schema.
        rows: number of rows.
        hash: order-independent hash of the rows (`odfpy.data.rows.rows_hash`): a multihash.
        at: seconds since the epoch, when the last row was sent.
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
    """A signer of the rows that a relay has sent; thread-safe."""

    def __init__(self, relay: str, credentials: Credentials, clock: Callable[[], float] = time.time) -> None:
        """
        Args:
            relay: name of the relay.
            credentials: credentials of the relay.
            clock: returns the current time, in seconds since the epoch.
        """
        self._relay = relay
        self._credentials = credentials
        self._secret = hashlib.sha3_256(b"odf-web-part" + credentials.key).digest()
        self._clock = clock

    def signed(self, ticket: Ticket, rows: int, digest: Multihash) -> str:
        """Sign the rows that were sent for a ticket.

        Args:
            ticket: the ticket.
            rows: number of rows.
            digest: their order-independent hash.
        """
        claims = {"aud": AUDIENCE, "iat": int(self._clock()), "relay": self._relay, "question": ticket.id}
        sql = explained(ticket.fragment)
        claims |= {"requester": ticket.holder.fingerprint, "part": self._part(ticket, sql), "sql": sql}
        return self._credentials.signed({**claims, "rows": rows, "hash": str(digest)})

    def _part(self, ticket: Ticket, sql: str) -> str:
        """Return an id of one part of a question. It must not reveal anything about the source."""
        text = f"{ticket.id}\0{ticket.source}\0{sql}"
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()[:_PART_DIGITS]


def verified(text: str, authorities: Authorities) -> tuple[Statement, Identity]:
    """Verify a statement, and return it with the relay's identity and certificate.

    Args:
        text: result of `RowsSigner.signed`.
        authorities: the trusted authorities.

    Raises:
        AuthenticationFailed: it is not a statement, or the signer is not trusted.
    """
    if len(text) > MAX_LENGTH:
        raise AuthenticationFailed("A statement about rows is too long")
    signer, claims = authorities.signed(text, AUDIENCE)
    if signer.certificate is None or not is_of_server(signer.certificate):
        raise AuthenticationFailed("A statement about rows is not signed by a relay")
    if any(type(claims.get(name)) is not kind for name, kind in _FIELDS.items()):
        raise AuthenticationFailed("The statement about rows is malformed")
    return Statement(**{name: claims[name] for name in _FIELDS}, at=claims["iat"]), signer


_FIELDS: Final = {"relay": str, "question": str, "requester": str, "part": str, "sql": str, "rows": int, "hash": str}
