"""Access to single rows of datasets."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from odfpy.chain.slices import SliceOfBlock, overlapping, slice_paths, slices_of
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.vocabulary import OperationType
from odfpy.errors import NoDataYet

if TYPE_CHECKING:
    import pyarrow as pa

RowKey: TypeAlias = tuple[str, ...]
"""Values of the data columns of a row; equal rows have equal keys."""


@dataclass(frozen=True)
class DatasetRow:
    """A row.

    Attributes:
        offset: offset of the row.
        operation: operation type of the row.
        values: values by column, without offset and operation type.
        key: values of the data columns.
    """

    offset: int
    operation: OperationType
    values: Mapping[str, Any]
    key: RowKey


@dataclass(frozen=True)
class DatasetRows:
    """The rows of a dataset."""

    dataset: StoredDataset

    @cached_property
    def slices(self) -> list[SliceOfBlock]:
        """Slices of the dataset, oldest first."""
        return slices_of(self.dataset.chain.in_order())

    @cached_property
    def columns(self) -> list[str]:
        """Return the data columns, event time first.

        Raises:
            NoDataYet: the dataset has no schema yet.
        """
        state = self.dataset.state
        if state.schema is None:
            raise NoDataYet(f"{self.dataset.handle} has no data yet, and no schema", hint="Pull it first.")
        vocab = state.vocab
        hidden = vocab.changelog_columns
        return [field.name for field in state.schema.fields if field.name not in hidden]

    def parts(self, offsets: Sequence[int]) -> Iterator[tuple[SliceOfBlock, Path, pa.Table]]:
        """Yield rows as stored, one table for each slice, with the slice and its path.

        Args:
            offsets: offsets of the rows, ascending.
        """
        from odfpy.data.slices.slice import read_rows

        store = self.dataset.layout.data
        for item in self.slices:
            first, last = item.data.offset_interval.start, item.data.offset_interval.end
            places = [offset - first for offset in offsets[bisect_left(offsets, first) : bisect_right(offsets, last)]]
            if places:
                (path,) = slice_paths(store, [item])
                yield item, path, read_rows(path, places, vocab=self.dataset.state.vocab)

    def size_of(self, offsets: Sequence[int]) -> int:
        """Estimate the size of rows in memory, in bytes, from the footers of their slices.

        Args:
            offsets: offsets of the rows, ascending.
        """
        import pyarrow.parquet as pq

        size = 0.0
        for item in self.slices:
            first, last = item.data.offset_interval.start, item.data.offset_interval.end
            wanted = bisect_right(offsets, last) - bisect_left(offsets, first)
            if wanted:
                (path,) = slice_paths(self.dataset.layout.data, [item])
                footer = pq.read_metadata(path)
                num_bytes = sum(footer.row_group(at).total_byte_size for at in range(footer.num_row_groups))
                size += num_bytes * wanted / max(1, footer.num_rows)
        return int(size)

    def read(self, offsets: Sequence[int]) -> list[DatasetRow]:
        """Return rows by their offsets, which must be ascending."""
        return [row for _, _, part in self.parts(offsets) for row in self.of_table(part)]

    def of_table(self, table: pa.Table) -> Iterator[DatasetRow]:
        """Yield the rows of a table read from a slice."""
        vocab = self.dataset.state.vocab
        for row in table.to_pylist():
            offset, operation = row.pop(vocab.offset_column), row.pop(vocab.operation_type_column)
            key = tuple(repr(row.get(name)) for name in self.columns)
            yield DatasetRow(offset, OperationType(operation), row, key)

    def last_addition_before(self, row: DatasetRow) -> int | None:
        """Return the offset of the last earlier row that added what a row retracts; None if there is none."""
        time = row.values[self.dataset.state.vocab.event_time_column]
        for item in reversed(self.slices):
            if item.data.offset_interval.start >= row.offset:
                continue
            (path,) = slice_paths(self.dataset.layout.data, [item])
            for candidate in reversed(list(self.of_table(self._of_times(path, [time])))):
                if candidate.offset < row.offset and candidate.key == row.key and candidate.operation.weight > 0:
                    return candidate.offset
        return None

    def equal_before(self, row: DatasetRow, first: int) -> Iterator[DatasetRow]:
        """Yield earlier rows equal to a row, from an offset on."""
        time = row.values[self.dataset.state.vocab.event_time_column]
        for item in overlapping(self.slices, first, row.offset):
            (path,) = slice_paths(self.dataset.layout.data, [item])
            for candidate in self.of_table(self._of_times(path, [time])):
                if first <= candidate.offset < row.offset and candidate.key == row.key:
                    yield candidate

    def equal_to_any(self, rows: Sequence[DatasetRow]) -> Mapping[RowKey, Sequence[int]]:
        """Return the offsets of all rows equal to any of the given rows, by key, from the first given row on."""
        keys, times = (
            {row.key for row in rows},
            {row.values[self.dataset.state.vocab.event_time_column] for row in rows},
        )
        first, last = min(row.offset for row in rows), self.dataset.state.num_records
        offsets_by_key: defaultdict[RowKey, list[int]] = defaultdict(list)
        for item in overlapping(self.slices, first, last):
            (path,) = slice_paths(self.dataset.layout.data, [item])
            for row in self.of_table(self._of_times(path, times)):
                if row.key in keys:
                    offsets_by_key[row.key].append(row.offset)
        return offsets_by_key

    def retractions_of(self, keys: Collection[RowKey], first: int, last: int) -> list[int]:
        """Return the offsets of rows in a range that retract rows with one of the keys.

        Args:
            keys: keys of the retracted rows.
            first: first offset of the range.
            last: last offset of the range.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        from odfpy.data.slices.slice import read_rows, read_slice

        vocab, retractions = self.dataset.state.vocab, []
        less = pa.array([int(kind) for kind in OperationType if kind.weight < 0], pa.int32())
        for item in overlapping(self.slices, first, last):
            (path,) = slice_paths(self.dataset.layout.data, [item])
            kinds = read_slice(path, [vocab.operation_type_column], vocab=vocab).column(0).combine_chunks()
            places = pc.indices_nonzero(pc.is_in(kinds, value_set=less)).to_pylist()
            rows = self.of_table(read_rows(path, places, vocab=vocab)) if places else ()
            retractions += [row.offset for row in rows if row.key in keys and first <= row.offset <= last]
        return retractions

    def _of_times(self, path: Path, times: Collection[Any]) -> pa.Table:
        """Return the rows of a slice with one of the event times."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from odfpy.data.slices.slice import read_rows, read_slice

        vocab = self.dataset.state.vocab
        times_of_rows = read_slice(path, [vocab.event_time_column], vocab=vocab).column(0).combine_chunks()
        places = pc.indices_nonzero(
            pc.is_in(times_of_rows, value_set=pa.array(list(times), times_of_rows.type))
        ).to_pylist()
        return read_rows(path, places, vocab=vocab)
