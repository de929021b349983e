"""A table as seen by a caller who may only see some of its rows: its versions are those that change visible rows.

Otherwise the number of versions, and their times, would reveal hidden rows.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from odfpy.data.timestamp import Timestamp
from odfpy.sharing.tables.contract import ReadableTable, TableChange, TableFile, TableVersion
from odfpy.sharing.tables.numbered import NumberedTable

if TYPE_CHECKING:
    import pyarrow as pa


class VisibleTable(NumberedTable):
    """A shared table restricted to the rows that a caller may see; only versions that change such rows are counted.

    A block hash covers all rows, so these versions have none.
    """

    def __init__(self, table: ReadableTable, shows: Callable[[TableFile], bool]) -> None:
        """
        Args:
            table: the complete table.
            shows: returns whether any row of a file is visible.
        """
        self._table = table
        self._shows = shows

    @property
    def base(self) -> int:
        return self._table.base

    @property
    def _numbers(self) -> range:
        return range(self.base, self.base + len(self._places))

    def _time(self, number: int) -> Timestamp:
        return self._table.version(self._places[number - self.base]).time

    def schema(self, version: TableVersion) -> pa.Schema:
        return self._table.schema(self._complete_version(version))

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return self._table.partition_columns

    @property
    def row_dependent_columns(self) -> tuple[str, ...]:
        return self._table.row_dependent_columns

    @property
    def description(self) -> str:
        return self._table.description

    def files(self, version: TableVersion) -> Iterator[TableFile]:
        for file in self._table.files(self._complete_version(version)):
            yield replace(file, version=self._visible_version(file.version))

    def changes(self, first: TableVersion, last: TableVersion) -> Iterator[TableChange]:
        visible = set(self._places[first.number - self.base : last.number - self.base + 1])
        for change in self._table.changes(self._complete_version(first), self._complete_version(last)):
            if change.file.version.number in visible:
                yield replace(change, file=replace(change.file, version=self._visible_version(change.file.version)))

    # --- Numbers ---

    @cached_property
    def _places(self) -> Sequence[int]:
        """The number in the complete table of each visible version."""
        table = self._table
        if table.latest.number == table.base:
            return [table.base]
        changes = table.changes(table.version(table.base + 1), table.latest)
        return [table.base, *sorted({change.file.version.number for change in changes if self._shows(change.file)})]

    def _complete_version(self, version: TableVersion) -> TableVersion:
        return self._table.version(self._places[version.number - self.base])

    def _visible_version(self, version: TableVersion) -> TableVersion:
        """Return the first visible version that includes a version of the complete table."""
        place = min(bisect.bisect_left(self._places, version.number), len(self._places) - 1)
        return self.version(self.base + place)
