"""Checks of relays' statements about the parts of one answer: trusted signer, this answer, no duplicates."""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.federation.errors import AuthenticationFailed
from odfpy.federation.execution.plan import WebPlan
from odfpy.federation.model.certificates import subject_of
from odfpy.federation.relay.requesters import Authorities
from odfpy.federation.relay.statements import verified


@dataclass(frozen=True, slots=True)
class SignedPart:
    """The rows that a relay has supplied, according to its signed statement.

    Attributes:
        fragment: name of the fragment that the rows belong to.
        relay: the relay's name for itself.
        subject: subject of its certificate.
        fingerprint: fingerprint of its certificate.
        rows: number of rows.
        hash: order-independent hash of the rows.
        at: seconds since the epoch, when the last row was sent.
        sql: the executed query, in the relay's own schema.
    """

    fragment: str
    relay: str
    subject: str
    fingerprint: str
    rows: int
    hash: str
    at: int
    sql: str


class Statements:
    """The statements about the parts of one answer: verifies each, and remembers which were seen."""

    def __init__(self, plan: WebPlan, requester: str, authorities: Authorities) -> None:
        """
        Args:
            plan: the query.
            requester: fingerprint of the requester.
            authorities: the trusted authorities.
        """
        self._query = plan.query
        self._fragments = plan.fragments.keys()
        self._requester = requester
        self._authorities = authorities
        self._seen: set[tuple[str, str, str]] = set()

    def take(self, fragment: str, text: str) -> SignedPart:
        """Verify the statement about a part.

        Args:
            fragment: name of the fragment.
            text: the signed statement.

        Raises:
            AuthenticationFailed: the signer is not trusted, or it is about something else, or was seen before.
        """
        statement, signer = verified(text, self._authorities)
        if fragment not in self._fragments or statement.question != f"{self._query} {fragment}":
            raise AuthenticationFailed(f"{statement.relay} has signed another query than {fragment} of this query")
        if statement.requester != self._requester:
            raise AuthenticationFailed(f"{statement.relay} has signed for another requester")
        identity = (signer.fingerprint, statement.question, statement.part)
        if identity in self._seen:
            raise AuthenticationFailed(f"{statement.relay} has signed these rows once, but they occur twice")
        self._seen.add(identity)
        return SignedPart(
            fragment=fragment,
            relay=statement.relay,
            subject=subject_of(signer.certificate or b""),
            fingerprint=signer.fingerprint,
            rows=statement.rows,
            hash=statement.hash,
            at=statement.at,
            sql=statement.sql,
        )

    def take_with(self, fragment: str, text: str, size: tuple[int, str]) -> SignedPart:
        """Verify the statement about a part whose rows are available.

        Args:
            fragment: name of the fragment.
            text: the signed statement.
            size: row count and hash of the available rows.

        Raises:
            AuthenticationFailed: as with `take`; or the relay has signed for other rows.
        """
        statement = self.take(fragment, text)
        if size != (statement.rows, statement.hash):
            raise AuthenticationFailed(f"{statement.relay} has signed other rows than the received ones")
        return statement
