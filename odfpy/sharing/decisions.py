"""Decisions on who may read what: the one place, for Delta Sharing, REST, Flight SQL and transfers alike.

A grant is a pair of columns and rows. Several grants are a union of cells: a cell shows if one grant has both its row
and its column. So one grant's columns never show in the rows of another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from odfpy.codec.canonical_json import canonical_json
from odfpy.sharing.conditions import columns_of, condition_sql
from odfpy.sharing.model import Grant, SharedTable
from odfpy.sharing.names import SharePath, folded

_MAX_PATHS: Final = 200
"""Grants up to which only what they are on is looked up; with more of them, it is quicker to look through all."""


@dataclass(frozen=True, slots=True)
class VisiblePart:
    """Columns and rows that may be read together.

    Attributes:
        columns: names, None for all.
        rows: condition in the SQL of duckdb, for this recipient; None for all rows.
    """

    columns: tuple[str, ...] | None = None
    rows: str | None = None

    @property
    def is_all(self) -> bool:
        """Return whether nothing is hidden."""
        return self.columns is None and self.rows is None


@dataclass(frozen=True)
class View:
    """The visible cells of a table for somebody: the union of its parts.

    Attributes:
        parts: at least one.
    """

    parts: tuple[VisiblePart, ...]

    @cached_property
    def is_all(self) -> bool:
        """Return whether nothing is hidden."""
        return any(part.is_all for part in self.parts)

    def has_all_rows(self, names: Sequence[str]) -> bool:
        """Return whether every row shows at least one column.

        Args:
            names: all columns of the table.
        """
        return self.condition(names) is None

    def columns(self, names: Sequence[str]) -> list[str]:
        """Those of a table's columns that show, in its order.

        Args:
            names: all columns of the table.
        """
        if any(part.columns is None for part in self.parts):
            return list(names)
        shown = {folded(name) for part in self.parts for name in part.columns or ()}
        return [name for name in names if folded(name) in shown]

    @cached_property
    def filter_columns(self) -> frozenset[str]:
        """Folded names of the columns that conditions are about."""
        return frozenset(folded(name) for part in self.parts if part.rows for name in columns_of(part.rows))

    def names(self, column: str) -> bool:
        """Return whether a grant names a column."""
        return any(folded(column) == folded(name) for part in self.parts for name in part.columns or ())

    def condition(self, names: Sequence[str]) -> str | None:
        """The rows that show, in the SQL of duckdb; None for all. Parts whose columns the table lacks show none."""
        there = {folded(name) for name in names}
        parts = [
            part for part in self.parts if part.columns is None or any(folded(one) in there for one in part.columns)
        ]
        if any(part.rows is None for part in parts):
            return None
        return any_of([part.rows for part in parts if part.rows is not None])

    def conditions_of(self, column: str) -> list[str] | None:
        """Conditions of which one has to be true for a column to show; None if it shows in all rows that do."""
        found: list[str] = []
        for part in self.parts:
            if part.columns is None or folded(column) in map(folded, part.columns):
                if part.rows is None:
                    return None
                found.append(part.rows)
        return None if len(found) == len(self.parts) else found

    @cached_property
    def identity(self) -> bytes:
        """The same bytes for the same view: what files made for it are bound to."""
        return canonical_json([[None if p.columns is None else list(p.columns), p.rows] for p in self.parts])


ALL = View((VisiblePart(),))


def any_of(conditions: Sequence[str]) -> str:
    """The condition that one of several is true, in SQL."""
    return " OR ".join(f"({one})" for one in conditions) or "FALSE"


class CallerAccess:
    """The reach of one caller, by the grants that they have now."""

    def __init__(self, grants: Iterable[Grant] | None, attributes: Mapping[str, str] | None = None) -> None:
        """
        Args:
            grants: all that they have; None for somebody from whom nothing is hidden.
            attributes: of the caller, for conditions on rows.
        """
        self._grants = None if grants is None else tuple(grants)
        self._attributes = dict(attributes or {})

    def view(self, table: SharedTable) -> View | None:
        """Return what they may see of a table, None if nothing."""
        if self._grants is None:
            return ALL
        parts = {self._part(grant): None for grant in self.grants_on(table)}
        if not parts:
            return None
        return ALL if any(part.is_all for part in parts) else View(tuple(sorted(parts, key=repr)))

    def sees(self, table: SharedTable) -> bool:
        """Return whether they may see something of a table; quicker than `view`, for many of them."""
        return self._grants is None or any(_covers(grant.path, table.path) for grant in self._grants)

    def grants_on(self, table: SharedTable) -> list[Grant]:
        """Return the grants that are about a table; none for somebody who needs none."""
        return [grant for grant in self._grants or () if _covers(grant.path, table.path)]

    @property
    def paths(self) -> list[SharePath] | None:
        """The shares, schemas and tables that the grants are on; None for all there are."""
        return None if self._grants is None else list({str(grant.path): grant.path for grant in self._grants}.values())

    @property
    def few_paths(self) -> list[SharePath] | None:
        """The same where they are few enough for a condition of the database; None to look through all tables."""
        paths = self.paths
        return paths if paths is not None and len(paths) <= _MAX_PATHS else None

    def sees_share(self, name: str) -> bool:
        """Return whether a share is there for them: whether they have a grant on it, or on anything in it."""
        return self._grants is None or any(folded(grant.path.share) == folded(name) for grant in self._grants)

    def sees_schema(self, share: str, name: str) -> bool:
        """Return whether a schema of a share is there for them."""
        if self._grants is None:
            return True
        return any(
            folded(grant.path.share) == folded(share)
            and (grant.path.schema is None or folded(grant.path.schema) == folded(name))
            for grant in self._grants
        )

    def _part(self, grant: Grant) -> VisiblePart:
        rows = None if grant.rows is None else condition_sql(grant.rows, self._attributes)
        return VisiblePart(grant.columns, rows)


def _covers(granted: SharePath, path: SharePath) -> bool:
    """Return whether what is granted is a table, or something that it is in."""
    wanted = ((granted.share, path.share), (granted.schema, path.schema), (granted.table, path.table))
    return all(one is None or folded(one) == folded(other or "") for one, other in wanted)
