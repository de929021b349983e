"""Comparison of a slice's footer with the claims of its block, before any other part of the file is read.

A few kB of Parquet may expand to any number of rows and bytes. The footer states these numbers, and readers rely on it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.data.schemas.arrow import plain_schema, to_arrow
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.slices.parquet_io import PathLike, open_parquet
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.errors import IntegrityError

MAX_UNPACKED: Final = 64 << 30
"""Default maximum of a slice's bytes after decompression."""

_MAGIC: Final = b"PAR1"
_ROWS_PER_BYTE: Final = 128
"""Offsets are distinct: even the densest encoding needs a byte for this number of them."""


@dataclass(frozen=True, slots=True)
class ExpectedSlice:
    """The claims of a block about its slice.

    Attributes:
        start: offset of the first row.
        end: offset of the last row.
        vocab: names of the system columns.
        schema: the schema in force, None if none is recorded.
    """

    start: int
    end: int
    vocab: DatasetVocabulary
    schema: DataSchema | None

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.end - self.start + 1


def is_parquet(path: PathLike) -> bool:
    """Return whether a file has the magic bytes of Parquet at both ends. Without them, no reader accepts a slice."""
    with Path(path).open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < 3 * len(_MAGIC) or file.read(len(_MAGIC)) != _MAGIC:
            return False
        file.seek(-len(_MAGIC), os.SEEK_END)
        return file.read() == _MAGIC


def check_footer(path: PathLike, expected: ExpectedSlice, most_unpacked: int = MAX_UNPACKED) -> None:
    """Check that the footer of a slice matches the claims of its block; no page is read.

    Args:
        path: the file of the slice.
        expected: the claims of the block.
        most_unpacked: maximum bytes of the pages after decompression.

    Raises:
        IntegrityError: the footer does not match, or is invalid; the message names the file.
    """
    with open_parquet(path) as file:
        metadata, schema = file.metadata, file.schema_arrow
    touch_columns(metadata)
    problem = (
        _in_rows(metadata, expected)
        or _in_bytes(path, metadata, most_unpacked)
        or _in_offsets(metadata, schema, expected)
        or _in_schema(schema, expected)
    )
    if problem is not None:
        raise IntegrityError(f"Data file {os.fspath(path)} does not match its block: {problem}")


def touch_columns(metadata: pq.FileMetaData) -> None:
    """Access all statistics of columns that later readers may access, so that invalid ones fail here."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            with suppress(pa.ArrowException, ValueError, OverflowError, NotImplementedError):
                known = column.statistics
                _ = (column.encodings, known is not None and known.has_min_max and (known.min, known.max))


def _in_rows(metadata: pq.FileMetaData, expected: ExpectedSlice) -> str | None:
    groups = sum(metadata.row_group(at).num_rows for at in range(metadata.num_row_groups))
    if metadata.num_rows != expected.num_rows or groups != expected.num_rows:
        found = metadata.num_rows if metadata.num_rows != expected.num_rows else groups
        return f"it has {found} rows, the block {expected.num_rows}"
    return None


def _in_bytes(path: PathLike, metadata: pq.FileMetaData, most: int) -> str | None:
    packed = unpacked = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            sizes = (column.total_compressed_size, column.total_uncompressed_size)
            if min(sizes) < 0:
                return "a column has less than no bytes"
            packed, unpacked = packed + sizes[0], unpacked + sizes[1]
    size = Path(path).stat().st_size
    if packed > size:
        return f"its columns have {packed} bytes, the file {size}"
    if unpacked > most:
        return f"{unpacked} bytes unpacked, {most} are allowed"
    if metadata.num_rows > _ROWS_PER_BYTE * unpacked:
        return f"{metadata.num_rows} rows are not in {unpacked} bytes"
    return None


def _in_offsets(metadata: pq.FileMetaData, schema: pa.Schema, expected: ExpectedSlice) -> str | None:
    name = expected.vocab.offset_column
    if name not in schema.names:
        return f"it has no column {name!r}"
    leaf = next((at for at in range(metadata.num_columns) if metadata.schema.column(at).path == name), None)
    if leaf is None:
        return f"its column {name!r} holds no offsets"
    known = [metadata.row_group(at).column(leaf).statistics for at in range(metadata.num_row_groups)]
    if not known or not all(statistics is not None and statistics.has_min_max for statistics in known):
        return None  # other writers need not say it: whoever verifies reads the rows
    found = (min(statistics.min for statistics in known), max(statistics.max for statistics in known))
    if found != (expected.start, expected.end):
        return f"its offsets are {found[0]} to {found[1]}, the block says {expected.start} to {expected.end}"
    return None


def _in_schema(schema: pa.Schema, expected: ExpectedSlice) -> str | None:
    """Compare names and kinds of types of the columns; writers have used several widths, units and layouts."""
    if expected.schema is None:
        return None
    wanted = {field.name: field.type for field in plain_schema(to_arrow(expected.schema))}
    for field in plain_schema(schema):
        if field.name not in wanted:
            return f"it has a column {field.name!r}, the schema has not"
        if _kind(field.type) != _kind(wanted[field.name]):
            return f"its column {field.name!r} is {field.type}, the schema says {wanted[field.name]}"
    return None


def _kind(arrow: pa.DataType) -> str:
    return next((name for name, is_kind in _KINDS.items() if is_kind(arrow)), str(arrow))


_KINDS: Final = {
    "boolean": pa.types.is_boolean,
    "integer": pa.types.is_integer,
    "floating": pa.types.is_floating,
    "decimal": pa.types.is_decimal,
    "text": pa.types.is_string,
    "bytes": lambda arrow: pa.types.is_binary(arrow) or pa.types.is_fixed_size_binary(arrow),
    "time": pa.types.is_temporal,
    "list": lambda arrow: pa.types.is_list(arrow) or pa.types.is_fixed_size_list(arrow),
    "map": pa.types.is_map,
    "struct": pa.types.is_struct,
}
