"""The state of the relay of a workspace: one object for whoever works with it."""

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
    """The state of a relay.

    Attributes:
        database: where it is kept.
        applies: objects and their changes.
        certificates: whose they are, and which are revoked.
        once: queries that were seen, and tickets that were redeemed.
        results: results that are written while nobody waits.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.applies = Applies(database)
        self.certificates = Certificates(database)
        self.once = SingleUse(database)
        self.results = Results(database)

    @classmethod
    def of_workspace(cls, odf: Path, url: str | None) -> WebStore:
        """The state of the relay of a workspace.

        Args:
            odf: its folder `.odf`.
            url: its setting `sharing.database`.

        Raises:
            SharingDatabaseError: the database cannot be used.
        """
        return cls(Database.in_workspace(odf, url))

    def owner_of(self, fingerprint: str, time: Timestamp) -> User | PeerRelay | None:
        """The user or peer whom a certificate is of, whom the relay knows by name; None for everybody else.

        Args:
            fingerprint: of the certificate; that it is of a trusted authority was checked.
            time: when it is to be good.

        Raises:
            InvalidCertificate: it is revoked, or not good at that time.
        """
        known = self.certificates.find(fingerprint)
        is_good = not self.certificates.is_revoked(fingerprint, time) if known is None else known.is_good_at(time)
        if not is_good:
            raise InvalidCertificate("The certificate is revoked or has expired", hint="Ask the operator for one.")
        found = None if known is None else self.applies.state().web.objects.get(known.owner)
        return found if isinstance(found, User | PeerRelay) else None
