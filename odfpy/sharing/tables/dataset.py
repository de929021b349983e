"""A dataset as a shared table: its changelog, or its current state (ODF specification, "Projection").

Version 0 is before any data; version N is after the N-th block that adds rows. Files are slices of the dataset as they
are. In the current state, rows that others have superseded are left out: a slice all of whose rows count is served as
it is, and of the others only those that changed since the last version are made again.
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import DataSlice, SetDataSchema, SetInfo
from odfpy.chain.state import new_data_of
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.timestamp import Timestamp
from odfpy.errors import ObjectNotFound
from odfpy.files import make_folder, replace_file
from odfpy.query.query import Query
from odfpy.query.service import QueryService
from odfpy.sharing.model import Shown
from odfpy.sharing.tables.contract import (
    ChangeKind,
    NoSuchVersion,
    ReadableTable,
    TableChange,
    TableFile,
    TableVersion,
)

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

_NANOS_PER_MILLISECOND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class _DataBlock:
    """A block that adds rows, with the schema in force."""

    version: TableVersion
    hash: Multihash
    data: DataSlice
    schema_block: HashedBlock | None


class DatasetTable(ReadableTable):
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
    def latest(self) -> TableVersion:
        return self._versions[-1]

    def version(self, number: int) -> TableVersion:
        if not 0 <= number < len(self._versions):
            raise NoSuchVersion(
                f"The table has no version {number}", hint=f"Its versions are 0 to {len(self._versions) - 1}."
            )
        return self._versions[number]

    def as_of(self, time: Timestamp) -> TableVersion:
        place = bisect.bisect_right(self._versions, time, key=lambda version: version.time)
        if not place:
            raise NoSuchVersion(f"There was no such table yet at {time}", hint=f"It began at {self._versions[0].time}.")
        return self._versions[place - 1]

    def first_from(self, time: Timestamp) -> TableVersion:
        place = bisect.bisect_left(self._versions, time, key=lambda version: version.time)
        if place == len(self._versions):
            raise NoSuchVersion(f"There is no version from {time} on", hint=f"The newest is of {self.latest.time}.")
        return self._versions[place]

    # --- Columns ---

    def schema(self, version: TableVersion) -> pa.Schema:
        import pyarrow as pa

        block = self._blocks[version.number - 1].schema_block if version.number else self._first_schema
        if block is None:
            return pa.schema([])
        event = block.block.event
        if isinstance(event, SetDataSchema) and event.schema is not None:
            return to_arrow(event.schema)
        found = self._dataset.at(block.hash).state.schema  # as older writers recorded it
        return pa.schema([]) if found is None else to_arrow(found)

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
        blocks = self._blocks[: version.number]
        if self._shown is Shown.CHANGELOG or not blocks:
            yield from map(self._file, blocks)
            return
        live = self._live(blocks[-1])
        for block in blocks:
            offsets = block.data.offset_interval
            rows = live[offsets.start : offsets.end + 1]
            if rows.all():
                yield self._file(block)
            elif rows.any():
                yield self._file(block, rows)

    def changes(self, first: TableVersion, last: TableVersion) -> Iterator[TableChange]:
        operations = self._dataset.state.vocab.operation_type_column
        for block in self._blocks[max(0, first.number - 1) : last.number]:
            if self._shown is Shown.CHANGELOG:
                yield TableChange(ChangeKind.ADDED, self._file(block))
            else:
                yield TableChange(ChangeKind.BY_ROW, self._file(block), operations)

    def _file(self, block: _DataBlock, live: npt.NDArray[np.bool_] | None = None) -> TableFile:
        name = block.data.physical_hash
        path = self._dataset.layout.data.local_path(name)
        if path is None or not path.is_file():
            raise ObjectNotFound(
                f"Missing data file {name} of block {block.hash}", hint="`odf verify --repair` fetches it again."
            )
        identity = str(name)
        if live is not None:
            identity += f":{Multihash.of(np.packbits(live).tobytes())}"
        rows = block.data.offset_interval
        return TableFile(
            identity,
            block.data.size,
            block.version,
            path,
            num_rows=rows.end - rows.start + 1,
            live=None if live is None else partial(_given, live),
        )

    # --- What is current ---

    def _live(self, block: _DataBlock) -> npt.NDArray[np.bool_]:
        """Of each row up to a block, whether it is one of the current state then. Kept: it never changes."""
        count = block.data.offset_interval.end + 1
        path = self._kept / f"{block.hash}.live"
        try:
            kept = np.frombuffer(path.read_bytes(), np.uint8)
            os.utime(path)  # `odf gc` removes what nobody uses
        except OSError:
            kept = np.packbits(self._found_live(block, count))
            make_folder(self._kept)
            replace_file(path, kept.tobytes())
        return np.unpackbits(kept, count=count).view(np.bool_)

    def _found_live(self, block: _DataBlock, count: int) -> npt.NDArray[np.bool_]:
        live = np.zeros(count, np.bool_)
        handle, offset = self._dataset.handle, self._dataset.state.vocab.offset_column
        quoted = offset.replace('"', '""')
        query = Query(
            f"SELECT \"{quoted}\" FROM odf_as_at('{handle.id}', '{block.hash}')",  # noqa: S608
            "datafusion",
        )
        with self._queries.run(query) as answer:
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
    def _first_schema(self) -> HashedBlock | None:
        return next((block for block in self._chain if isinstance(block.block.event, SetDataSchema)), None)

    @cached_property
    def _blocks(self) -> Sequence[_DataBlock]:
        found: list[_DataBlock] = []
        schema = None
        for block in self._chain:
            event = block.block.event
            if isinstance(event, SetDataSchema):
                schema = block
            data = new_data_of(event)
            if data is not None:
                version = TableVersion(len(found) + 1, _in_millis(block.block.system_time), str(block.hash))
                found.append(_DataBlock(version, block.hash, data, schema))
        return found

    @cached_property
    def _versions(self) -> Sequence[TableVersion]:
        began = _in_millis(self._chain[0].block.system_time)
        return [TableVersion(0, began), *(block.version for block in self._blocks)]


def _in_millis(time: Timestamp) -> Timestamp:
    """The instant as clients are told it: what they ask for at that time is the version that they were told of."""
    return Timestamp(time.nanos - time.nanos % _NANOS_PER_MILLISECOND)


def _given(live: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    return live
