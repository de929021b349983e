"""The shares of a workspace: one object for whoever works with them."""

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
    """Shares, principals and grants of a workspace.

    Attributes:
        database: where they are kept.
    """

    def __init__(self, database: Database) -> None:
        self.database = database

    @classmethod
    def of_workspace(cls, odf: Path, url: str | None) -> Sharing:
        """The sharing of a workspace.

        Args:
            odf: its folder `.odf`.
            url: its setting `sharing.database`.

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
        """Passwords of users."""
        return Passwords(self.database, self.principals)

    @cached_property
    def shares(self) -> Shares:
        """Return what is shared."""
        return Shares(self.database)

    @cached_property
    def grants(self) -> Grants:
        """Return who may read what."""
        return Grants(self.database, self.principals, self.shares)

    @cached_property
    def histories(self) -> ServedHistories:
        """Return what was served of datasets."""
        return ServedHistories(self.database)

    def whole_datasets(self, principal: Principal) -> frozenset[str]:
        """Ids of the datasets of which a principal may see all: every column of every row of the changelog."""
        reach = self.reach(principal)
        logs = (one for one in self.shares.changelogs(reach.few_paths) if one.source.at is None)
        views = ((one, reach.view(one)) for one in logs)
        return frozenset(one.source.location for one, view in views if view is not None and view.is_all)

    def reaches(self) -> Iterator[tuple[Principal, CallerAccess]]:
        """Yield every user and recipient, by name, with what they may see."""
        held = self.grants.of_everybody()
        for one in self.principals.all(PrincipalKind.USER, PrincipalKind.RECIPIENT):
            yield one, CallerAccess(held.get(one.id, ()), one.attributes)

    def reach(self, principal: Principal) -> CallerAccess:
        """Return what a principal may see, by the grants that they and their groups have now."""
        return CallerAccess(self.grants.get(principal.id), principal.attributes)
