"""Writing of data slices, measured in the same pass (ODF specification, "Data Slice"); see `slices.slice`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfpy.data.multihash import SHA3_256, Multihash
from odfpy.data.scalars import U64
from odfpy.data.schemas.arrow import plain_schema, to_arrow
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.slices.hashing_file import HashingFile
from odfpy.data.slices.logical_hash import LogicalHasher
from odfpy.data.slices.parquet_io import UPGRADE, PathLike, lacks_code
from odfpy.data.slices.row_groups import RowGroups
from odfpy.data.slices.rules import check_slice_schema, conform
from odfpy.data.timestamp import NANOS_PER_MILLI, NANOS_PER_SECOND, NANOS_PER_UNIT, SECONDS_PER_DAY, Timestamp
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.errors import InternalError, OdfError
from odfpy.stages import stage
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class SliceInfo:
    """Description of a slice: the fields of its metadata block, and further statistics.

    Attributes:
        physical_hash: SHA3-256 of the file.
        logical_hash: logical hash of the rows.
        offset_start: offset of the first row.
        offset_end: offset of the last row, inclusive.
        size: size of the file in bytes.
        num_rows: number of rows in the file.
        min_event_time: earliest event time, None if all are null.
        max_event_time: latest event time, None if all are null.
    """

    physical_hash: Multihash
    logical_hash: Multihash
    offset_start: U64
    offset_end: U64
    size: U64
    num_rows: U64
    min_event_time: Timestamp | None
    max_event_time: Timestamp | None


def check_writable(schema: DataSchema, vocab: DatasetVocabulary) -> None:
    """Check that a schema is valid for slices, before there are any rows.

    Raises:
        SchemaError: system columns are missing, or slices do not support a type; the message names the column.
    """
    arrow = to_arrow(schema)
    check_slice_schema(arrow, vocab)
    LogicalHasher(arrow, threads=1)


class SliceWriter:
    """Writes one slice from batches that have their final columns, types and order.

    Use it as a context manager, and call `finish` after all rows are written; leaving the block without it removes the
    file.
    """

    def __init__(
        self, path: PathLike, schema: DataSchema | pa.Schema, vocab: DatasetVocabulary, *, threads: int | None = None
    ) -> None:
        """Create the file.

        Args:
            path: temporary path of the file; an existing file is overwritten.
            schema: schema of the dataset. Fields that are not optional become REQUIRED.
            vocab: names of the system columns, which must be the first four.
            threads: number of threads for hashing; by default one per processor.

        Raises:
            SchemaError: system columns are missing, or slices do not support a type.
            OdfError: the file cannot be created.
        """
        self._path = Path(path)
        self._schema = to_arrow(schema) if isinstance(schema, DataSchema) else plain_schema(schema)
        check_slice_schema(self._schema, vocab)
        self._hasher = LogicalHasher(self._schema, threads=threads)
        self._groups = RowGroups(self._schema)
        self._first_offset: int | None = None
        self._next_offset = 0
        self._event_times: list[int] = []  # minimum and maximum
        self._done = False
        with self._writing(), stage("Parquet"):
            self._sink = HashingFile(self._path)
            self._writer = _parquet_writer(self._sink, self._schema, vocab)

    @property
    def num_rows(self) -> int:
        """The number of rows written so far."""
        return 0 if self._first_offset is None else self._next_offset - self._first_offset

    def write(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Append rows, in order of offset.

        Raises:
            SchemaError: columns or types differ from the schema, or a required value is null.
            InternalError: the offsets do not continue the previous ones.
            OdfError: the file cannot be written.
        """
        for part in batch.to_batches() if isinstance(batch, pa.Table) else [batch]:
            if part.num_rows:
                rows = conform(part, self._schema)
                self._measure(rows)
                for group in self._groups.push(rows):
                    self._write_group(group)

    def finish(self) -> SliceInfo:
        """Complete the file and flush it to disk.

        Raises:
            InternalError: there are no rows; a slice has at least one.
            OdfError: the file cannot be written.
        """
        if self._first_offset is None:
            raise InternalError(f"Data file {self._path} would have no rows")
        for group in self._groups.rest():
            self._write_group(group)
        with self._writing():
            with stage("Parquet", again=True):
                self._writer.close()
            with stage("flush to disk"):
                self._sink.sync_and_close()
        with stage("logical hash", again=True):
            logical_hash = self._hasher.finish()
        times = [Timestamp(nanos) for nanos in self._event_times]
        info = SliceInfo(
            physical_hash=Multihash(SHA3_256.code, self._sink.hasher.digest()),
            logical_hash=logical_hash,
            offset_start=self._first_offset,
            offset_end=self._next_offset - 1,
            size=self._sink.size,
            num_rows=self.num_rows,
            min_event_time=min(times, default=None),
            max_event_time=max(times, default=None),
        )
        self._done = True
        return info

    def abort(self) -> None:
        """Stop writing and remove the file; no-op after `finish`."""
        if self._done:
            return
        self._done = True
        # The sink first: Arrow's writer writes a footer when it is closed, for which a full disk has no space.
        self._sink.discard()
        with contextlib.suppress(pa.ArrowException, OSError):
            self._writer.close()
        self._path.unlink(missing_ok=True)

    def __enter__(self) -> SliceWriter:  # noqa: PYI034 - Self is newer than Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()

    def _measure(self, rows: pa.RecordBatch) -> None:
        offsets = rows.column(0).to_numpy(zero_copy_only=False)
        first, count = int(offsets[0]), len(offsets)
        expected = first if self._first_offset is None else self._next_offset
        if not np.array_equal(offsets, np.arange(expected, expected + count)):
            raise InternalError(f"Offsets of {self._path} do not count up from {expected}")
        if self._first_offset is None:
            self._first_offset = first
        self._next_offset = expected + count
        bounds = pc.min_max(rows.column(3))
        times = self._event_times + [_nanos(bounds[key]) for key in ("min", "max") if bounds[key].is_valid]
        self._event_times = [min(times), max(times)] if times else []

    def _write_group(self, group: pa.Table) -> None:
        with stage("logical hash"):
            self._hasher.update(group)  # continues in the background
        with self._writing(), stage("Parquet", again=True):
            # explicit, since pyarrow's default row group size may change between releases
            self._writer.write_table(group, row_group_size=group.num_rows)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            hint = UPGRADE if lacks_code(error) else "Check free space and permissions of the folder."
            raise OdfError(
                f"Cannot write data file {self._path}: {getattr(error, 'strerror', None) or error}", hint=hint
            ) from error


def _nanos(instant: pa.Scalar) -> int:
    """Return the nanoseconds since 1970 of a timestamp or a date."""
    value: int = instant.value
    if pa.types.is_date32(instant.type):
        return value * SECONDS_PER_DAY * NANOS_PER_SECOND
    return value * (NANOS_PER_MILLI if pa.types.is_date64(instant.type) else NANOS_PER_UNIT[instant.type.unit])


# --- The file --------------------------------------------------------------------------------------------------------


def _parquet_writer(sink: HashingFile, schema: pa.Schema, vocab: DatasetVocabulary) -> pq.ParquetWriter:
    """Return a writer with explicit values for all settings that affect the bytes: pyarrow's defaults may change.

    zstd, since slices are stored and transferred for ever and every Parquet reader supports it. Offsets ascend, so
    delta encoding makes them tiny, and a dictionary would only add bytes. Decimals are integers if they fit, and list
    items are named `item`, as in the reference implementation.
    """
    dictionary = [column for column in _leaf_paths(schema) if column != vocab.offset_column]
    return pq.ParquetWriter(
        sink,
        schema,
        version="2.6",
        data_page_version="1.0",
        compression="zstd",
        compression_level=1,
        use_dictionary=dictionary,
        column_encoding={vocab.offset_column: "DELTA_BINARY_PACKED"},
        data_page_size=1 << 20,
        dictionary_pagesize_limit=1 << 19,
        write_batch_size=1_024,
        write_statistics=True,
        store_schema=True,
        store_decimal_as_integer=True,
        use_compliant_nested_type=False,
        write_page_index=False,
        write_page_checksum=False,
    )


def _leaf_paths(schema: pa.Schema) -> list[str]:
    """Return the paths of leaf columns in Parquet's notation."""
    return [path for field in schema for path in _paths(field.type, field.name)]


def _paths(arrow: pa.DataType, path: str) -> Iterator[str]:
    if pa.types.is_struct(arrow):
        for child in arrow.fields:
            yield from _paths(child.type, f"{path}.{child.name}")
    elif pa.types.is_list(arrow) or pa.types.is_fixed_size_list(arrow):
        yield from _paths(arrow.value_type, f"{path}.list.{arrow.value_field.name}")
    else:
        yield path
