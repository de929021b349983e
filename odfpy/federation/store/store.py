"""The state of a workspace's relay: one object for all components."""

from __future__ import annotations

from pathlib import Path

from odfpy.data.timestamp import Timestamp
from odfpy.federation.errors import InvalidCertificate
from odfpy.federation.model.documents import PeerRelay, User
from odfpy.federation.store.applies import Applies
from odfpy.federation.store.certificates import Certificates
from odfpy.federation.store.results import Results
from odfpy.federation.store.single_use import SingleUse
from odfpy.sharing.store.database import Database


class WebStore:
    """The state of a relay, used by its servers and commands.

    Attributes:
        database: the database that holds it.
        applies: objects and the log of their changes.
        certificates: certificates, their owners, and revocations.
        once: seen queries and redeemed tickets.
        results: deferred results.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.applies = Applies(database)
        self.certificates = Certificates(database)
        self.once = SingleUse(database)
        self.results = Results(database)

    @classmethod
    def of_workspace(cls, odf: Path, url: str | None) -> WebStore:
        """Open the state of a workspace's relay.

        Args:
            odf: its folder `.odf`.
            url: the setting `sharing.database`.

        Raises:
            SharingDatabaseError: the database cannot be used.
        """
        return cls(Database.in_workspace(odf, url))

    def owner_of(self, fingerprint: str, time: Timestamp) -> User | PeerRelay | None:
        """Return the user or peer that owns a certificate; None if the relay does not know its owner.

        Args:
            fingerprint: fingerprint of the certificate, which was verified to come from a trusted authority.
            time: the time at which it must be valid.

        Raises:
            InvalidCertificate: it is revoked, or not valid at that time.
        """
        known = self.certificates.find(fingerprint)
        is_good = not self.certificates.is_revoked(fingerprint, time) if known is None else known.is_good_at(time)
        if not is_good:
            raise InvalidCertificate("The certificate is revoked or has expired", hint="Ask the operator for one.")
        owner = None if known is None else self.applies.state().web.objects.get(known.owner)
        return owner if isinstance(owner, User | PeerRelay) else None
