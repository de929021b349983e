"""Statements of relays about the parts of one answer: each of a relay, of this answer, and there once."""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.federation.errors import AuthenticationFailed
from odfpy.federation.execution.plan import WebPlan
from odfpy.federation.model.certificates import subject_of
from odfpy.federation.relay.requesters import Authorities
from odfpy.federation.relay.statements import verified


@dataclass(frozen=True, slots=True)
class SignedPart:
    """The rows that a relay has given, as it has signed.

    Attributes:
        fragment: name of the fragment that they answer.
        relay: what the relay calls itself.
        subject: of its certificate.
        fingerprint: of its certificate.
        rows: how many there were.
        hash: of the rows, without their order.
        at: seconds since 1970, when the last of them was given.
        sql: what was asked, in the words of the relay.
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
    """The statements about the parts of an answer."""

    def __init__(self, plan: WebPlan, requester: str, authorities: Authorities) -> None:
        """
        Args:
            plan: the query.
            requester: fingerprint of whoever has asked.
            authorities: whose certificates are trusted.
        """
        self._query = plan.query
        self._fragments = plan.fragments.keys()
        self._requester = requester
        self._authorities = authorities
        self._seen: set[tuple[str, str, str]] = set()

    def take(self, fragment: str, text: str) -> SignedPart:
        """Check the statement about a part.

        Args:
            fragment: name of the fragment.
            text: what the relay has signed.

        Raises:
            AuthenticationFailed: it is of nobody who is trusted, or about something else, or has come before.
        """
        statement, signer = verified(text, self._authorities)
        if fragment not in self._fragments or statement.question != f"{self._query} {fragment}":
            raise AuthenticationFailed(
                f"{statement.relay} has signed for another question than {fragment} of this query"
            )
        if statement.requester != self._requester:
            raise AuthenticationFailed(f"{statement.relay} has signed for somebody else who has asked")
        one = (signer.fingerprint, statement.question, statement.part)
        if one in self._seen:
            raise AuthenticationFailed(f"{statement.relay} has signed for these rows once, and they are here twice")
        self._seen.add(one)
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
        """Check the statement about a part whose rows are here.

        Args:
            fragment: name of the fragment.
            text: what the relay has signed.
            size: how many rows there are, and their hash.

        Raises:
            AuthenticationFailed: as with `take`; or the relay has signed for other rows.
        """
        found = self.take(fragment, text)
        if size != (found.rows, found.hash):
            raise AuthenticationFailed(f"{found.relay} has signed for other rows than those that have come")
        return found
