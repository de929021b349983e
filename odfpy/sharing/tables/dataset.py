"""A dataset as a shared table: its changelog, or its current state (ODF specification, "Projection").

Version 0 is before any data; version N is after the N-th block that adds rows. (In a history that replaces another
one, numbers start higher: `odfpy.sharing.tables.numbering`.) Files are unchanged slices of the dataset. In the current
state, superseded rows are removed: a slice whose rows are all live is served unchanged, and other slices are only
produced anew if they changed since the last version.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import SetDataSchema, SetInfo
from odfpy.chain.slices import SliceOfBlock, slice_paths, slices_of
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.timestamp import Timestamp
from odfpy.query.service import QueryService
from odfpy.sharing.model import SharedView
from odfpy.sharing.tables.contract import ChangeKind, TableChange, TableFile, TableVersion
from odfpy.sharing.tables.difference import with_live
from odfpy.sharing.tables.live_rows import LiveRows
from odfpy.sharing.tables.numbered import NumberedTable

if TYPE_CHECKING:
    import pyarrow as pa


class DatasetTable(NumberedTable):
    """A dataset as a shared table, at its head, a branch or a tag."""

    def __init__(self, dataset: StoredDataset, shown: SharedView, queries: QueryService, base: int = 0) -> None:
        """
        Args:
            dataset: the dataset.
            shown: whether to show its current state, or its changelog.
            queries: query service, which determines the live rows.
            base: number of the version before any data.
        """
        self._dataset = dataset
        self._shown = shown
        self._queries = queries
        self._base = base

    # --- Versions ---

    @property
    def base(self) -> int:
        return self._base

    @property
    def _numbers(self) -> range:
        return range(self._base, self._base + len(self._slices) + 1)

    def _time(self, number: int) -> Timestamp:
        """Return the time of a version for clients: a request for this time returns the same version."""
        block = self._added(number).block if number > self._base else self._chain[0]
        return block.block.system_time.floor_millis()

    def _block(self, number: int) -> str | None:
        return str(self._added(number).block.hash) if number > self._base else None

    def _added(self, number: int) -> SliceOfBlock:
        """Return the slice that a version has added."""
        return self._slices[number - self._base - 1]

    # --- Columns ---

    def schema(self, version: TableVersion) -> pa.Schema:
        import pyarrow as pa

        if not self._schemas:
            return pa.schema([])
        block = self._schemas[max(0, self._schema_place(version.number))]
        event = block.block.event
        if isinstance(event, SetDataSchema) and event.schema is not None:
            return to_arrow(event.schema)
        found = self._dataset.at(block.hash).state.schema  # a schema in the format of older writers
        return pa.schema([]) if found is None else to_arrow(found)

    def _schema_place(self, number: int) -> int:
        """Return the index of a version's schema in `_schemas`; -1 if there was none yet."""
        if number == self._base:
            return -1
        added = self._added(number).block.block.sequence_number
        return bisect.bisect_left(self._schemas, added, key=lambda block: block.block.sequence_number) - 1

    @property
    def row_dependent_columns(self) -> tuple[str, ...]:
        vocabulary = self._dataset.state.vocab
        return vocabulary.offset_column, vocabulary.operation_type_column

    @property
    def may_have_deleted_rows(self) -> bool:
        return self._shown is SharedView.CURRENT

    @property
    def description(self) -> str:
        infos = (block.block.event for block in reversed(self._chain) if isinstance(block.block.event, SetInfo))
        return next((event.description or "" for event in infos), "")

    # --- Rows ---

    def files(self, version: TableVersion) -> Iterator[TableFile]:
        numbers = range(self._base + 1, version.number + 1)
        if self._shown is SharedView.CHANGELOG or not numbers:
            yield from map(self._file, numbers)
            return
        live = self._live.at(version.number - self._base)
        for number in numbers:
            offsets = self._added(number).data.offset_interval
            rows = live[offsets.start : offsets.end + 1]
            if rows.all():
                yield self._file(number)
            elif rows.any():
                yield with_live(self._file(number), rows)

    def changes(self, first: TableVersion, last: TableVersion) -> Iterator[TableChange]:
        operations = self._dataset.state.vocab.operation_type_column
        for number in range(max(self._base + 1, first.number), last.number + 1):
            if self._shown is SharedView.CHANGELOG:
                yield TableChange(ChangeKind.ADDED, self._file(number))
            else:
                yield TableChange(ChangeKind.BY_ROW, self._file(number), operations)

    def _file(self, number: int) -> TableFile:
        """Return the slice that a version has added as a file."""
        added = self._added(number)
        (path,) = slice_paths(self._dataset.layout.data, [added])
        rows, size = added.data.offset_interval, added.data.size
        name = str(added.data.physical_hash)
        return TableFile(name, size, self.version(number), path, num_rows=rows.num_rows)

    # --- The chain ---

    @cached_property
    def _chain(self) -> Sequence[HashedBlock]:
        return self._dataset.chain.in_order()

    @cached_property
    def _schemas(self) -> Sequence[HashedBlock]:
        return [block for block in self._chain if isinstance(block.block.event, SetDataSchema)]

    @cached_property
    def _slices(self) -> Sequence[SliceOfBlock]:
        return slices_of(self._chain)

    @cached_property
    def _live(self) -> LiveRows:
        return LiveRows(self._dataset, self._slices, self._queries)
