"""The part of the backend interface that no server supports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfpy.errors import UsageError
from odfpy.query.moments import PointInTime
from odfpy.query.query import Query

if TYPE_CHECKING:
    from odfpy.query.stored_rows import StoredRows


class Remote:
    """A base class of backends for servers, which are not folders of this machine."""

    @property
    def place(self) -> str:
        """Return where it is, for people."""
        raise NotImplementedError

    def stored_rows(self, query: Query) -> StoredRows | None:
        """Implement `Backend`: there are no files here."""
        del query
        return None

    def as_at(self, query: Query, moment: PointInTime) -> Query:
        """Implement `Backend`: nothing tells from here which blocks these are."""
        del query
        raise UsageError(
            f"{self.place} cannot be asked for a whole query as at {moment}",
            hint=f"Write it for each dataset, in the query: FROM odf_as_at('NAME', '{moment}').",
        )
