"""Methods of the backend interface that servers do not support."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfpy.errors import UsageError
from odfpy.query.moments import PointInTime
from odfpy.query.query import Query

if TYPE_CHECKING:
    from odfpy.query.stored_rows import StoredRows


class Remote:
    """Base class of backends for servers, which have no local files."""

    @property
    def place(self) -> str:
        """The location, for display."""
        raise NotImplementedError

    def stored_rows(self, query: Query) -> StoredRows | None:
        """Implement `Backend`: there are no local files."""
        del query
        return None

    def as_at(self, query: Query, moment: PointInTime) -> Query:
        """Implement `Backend`: the blocks of a server's datasets cannot be determined."""
        del query
        raise UsageError(
            f"{self.place} cannot be asked for a whole query as at {moment}",
            hint=f"Write it for each dataset, in the query: FROM odf_as_at('NAME', '{moment}').",
        )
