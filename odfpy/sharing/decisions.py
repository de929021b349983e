"""Decisions on read permissions: the single implementation for Delta Sharing, REST, Flight SQL and transfers.

A grant is a pair of columns and rows. Several grants are a union of cells: a cell is visible if one grant includes both
its row and its column. So the columns of one grant are never visible in the rows of another.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from odfpy.codec.canonical_json import canonical_json
from odfpy.sharing.conditions import columns_of, condition_sql
from odfpy.sharing.model import Grant, SharedTable
from odfpy.sharing.names import SharePath, folded

_MAX_PATHS: Final = 200
"""Maximum number of grants that are looked up by path; beyond that, scanning all tables is faster."""


@dataclass(frozen=True, slots=True)
class VisiblePart:
    """Columns and rows that may be read together.

    Attributes:
        columns: names of columns, None for all.
        rows: condition in DuckDB's SQL, for this recipient; None for all rows.
    """

    columns: tuple[str, ...] | None = None
    rows: str | None = None

    @property
    def is_all(self) -> bool:
        """True if nothing is hidden."""
        return self.columns is None and self.rows is None

    @property
    def filter_columns(self) -> frozenset[str]:
        """The case-folded names of the columns that its condition uses."""
        return frozenset() if self.rows is None else frozenset(map(folded, columns_of(self.rows)))

    def fits(self, names: Collection[str]) -> bool:
        """Return whether it shows anything of a table with the given columns, by their case-folded names."""
        has_column = self.columns is None or any(folded(name) in names for name in self.columns)
        return has_column and self.filter_columns.issubset(names)


@dataclass(frozen=True)
class View:
    """The cells of a table that a principal may see: the union of its parts.

    Attributes:
        parts: at least one part.
    """

    parts: tuple[VisiblePart, ...]

    @cached_property
    def is_all(self) -> bool:
        """True if nothing is hidden."""
        return any(part.is_all for part in self.parts)

    def fitted(self, names: Sequence[str]) -> View | None:
        """Return the view of a table, None if it shows nothing there.

        A part shows nothing of a table that has none of its columns, or that lacks a column of its condition.

        Args:
            names: all columns of the table.
        """
        folded_names = {folded(name) for name in names}
        parts = tuple(part for part in self.parts if part.fits(folded_names))
        return View(parts) if parts else None

    @property
    def has_all_rows(self) -> bool:
        """True if every row has at least one visible column."""
        return self.condition is None

    def columns(self, names: Sequence[str]) -> list[str]:
        """Return the visible columns of a table, in its order.

        Args:
            names: all columns of the table.
        """
        if any(part.columns is None for part in self.parts):
            return list(names)
        shown = {folded(name) for part in self.parts for name in part.columns or ()}
        return [name for name in names if folded(name) in shown]

    @cached_property
    def filter_columns(self) -> frozenset[str]:
        """The case-folded names of the columns that conditions use."""
        return frozenset[str]().union(*(part.filter_columns for part in self.parts))

    def names(self, column: str) -> bool:
        """Return whether a grant names a column explicitly."""
        return any(folded(column) == folded(name) for part in self.parts for name in part.columns or ())

    @cached_property
    def condition(self) -> str | None:
        """The condition for visible rows in DuckDB's SQL; None for all."""
        if any(part.rows is None for part in self.parts):
            return None
        return any_of([part.rows for part in self.parts if part.rows is not None])

    def conditions_of(self, column: str) -> list[str] | None:
        """Return conditions, one of which must be true for a column to be visible; None if all visible rows show it."""
        found: list[str] = []
        for part in self.parts:
            if part.columns is None or folded(column) in map(folded, part.columns):
                if part.rows is None:
                    return None
                found.append(part.rows)
        return None if len(found) == len(self.parts) else found

    @cached_property
    def identity(self) -> bytes:
        """Bytes that identify the view: files produced for it are bound to them."""
        return canonical_json([[None if p.columns is None else list(p.columns), p.rows] for p in self.parts])


ALL = View((VisiblePart(),))


def any_of(conditions: Sequence[str]) -> str:
    """Return the disjunction of conditions, in SQL."""
    return " OR ".join(f"({condition})" for condition in conditions) or "FALSE"


class CallerAccess:
    """The permissions of one caller, according to current grants."""

    def __init__(self, grants: Iterable[Grant] | None, attributes: Mapping[str, str] | None = None) -> None:
        """
        Args:
            grants: all of the caller's grants; None if nothing is hidden from them.
            attributes: attributes of the caller, for row conditions.
        """
        self._grants = None if grants is None else tuple(grants)
        self._attributes = dict(attributes or {})

    def view(self, table: SharedTable) -> View | None:
        """Return the part of a table that the caller may see, None if nothing."""
        if self._grants is None:
            return ALL
        parts = {self._part(grant): None for grant in self.grants_on(table)}
        if not parts:
            return None
        return ALL if any(part.is_all for part in parts) else View(tuple(sorted(parts, key=repr)))

    def sees(self, table: SharedTable) -> bool:
        """Return whether the caller may see any part of a table; faster than `view`, for many tables."""
        return self._grants is None or any(_covers(grant.path, table.path) for grant in self._grants)

    def grants_on(self, table: SharedTable) -> list[Grant]:
        """Return the grants on a table; none if the caller needs none."""
        return [grant for grant in self._grants or () if _covers(grant.path, table.path)]

    @property
    def paths(self) -> list[SharePath] | None:
        """The shares, schemas and tables of the grants; None for all that exist."""
        return None if self._grants is None else list({str(grant.path): grant.path for grant in self._grants}.values())

    @property
    def few_paths(self) -> list[SharePath] | None:
        """`paths` if they are few enough for an SQL condition; None if all tables have to be checked."""
        paths = self.paths
        return paths if paths is not None and len(paths) <= _MAX_PATHS else None

    def sees_share(self, name: str) -> bool:
        """Return whether a share is visible: whether there is a grant on it, or on anything in it."""
        return self._grants is None or any(folded(grant.path.share) == folded(name) for grant in self._grants)

    def sees_schema(self, share: str, name: str) -> bool:
        """Return whether a schema of a share is visible."""
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
    """Return whether the path of a grant is that of a table, or of a share or schema that contains it."""
    wanted = ((granted.share, path.share), (granted.schema, path.schema), (granted.table, path.table))
    return all(one is None or folded(one) == folded(other or "") for one, other in wanted)
