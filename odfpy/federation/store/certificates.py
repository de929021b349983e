"""Certificates by fingerprint: their owners, and which are revoked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from odfpy.data.timestamp import Timestamp
from odfpy.errors import did_you_mean
from odfpy.federation.errors import ConcurrentApply, WebObjectNotFound
from odfpy.federation.model.certificates import CertificateFacts
from odfpy.federation.model.documents import WORDS
from odfpy.federation.model.reading import ObjectKey
from odfpy.federation.store.applies import add_certificate, note
from odfpy.federation.store.tables import CERTIFICATES, REVOCATIONS
from odfpy.sharing.store.database import ConcurrentChange, Database

_MIN_LENGTH = 8


@dataclass(frozen=True, slots=True)
class KnownCertificate:
    """A certificate whose owner the relay knows.

    Attributes:
        facts: the certificate.
        owner: kind and case-folded name of its owner.
        is_declared: whether a document declares it; otherwise a command has issued it.
        revoked_at: from when it is revoked, which may be in the future; None if it is not.
        reason: reason of the revocation.
    """

    facts: CertificateFacts
    owner: ObjectKey
    is_declared: bool
    revoked_at: Timestamp | None = None
    reason: str = ""

    def is_good_at(self, time: Timestamp) -> bool:
        """Return whether it is valid at a time: not expired, and not revoked."""
        return self.facts.is_good_at(time) and (self.revoked_at is None or time < self.revoked_at)


_KNOWN = sa.select(CERTIFICATES, REVOCATIONS.c.revoked_at, REVOCATIONS.c.reason).join(
    REVOCATIONS, CERTIFICATES.c.fingerprint == REVOCATIONS.c.fingerprint, isouter=True
)
# Built once, since a relay runs these several times for each question.
_OF_FINGERPRINT = _KNOWN.where(CERTIFICATES.c.fingerprint == sa.bindparam("fingerprint"))
_ALL = _KNOWN.order_by(CERTIFICATES.c.folded, CERTIFICATES.c.added_at)
_OF_OWNER = _ALL.where(CERTIFICATES.c.kind == sa.bindparam("kind"), CERTIFICATES.c.folded == sa.bindparam("folded"))
_REVOKED = sa.select(REVOCATIONS.c.fingerprint).where(
    REVOCATIONS.c.fingerprint == sa.bindparam("fingerprint"), REVOCATIONS.c.revoked_at <= sa.bindparam("time")
)


class Certificates:
    """The certificates in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def find(self, fingerprint: str) -> KnownCertificate | None:
        """Return the certificate of a fingerprint; None if the relay does not know its owner."""
        with self._database.reading() as connection:
            row = connection.execute(_OF_FINGERPRINT, {"fingerprint": fingerprint}).first()
            return None if row is None else _known(row)

    def is_revoked(self, fingerprint: str, time: Timestamp | None = None) -> bool:
        """Return whether a certificate is revoked, even if the relay does not know its owner.

        Args:
            fingerprint: fingerprint of the certificate.
            time: the time to check; now by default.
        """
        when = (time or Timestamp.now()).nanos
        with self._database.reading() as connection:
            return connection.execute(_REVOKED, {"fingerprint": fingerprint, "time": when}).first() is not None

    def all(self, owner: ObjectKey | None = None) -> list[KnownCertificate]:
        """Return all certificates, by owner, oldest first.

        Args:
            owner: only those of this owner.
        """
        query = _ALL if owner is None else _OF_OWNER
        values = {} if owner is None else {"kind": owner[0], "folded": owner[1]}
        with self._database.reading() as connection:
            return [_known(row) for row in connection.execute(query, values)]

    def beginning(self, text: str) -> KnownCertificate:
        """Return the certificate whose fingerprint starts with a text; colons and case do not matter.

        Raises:
            WebObjectNotFound: there is none, or more than one.
        """
        wanted = text.replace(":", "").lower()
        matching = [certificate for certificate in self.all() if certificate.facts.fingerprint.startswith(wanted)]
        if len(matching) != 1 or len(wanted) < _MIN_LENGTH:
            many = f"{len(matching)} certificates begin" if matching else "No certificate begins"
            raise WebObjectNotFound(
                f"{many} with {text!r}",
                hint=did_you_mean(wanted, [certificate.facts.fingerprint for certificate in self.all()])
                or f"`odf relay cert list` shows them; give at least {_MIN_LENGTH} digits.",
            )
        return matching[0]

    def add(
        self,
        facts: CertificateFacts,
        owner: ObjectKey,
        who: str,
        action: str,
        *,
        revoking: Sequence[str] = (),
        from_when: Timestamp | None = None,
    ) -> None:
        """Assign a certificate to an owner, and revoke those that it replaces, in one transaction.

        Args:
            facts: the certificate.
            owner: kind and case-folded name.
            who: the user who makes the change.
            action: the command that makes the change.
            revoking: fingerprints of the certificates that it replaces.
            from_when: when these become invalid; now by default.

        Raises:
            InvalidCertificate: it belongs to another owner.
            ConcurrentApply: another change was made at the same time.
        """
        steps = [f"+ certificate {facts.fingerprint[:16]} of {WORDS[owner[0]]} {owner[1]}"]
        self._change(facts, owner, who, action, steps, revoking, from_when, "replaced")

    def revoke(
        self, fingerprints: Sequence[str], who: str, *, reason: str = "", from_when: Timestamp | None = None
    ) -> None:
        """Revoke certificates permanently, even if a document declares them again.

        Args:
            fingerprints: complete fingerprints; the relay need not know the owners.
            who: the user who makes the change.
            reason: human-readable reason.
            from_when: when they become invalid; now by default.

        Raises:
            ConcurrentApply: another change was made at the same time.
        """
        self._change(None, None, who, "cert revoke", [], fingerprints, from_when, reason)

    def _change(
        self,
        facts: CertificateFacts | None,
        owner: ObjectKey | None,
        who: str,
        action: str,
        steps: list[str],
        revoking: Sequence[str],
        from_when: Timestamp | None,
        reason: str,
    ) -> None:
        now = Timestamp.now()
        when = from_when or now
        later = "" if when <= now else f" from {when}"
        lines = [
            *steps,
            *(f"- certificate {fingerprint[:16]}{later}{f': {reason}' if reason else ''}" for fingerprint in revoking),
        ]
        try:
            with self._database.writing() as connection:
                note(connection, who, action, lines)
                if facts is not None and owner is not None:
                    add_certificate(connection, facts, owner, now, is_declared=False)
                for fingerprint in revoking:
                    _revoke(connection, fingerprint, when, reason)
        except ConcurrentChange as error:
            raise ConcurrentApply(
                "The relay was changed at the same time; this command changed nothing", hint="Try again."
            ) from error


def _revoke(connection: sa.Connection, fingerprint: str, when: Timestamp, reason: str) -> None:
    """Revoke a certificate; the time of an earlier revocation is never postponed."""
    row = connection.execute(sa.select(REVOCATIONS).where(REVOCATIONS.c.fingerprint == fingerprint)).first()
    if row is not None and row.revoked_at <= when.nanos:
        return
    connection.execute(sa.delete(REVOCATIONS).where(REVOCATIONS.c.fingerprint == fingerprint))
    values = {"fingerprint": fingerprint, "revoked_at": when.nanos, "reason": reason}
    connection.execute(sa.insert(REVOCATIONS).values(values))


def _known(row: sa.Row[tuple[object, ...]]) -> KnownCertificate:
    revoked = None if row.revoked_at is None else Timestamp(row.revoked_at)
    facts = CertificateFacts.of(row.pem)
    return KnownCertificate(facts, (row.kind, row.folded), row.is_declared, revoked, row.reason or "")
