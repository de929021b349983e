"""Batches of a Parquet file with a bounded size in bytes, however its writer has compressed it.

A column may store a megabyte once and refer to it in every row: its pages are small, but its values are not. So
columns with dictionaries are read as dictionaries, and split before they are expanded. Batches of other columns are
sized by the statistics in the footer.

Most writers abandon a dictionary that has grown too large: later pages contain the values themselves. Reading such
pages as a dictionary takes ten times as long as reading them directly. So the dictionary of such a column is inspected:
if it contains no long value, no batch can become too large, and the column is read without dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.data.slices.parquet_io import PathLike, reading
from odfpy.errors import IntegrityError

BATCH_BYTES: Final = 1 << 26
"""Maximum bytes of a batch when expanded, unless a single row is larger."""

_MAX_ROW_BYTES: Final = 1 << 30
_NESTED_ROWS: Final = 4096
_DICTIONARIES: Final = frozenset(("RLE_DICTIONARY", "PLAIN_DICTIONARY"))
_WORTH_A_LOOK: Final = 1 << 20
"""Minimum bytes of a column in a row group for the inspection; writers do not abandon smaller dictionaries."""
_LOOK_BYTES: Final = 1 << 16
_LOOK_ROWS: Final = 64


def bounded_batches(
    path: PathLike,
    metadata: pq.FileMetaData,
    rows: int,
    *,
    groups: Sequence[int] | None = None,
    columns: Sequence[str] | None = None,
    use_threads: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file; text and binary columns may be dictionaries.

    Args:
        path: the file.
        metadata: footer of the file.
        rows: maximum number of rows of a batch.
        groups: row groups to read; all by default.
        columns: top-level columns to read; all by default.
        use_threads: whether columns are decoded in parallel.

    Raises:
        IntegrityError: the file is damaged, or a row is too large to be read.
    """
    read = list(range(metadata.num_row_groups)) if groups is None else list(groups)
    dictionaries, fitting = reading_plan(metadata, rows, read)
    wanted = None if columns is None else list(columns)
    with reading(path):
        dictionaries = [
            column
            for column in dictionaries
            if (wanted is None or column in wanted) and not _reads_faster_without(path, metadata, column, read, fitting)
        ]
        with pq.ParquetFile(path, metadata=metadata, read_dictionary=dictionaries) as file:
            for batch in file.iter_batches(fitting, read, columns=wanted, use_threads=use_threads):
                yield from split(batch, path)


def reading_plan(metadata: pq.FileMetaData, rows: int, groups: Sequence[int]) -> tuple[list[str], int]:
    """Return the columns to read as dictionaries, and the rows per batch. Batches read so must be passed to `split`.

    Args:
        metadata: footer of the file.
        rows: maximum number of rows of a batch.
        groups: the row groups to read.
    """
    packed = _with_dictionaries(metadata, groups)
    plain = [path for path in packed if "." not in path]
    most = rows if len(plain) == len(packed) else min(rows, _NESTED_ROWS)
    return plain, min(most, _rows_that_fit(metadata, groups))


def _with_dictionaries(metadata: pq.FileMetaData, groups: Sequence[int]) -> list[str]:
    """Return the text and binary leaves with dictionaries. pyarrow cannot read nested ones as dictionaries."""
    leaves = [metadata.schema.column(at) for at in range(metadata.num_columns)]
    return [
        leaf.path
        for at, leaf in enumerate(leaves)
        if leaf.physical_type == "BYTE_ARRAY"
        and any(_DICTIONARIES.intersection(metadata.row_group(group).column(at).encodings) for group in groups)
    ]


def _reads_faster_without(
    path: PathLike, metadata: pq.FileMetaData, column: str, groups: Sequence[int], rows: int
) -> bool:
    """Return whether a text column with dictionaries can be read without them, and has pages without dictionary.

    Args:
        path: the file.
        metadata: footer of the file.
        column: path of the column, which is not nested.
        groups: the row groups to read.
        rows: maximum number of rows of a batch; as many of the longest value in a dictionary must fit.
    """
    at = next(at for at in range(metadata.num_columns) if metadata.schema.column(at).path == column)
    chunks = [(group, metadata.row_group(group).column(at)) for group in groups]
    chunks.sort(key=lambda pair: pair[1].total_uncompressed_size, reverse=True)
    if not chunks or chunks[0][1].total_uncompressed_size < _WORTH_A_LOOK:
        return False
    import pyarrow.compute as pc  # 7 MB, which tables without text can save

    with pq.ParquetFile(
        path, metadata=metadata, read_dictionary=[column], pre_buffer=False, buffer_size=_LOOK_BYTES
    ) as file:
        for place, (group, chunk) in enumerate(chunks):
            batch = next(file.iter_batches(_LOOK_ROWS, [group], columns=[column], use_threads=False), None)
            if batch is None or not pa.types.is_dictionary(batch.column(0).type):
                return False
            # The dictionary is complete as soon as a page refers to it. These rows may contain their values themselves.
            known = batch.column(0).dictionary
            if len(known) <= _LOOK_ROWS or pc.max(pc.binary_length(known)).as_py() * rows > BATCH_BYTES:
                return False
            references = chunk.num_values * len(known).bit_length() / 8
            if place == 0 and chunk.total_uncompressed_size <= 1.25 * (known.nbytes + references):
                return False  # the dictionary is not abandoned here, and hardly in smaller row groups
    return True


def _rows_that_fit(metadata: pq.FileMetaData, groups: Sequence[int]) -> int:
    """Return the number of rows that fit into a batch, by the largest average row size of a row group."""
    longest = 1
    for group in groups:
        found = metadata.row_group(group)
        longest = max(longest, -(-found.total_byte_size // max(1, found.num_rows)))
    return max(1, BATCH_BYTES // longest)


def split(batch: pa.RecordBatch, path: PathLike) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in batches within the maximum size.

    Args:
        batch: rows with dictionaries.
        path: the file, for messages.

    Raises:
        IntegrityError: a row is too large to be read.
    """
    size = sum(_size(column) for column in batch.columns)
    if size <= BATCH_BYTES:
        yield batch
    elif batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from split(batch.slice(0, half), path)
        yield from split(batch.slice(half), path)
    elif size <= _MAX_ROW_BYTES:
        yield batch
    else:
        raise IntegrityError(f"A row of data file {path} has {size} bytes; {_MAX_ROW_BYTES} can be read")


def _size(array: pa.Array) -> int:
    """Return the approximate bytes of an array in plain layout."""
    if pa.types.is_dictionary(array.type):
        import pyarrow.compute as pc  # 7 MB, which tables without text can save

        lengths = pc.binary_length(array.dictionary)
        return 4 * len(array) + int(pc.sum(lengths.take(array.indices).cast(pa.int64())).as_py() or 0)
    if pa.types.is_struct(array.type):
        return sum(map(_size, array.flatten()))
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_map(array.type):
        return 4 * len(array) + _size(_items(array))
    if pa.types.is_fixed_size_list(array.type):
        return _size(array.flatten())
    return int(array.nbytes)


def _items(array: pa.Array) -> pa.Array:
    return array.values.slice(array.offsets[0].as_py(), array.offsets[-1].as_py() - array.offsets[0].as_py())
