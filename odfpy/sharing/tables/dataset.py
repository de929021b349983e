"""A dataset as a shared table: its changelog, or its current state (ODF specification, "Projection").

Version 0 is before any data; version N is after the N-th block that adds rows. Files are slices of the dataset as they
are. In the current state, rows that others have superseded are left out: a slice all of whose rows count is served as
it is, and of the others only those that changed since the last version are made again.
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import SetDataSchema, SetInfo
from odfpy.chain.slices import SliceOfBlock, slice_paths, slices_of
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.timestamp import Timestamp
from odfpy.files import make_folder, replace_file
from odfpy.query.dialects import dialect_named
from odfpy.query.query import Query
from odfpy.query.service import QueryService
from odfpy.sharing.model import Shown
from odfpy.sharing.tables.contract import ChangeKind, TableChange, TableFile, TableVersion
from odfpy.sharing.tables.difference import with_live
from odfpy.sharing.tables.numbered import NumberedTable

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa


class DatasetTable(NumberedTable):
    """A dataset as it is at its head, a branch or a tag."""

    def __init__(self, dataset: StoredDataset, shown: Shown, queries: QueryService) -> None:
        """
        Args:
            dataset: the dataset.
            shown: its current state, or its changelog.
            queries: answers which rows of it are current.
        """
        self._dataset = dataset
        self._shown = shown
        self._queries = queries

    # --- Versions ---

    @property
    def _numbers(self) -> range:
        return range(len(self._slices) + 1)

    def _time(self, number: int) -> Timestamp:
        """The time as clients are told it: what they ask for at that time is the version that they were told of."""
        block = self._slices[number - 1].block if number else self._chain[0]
        return block.block.system_time.floor_millis()

    def _block(self, number: int) -> str | None:
        return str(self._slices[number - 1].block.hash) if number else None

    # --- Columns ---

    def schema(self, version: TableVersion) -> pa.Schema:
        import pyarrow as pa

        if not self._schemas:
            return pa.schema([])
        block = self._schemas[max(0, self._schema_place(version.number))]
        event = block.block.event
        if isinstance(event, SetDataSchema) and event.schema is not None:
            return to_arrow(event.schema)
        found = self._dataset.at(block.hash).state.schema  # as older writers recorded it
        return pa.schema([]) if found is None else to_arrow(found)

    def _schema_place(self, number: int) -> int:
        """The schema in force at a version, as a place in `_schemas`; -1 where there was none yet."""
        if not number:
            return -1
        added = self._slices[number - 1].block.block.sequence_number
        return bisect.bisect_left(self._schemas, added, key=lambda block: block.block.sequence_number) - 1

    @property
    def telling_columns(self) -> tuple[str, ...]:
        vocabulary = self._dataset.state.vocab
        return vocabulary.offset_column, vocabulary.operation_type_column

    @property
    def description(self) -> str:
        infos = (block.block.event for block in reversed(self._chain) if isinstance(block.block.event, SetInfo))
        return next((event.description or "" for event in infos), "")

    # --- Rows ---

    def files(self, version: TableVersion) -> Iterator[TableFile]:
        numbers = range(1, version.number + 1)
        if self._shown is Shown.CHANGELOG or not numbers:
            yield from map(self._file, numbers)
            return
        live = self._live(self._slices[version.number - 1])
        for number in numbers:
            offsets = self._slices[number - 1].data.offset_interval
            rows = live[offsets.start : offsets.end + 1]
            if rows.all():
                yield self._file(number)
            elif rows.any():
                yield with_live(self._file(number), rows)

    def changes(self, first: TableVersion, last: TableVersion) -> Iterator[TableChange]:
        operations = self._dataset.state.vocab.operation_type_column
        for number in range(max(1, first.number), last.number + 1):
            if self._shown is Shown.CHANGELOG:
                yield TableChange(ChangeKind.ADDED, self._file(number))
            else:
                yield TableChange(ChangeKind.BY_ROW, self._file(number), operations)

    def _file(self, number: int) -> TableFile:
        """The slice that a version has added."""
        added = self._slices[number - 1]
        (path,) = slice_paths(self._dataset.layout.data, [added])
        rows, size = added.data.offset_interval, added.data.size
        name = str(added.data.physical_hash)
        return TableFile(name, size, self.version(number), path, num_rows=rows.end - rows.start + 1)

    # --- What is current ---

    def _live(self, last: SliceOfBlock) -> npt.NDArray[np.bool_]:
        """Of each row up to a slice, whether it is one of the current state then. Kept: it never changes."""
        count = last.data.offset_interval.end + 1
        path = self._kept / f"{last.block.hash}.live"
        try:
            kept = np.frombuffer(path.read_bytes(), np.uint8)
            os.utime(path)  # `odf gc` removes what nobody uses
        except OSError:
            kept = np.packbits(self._found_live(last, count))
            make_folder(self._kept)
            replace_file(path, kept.tobytes())
        return np.unpackbits(kept, count=count).view(np.bool_)

    def _found_live(self, last: SliceOfBlock, count: int) -> npt.NDArray[np.bool_]:
        live = np.zeros(count, np.bool_)
        dialect = dialect_named("datafusion")
        offset = dialect.quoted(self._dataset.state.vocab.offset_column)
        at = f"odf_as_at('{self._dataset.handle.id}', '{last.block.hash}')"
        with self._queries.run(Query(f"SELECT {offset} FROM {at}", dialect.name)) as answer:  # noqa: S608
            for batch in answer:
                live[batch.column(0).to_numpy(zero_copy_only=False)] = True
        return live

    @property
    def _kept(self) -> Path:
        return self._dataset.cache / "live"

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
