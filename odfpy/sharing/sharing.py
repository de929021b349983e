"""The facade of sharing: shares, principals and grants of a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from odfpy.sharing.decisions import CallerAccess
from odfpy.sharing.model import Principal, PrincipalKind
from odfpy.sharing.store.database import Database
from odfpy.sharing.store.grants import Grants
from odfpy.sharing.store.histories import ServedHistories
from odfpy.sharing.store.passwords import Passwords
from odfpy.sharing.store.principals import Principals
from odfpy.sharing.store.shares import Shares


class Sharing:
    """Shares, principals and grants of a workspace; used by commands and servers.

    Attributes:
        database: the database of sharing.
    """

    def __init__(self, database: Database) -> None:
        self.database = database

    @classmethod
    def of_workspace(cls, odf: Path, url: str | None) -> Sharing:
        """Open the shares of a workspace.

        Args:
            odf: the folder `.odf` of the workspace.
            url: the setting `sharing.database`.

        Raises:
            SharingDatabaseError: the database cannot be used.
        """
        return cls(Database.in_workspace(odf, url))

    @cached_property
    def principals(self) -> Principals:
        """Users, recipients and groups."""
        return Principals(self.database)

    @cached_property
    def passwords(self) -> Passwords:
        """The passwords of users."""
        return Passwords(self.database, self.principals)

    @cached_property
    def shares(self) -> Shares:
        """The shares."""
        return Shares(self.database)

    @cached_property
    def grants(self) -> Grants:
        """The grants."""
        return Grants(self.database, self.principals, self.shares)

    @cached_property
    def histories(self) -> ServedHistories:
        """The histories of datasets that were served."""
        return ServedHistories(self.database)

    def whole_datasets(self, principal: Principal) -> frozenset[str]:
        """Return the ids of the datasets that a principal may read completely: their whole changelog."""
        reach = self.reach(principal)
        logs = (changelog for changelog in self.shares.changelogs(reach.few_paths) if changelog.source.at is None)
        views = ((log, reach.view(log)) for log in logs)
        return frozenset(one.source.location for one, view in views if view is not None and view.is_all)

    def reaches(self) -> Iterator[tuple[Principal, CallerAccess]]:
        """Yield every user and recipient, by name, with their permissions."""
        held = self.grants.of_everybody()
        for one in self.principals.all(PrincipalKind.USER, PrincipalKind.RECIPIENT):
            yield one, CallerAccess(held.get(one.id, ()), one.attributes)

    def reach(self, principal: Principal) -> CallerAccess:
        """Return the current permissions of a principal, including those of its groups."""
        return CallerAccess(self.grants.get(principal.id), principal.attributes)
