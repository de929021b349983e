"""Data slices: one Parquet file for each block that carries data (ODF specification, "Data Slice").

This module reads slices of any writer in a uniform form: plain layouts, offsets as int64, operation types as int32.
`odfpy.data.slices.writer` writes them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.data.schemas.arrow import plain_array, plain_schema
from odfpy.data.slices.bounded_batches import bounded_batches
from odfpy.data.slices.parquet_io import PathLike, open_parquet, overall_extremes, reading
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, DatasetVocabulary
from odfpy.errors import IntegrityError, SchemaError, did_you_mean
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class SliceStats:
    """Statistics of a slice, from its footer.

    Attributes:
        num_rows: number of rows in the file.
        offset_start: minimum offset, None if there are no rows.
        offset_end: maximum offset, inclusive.
    """

    num_rows: int
    offset_start: int | None
    offset_end: int | None


def read_slice(
    path: PathLike, columns: Sequence[str] | None = None, *, vocab: DatasetVocabulary = DEFAULT_VOCABULARY
) -> pa.Table:
    """Return all rows of a slice, in memory.

    Args:
        path: the file.
        columns: top-level columns to read, in this order; all by default.
        vocab: names of the system columns.

    Raises:
        IntegrityError: the file is damaged.
        ObjectNotFound: there is no such file.
        SchemaError: a column does not exist.
    """
    with open_parquet(path) as file:
        schema = _selected(path, file.schema_arrow, columns)
        table = file.read(columns=None if columns is None else list(columns))
        names = table.schema.names
        chunked = [_normal_column(table.column(names.index(f.name)), f.type) for f in _normal(schema, vocab)]
        return pa.table(chunked, schema=_normal(schema, vocab))


def read_rows(path: PathLike, places: Sequence[int], *, vocab: DatasetVocabulary = DEFAULT_VOCABULARY) -> pa.Table:
    """Return rows of a slice by position; only row groups that contain them are read.

    Args:
        path: the file.
        places: positions of the rows, from 0, ascending.
        vocab: names of the system columns.

    Raises:
        IntegrityError, ObjectNotFound, SchemaError: as `read_slice`.
    """
    parts, first = [], 0
    with open_parquet(path) as file:
        schema = _normal(_selected(path, file.schema_arrow, None), vocab)
        for group in range(file.num_row_groups):
            end = first + file.metadata.row_group(group).num_rows
            inside = [place - first for place in places if first <= place < end]
            if inside:
                parts.append(file.read_row_group(group).take(pa.array(inside, pa.int64())))
            first = end
    columns = [[_normal_column(part.column(at), field.type) for part in parts] for at, field in enumerate(schema)]
    arrays = [
        pa.chunked_array([c for part in found for c in part.chunks], f.type)
        for found, f in zip(columns, schema, strict=True)
    ]
    return pa.table(arrays, schema=schema)


def iter_slice(
    path: PathLike,
    batch_size: int = 65_536,
    columns: Sequence[str] | None = None,
    *,
    vocab: DatasetVocabulary = DEFAULT_VOCABULARY,
    first: int = 0,
    last: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a slice in batches that are limited in rows and bytes.

    Args:
        path: the file; errors are those of `read_slice`.
        batch_size: maximum number of rows of a batch.
        columns: top-level columns to read, in this order; all by default.
        vocab: names of the system columns.
        first: position of the first row, from 0.
        last: position of the last row, inclusive. Only row groups that overlap the range are read.
    """
    with open_parquet(path) as file:
        schema = _normal(_selected(path, file.schema_arrow, columns), vocab)
        metadata = file.metadata
    groups, at = _row_groups(metadata, first, last)
    with reading(path):
        for batch in bounded_batches(path, metadata, batch_size, groups=groups, columns=columns):
            names = batch.schema.names
            arrays = [_normal_array(batch.column(names.index(field.name)), field.type) for field in schema]
            rows = pa.record_batch(arrays, schema=schema)
            begin = max(0, first - at)
            end = batch.num_rows if last is None else min(batch.num_rows, last + 1 - at)
            at += batch.num_rows
            if begin < end:
                yield rows.slice(begin, end - begin)


def _row_groups(metadata: pq.FileMetaData, first: int, last: int | None) -> tuple[list[int], int]:
    """Return the row groups with rows from `first` to `last`, and the position of their first row."""
    found: list[int] = []
    begin = at = 0
    for group in range(metadata.num_row_groups):
        end = at + metadata.row_group(group).num_rows
        if end > first and (last is None or at <= last):
            begin = begin if found else at
            found.append(group)
        at = end
    return found, begin


def slice_schema(path: PathLike, *, vocab: DatasetVocabulary = DEFAULT_VOCABULARY) -> pa.Schema:
    """Return the schema of the rows that `read_slice` returns; errors as there."""
    with open_parquet(path) as file:
        return _normal(file.schema_arrow, vocab)


def slice_stats(path: PathLike, *, vocab: DatasetVocabulary = DEFAULT_VOCABULARY) -> SliceStats:
    """Return the number of rows and range of offsets, from the footer if it has these statistics.

    Raises:
        IntegrityError: the file is damaged.
        ObjectNotFound: there is no such file.
        SchemaError: the file has no offset column.
    """
    with open_parquet(path) as file:
        metadata = file.metadata
        _selected(path, file.schema_arrow, [vocab.offset_column])
        if metadata.num_rows == 0:
            return SliceStats(0, None, None)
        leaf = metadata.schema.names.index(vocab.offset_column)
        known = overall_extremes(metadata, leaf)
        if known is not None:
            return SliceStats(metadata.num_rows, *known)
    import pyarrow.compute as pc

    bounds = pc.min_max(read_slice(path, [vocab.offset_column], vocab=vocab).column(0)).as_py()
    return SliceStats(metadata.num_rows, bounds["min"], bounds["max"])


def _selected(path: PathLike, schema: pa.Schema, columns: Sequence[str] | None) -> pa.Schema:
    names = schema.names
    if len(set(names)) < len(names):
        raise IntegrityError(f"Data file {os.fspath(path)} has two columns of the same name: {names}")
    if columns is None:
        return schema
    for column in columns:
        if column not in names:
            raise SchemaError(
                f"Data file {os.fspath(path)} has no column {column!r}",
                hint=did_you_mean(column, names, otherwise=f"Its columns are {', '.join(names)}."),
            )
    return pa.schema([schema.field(column) for column in columns])


def _normal(schema: pa.Schema, vocab: DatasetVocabulary) -> pa.Schema:
    wanted = {vocab.offset_column: pa.int64(), vocab.operation_type_column: pa.int32()}
    return pa.schema([field.with_type(wanted.get(field.name, field.type)) for field in plain_schema(schema)])


def _normal_column(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([_normal_array(chunk, wanted) for chunk in column.chunks], wanted)


def _normal_array(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    plain = plain_array(array)
    return plain if plain.type.equals(wanted) else plain.cast(wanted)
