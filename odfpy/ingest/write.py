"""Writing of the slices of an ingest: ordered rows with offsets, operations and system time.

The slices of one ingest are written concurrently, one per thread; that does not affect their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from pathlib import Path

import pyarrow as pa

from odfpy.data.processors import processors
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.fit import fit_table
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.schemas.system_columns import system_columns_first
from odfpy.data.slices.cut import SLICE_ROWS, cut_rows
from odfpy.data.slices.row_groups import GROUP_ROWS
from odfpy.data.slices.writer import SliceInfo, SliceWriter
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.ingest.gather import combine, gather
from odfpy.values import dataclass

TIMESTAMP = pa.timestamp("ms", "UTC")


@dataclass(frozen=True, slots=True)
class SliceLayout:
    """The common layout of all slices of an ingest.

    Attributes:
        schema: all columns.
        vocab: names of the system columns.
        system_time: system time of all rows.
    """

    schema: DataSchema
    vocab: DatasetVocabulary
    system_time: Timestamp


@dataclass(frozen=True, slots=True)
class WrittenSlice:
    """A slice that is to be committed.

    Attributes:
        path: its current path.
        info: the description for its block.
    """

    path: Path
    info: SliceInfo


@dataclass(frozen=True, slots=True)
class OrderedRows:
    """Rows in the order of their offsets.

    Attributes:
        operations: int32, in that order.
        columns: event time and data columns of the rows, possibly with further rows, in any order.
        positions: positions of the rows in `columns`; None if the rows are exactly `columns`, in order.
    """

    operations: pa.Array
    columns: pa.Table
    positions: pa.Array | None

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column in the order of the offsets."""
        values = self.columns.column(name)
        return values if self.positions is None else values.take(self.positions)


def slice_files(out: Path, count: int) -> list[Path]:
    """Return the files of `count` slices: the first is `out`, the others are beside it, numbered."""
    return [out if number == 0 else out.with_name(f"{out.name}.{number}") for number in range(count)]


def write_slices(
    out: Path,
    rows: OrderedRows,
    form: SliceLayout,
    next_offset: int,
    *,
    threads: int | None = None,
    slice_rows: int = SLICE_ROWS,
) -> tuple[WrittenSlice, ...]:
    """Write rows to slices; if one cannot be written, all are removed.

    Args:
        out: path of the first slice, see `slice_files`.
        rows: rows in the types of the schema.
        form: schema, vocabulary and system time.
        next_offset: offset of the first row.
        threads: maximum number of threads; by default one per processor.
        slice_rows: maximum number of rows of a slice.
    """
    cuts = cut_rows(len(rows.operations), lambda rank: rows.operations[rank].as_py(), slice_rows)
    paths = slice_files(out, len(cuts))
    workers = threads or processors()
    with ThreadPoolExecutor(workers, thread_name_prefix="slice") as pool:
        picked = _Picker.of(rows, pool)

        def write(path: Path, cut: tuple[int, int]) -> WrittenSlice:
            parts = (picked.rows(start, stop) for start, stop in _groups(*cut))
            return WrittenSlice(path, write_slice(path, parts, form, next_offset + cut[0], threads))

        # Concurrent stages would take longer in total than their parent; a profile has those of a single slice.
        context = copy_context() if len(cuts) == 1 else Context()
        tasks = [pool.submit(context.copy().run, write, path, cut) for path, cut in zip(paths, cuts, strict=True)]
        try:
            return tuple(task.result() for task in tasks)
        except BaseException:
            # This waits for slices that are being written: a thread that continued could create its file again after
            # the removal.
            pool.shutdown(cancel_futures=True)
            for path in paths:
                path.unlink(missing_ok=True)
            raise


def write_slice(
    path: Path,
    parts: Iterator[tuple[pa.Array, pa.Table]],
    form: SliceLayout,
    first_offset: int,
    threads: int | None = None,
) -> SliceInfo:
    """Write a slice, and return its description.

    Args:
        path: file to write.
        parts: operations, and event time and data columns, in the order of their offsets.
        form: schema, vocabulary and system time.
        first_offset: offset of the first row.
        threads: number of threads for hashing; by default one per processor.
    """
    schema = system_columns_first(form.schema, form.vocab)
    wanted = to_arrow(schema)
    offset = first_offset
    with SliceWriter(path, schema, form.vocab, threads=threads) as writer:
        for operations, columns in parts:
            rows = len(operations)
            made = {
                form.vocab.offset_column: pa.arange(offset, offset + rows),
                form.vocab.operation_type_column: operations,
                form.vocab.system_time_column: pa.repeat(pa.scalar(form.system_time.millis, TIMESTAMP), rows),
            }
            data = dict(zip(columns.column_names, columns.columns, strict=True))
            writer.write(fit_table(pa.table({**made, **data}), wanted))
            offset += rows
        return writer.finish()


def _groups(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a range, each as large as a row group."""
    for at in range(start, stop, GROUP_ROWS):
        yield at, min(at + GROUP_ROWS, stop)


class _Picker:
    """Access to ranges of ordered rows, which are gathered on request."""

    def __init__(self, operations: pa.Array, columns: pa.Table, positions: pa.Array | None) -> None:
        self._operations = operations
        self._columns = columns
        self._positions = positions

    @classmethod
    def of(cls, rows: OrderedRows, pool: ThreadPoolExecutor) -> _Picker:
        """Prepare the columns for random access if the positions require it."""
        if rows.positions is None or rows.positions.equals(pa.arange(0, rows.columns.num_rows)):
            return cls(rows.operations, rows.columns, None)
        columns = list(pool.map(combine, rows.columns.columns))
        return cls(rows.operations, pa.table(columns, schema=rows.columns.schema), rows.positions)

    def rows(self, start: int, stop: int) -> tuple[pa.Array, pa.Table]:
        """Return operations and columns of a range of ranks."""
        operations = self._operations.slice(start, stop - start)
        if self._positions is None:
            return operations, self._columns.slice(start, stop - start)
        positions = self._positions.slice(start, stop - start)
        columns = [gather(column, positions) for column in self._columns.columns]
        return operations, pa.table(columns, schema=self._columns.schema)
