"""Logical hash of a slice, `arrow0-sha3-256` (ODF specification, "Logical Hashes").

The hash depends on column names, types and values only: not on Parquet encodings, batch boundaries, dictionaries,
views or offset widths. Every leaf column has its own SHA3-256 hasher, which is given its type and then its values in
order; the record hasher is given the names with their depth, then the digests of the leaves:

- fixed width: the bytes as stored; boolean: one byte, 1 for false and 2 for true; null: one byte 0;
- text and binary: length (u64), then the bytes;
- list: number of items (u64), then the items.

Columns are independent of each other and `hashlib` releases the GIL, so they are hashed in threads. A thread without
a column to hash converts the next values of another thread's column to bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfpy.data.memory import bytes_of
from odfpy.data.multihash import ARROW0_SHA3_256, Hasher, Multihash
from odfpy.data.processors import processors
from odfpy.data.schemas.arrow import plain_array, plain_field, plain_schema
from odfpy.data.slices.ahead import ahead
from odfpy.data.slices.bounded_batches import bounded_batches
from odfpy.data.slices.parquet_io import PathLike, open_parquet, reading
from odfpy.data.slices.value_bytes import is_zero_copy, type_bytes, value_bytes
from odfpy.errors import SchemaError

_PIECE_ROWS = 131_072
_PIECE_BOOLEANS = 8 * _PIECE_ROWS
_PIECE_BYTES = 1 << 20
"""Maximum rows, booleans and bytes that are encoded at once: buffers stay small, and hashing begins soon."""

_READ_ROWS = 65_536
"""Number of rows decoded at a time."""

_THREADS_PAY_FROM = 1 << 18
"""Minimum bytes of a batch for which threads are faster."""

_THREADS_A_COLUMN = 2
"""One thread hashes, the other encodes the next piece."""

_REFERENCE_BATCH = 10_000
"""Number of rows that the reference implementation hashes at a time."""


class LogicalHasher:
    """Logical hash of a stream of batches.

    Hashing runs in the background: `update` returns while its batch is being hashed, and waits for the batch before
    it, so that the caller's own work overlaps and memory stays flat.
    """

    def __init__(self, schema: pa.Schema, *, threads: int | None = None) -> None:
        """Start a hash.

        Args:
            schema: schema of all batches, in any layout; nullability and metadata are ignored.
            threads: maximum number of threads, by default one per processor; 1 hashes in the calling thread.

        Raises:
            SchemaError: the hash is not defined for a type; the message names the column.
        """
        self._schema = plain_schema(schema)
        self._columns = [_Column(field) for field in self._schema]
        self._threads = min(threads or processors(), _THREADS_A_COLUMN * len(self._columns))
        self._pool: ThreadPoolExecutor | None = None
        self._running: list[Future[None]] = []

    def update(self, batch: pa.RecordBatch | pa.Table) -> None:
        """Add the next rows.

        Raises:
            SchemaError: columns or types of the batch differ from the schema.
        """
        self._check(batch.schema)
        # A hasher needs values in order: all of the previous batch before any of this one.
        self._wait()
        if self._pool is None and self._threads > 1 and bytes_of(batch) >= _THREADS_PAY_FROM:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="logical-hash")
        work = list(zip(self._columns, batch.columns, strict=True))
        if self._pool is None:
            for column, values in work:
                column.update(values)
            return
        work.sort(key=lambda item: bytes_of(item[1]), reverse=True)  # the largest first, so that threads end alike
        idle = self._pool if len(work) < self._threads else None  # otherwise, all threads have columns of their own
        self._running = [self._pool.submit(column.update, values, idle) for column, values in work]

    def finish(self) -> Multihash:
        """Return the hash of all rows. The hasher cannot be used afterwards."""
        self._wait()
        if self._pool is not None:
            self._pool.shutdown()
        return _combine(self._columns)

    def _check(self, schema: pa.Schema) -> None:
        if schema.names != self._schema.names:
            raise SchemaError(f"Columns {schema.names} where {self._schema.names} are expected")
        for field, expected in zip(schema, self._schema, strict=True):
            if field.type != expected.type and _describe(plain_field(field), 0) != _describe(expected, 0):
                raise SchemaError(f"Column {field.name!r} has type {field.type} where {expected.type} is expected")

    def _wait(self) -> None:
        running, self._running = self._running, []
        for future in running:
            future.result()


def logical_hash(table: pa.Table | pa.RecordBatch) -> Multihash:
    """Return the logical hash of rows in memory.

    Raises:
        SchemaError: the hash is not defined for a type; the message names the column.
    """
    hasher = LogicalHasher(table.schema)
    hasher.update(table)
    return hasher.finish()


def logical_hash_of_parquet(path: PathLike, *, threads: int | None = None) -> Multihash:
    """Return the logical hash of a Parquet file, in a stream: each thread reads and hashes one column at a time.

    Raises:
        IntegrityError: the file is damaged.
        ObjectNotFound: there is no such file.
        SchemaError: the hash is not defined for a type; the message names the column.
    """
    with open_parquet(path) as file:
        metadata = file.metadata
        columns = [_Column(plain_field(field)) for field in file.schema_arrow]
    sizes = _column_sizes(metadata, columns)

    def values(column: _Column) -> Iterator[pa.Array]:
        for batch in bounded_batches(path, metadata, _READ_ROWS, columns=[column.name], use_threads=False):
            yield plain_array(batch.column(batch.schema.names.index(column.name)))

    def work(column: _Column, pool: Executor | None = None) -> None:
        with reading(path), closing(ahead(values(column), pool)) as read:
            for array in read:
                column.update(array)

    usable = min(threads or processors(), _THREADS_A_COLUMN * len(columns))
    if usable <= 1 or sum(sizes.values()) < _THREADS_PAY_FROM:
        for column in columns:
            work(column)
    else:
        with ThreadPoolExecutor(usable, thread_name_prefix="logical-hash") as pool:
            largest_first = sorted(columns, key=lambda column: sizes[column.name], reverse=True)
            for future in [pool.submit(work, column, pool) for column in largest_first]:
                future.result()
    return _combine(columns)


def _column_sizes(metadata: pq.FileMetaData, columns: list[_Column]) -> dict[str, int]:
    """Return the uncompressed bytes of every top-level column."""
    sizes = {column.name: 0 for column in columns}
    if len(sizes) < len(columns):
        raise SchemaError(f"Two columns have the same name: {[column.name for column in columns]}")
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for leaf in range(row_group.num_columns):
            chunk = row_group.column(leaf)
            name = chunk.path_in_schema
            while name and name not in sizes:
                name = name.rpartition(".")[0]
            sizes[name] = sizes.get(name, 0) + chunk.total_uncompressed_size
    return sizes


def _combine(columns: list[_Column]) -> Multihash:
    record = hashlib.sha3_256()
    for column in columns:
        record.update(column.description)
    for column in columns:
        for leaf in column.leaves:
            record.update(leaf.digest())
    return Multihash(ARROW0_SHA3_256.code, record.digest())


# --- Columns and leaves ----------------------------------------------------------------------------------------------


class _Column:
    """The leaves of one top-level column."""

    def __init__(self, field: pa.Field) -> None:
        self.name: str = field.name
        self.is_struct: bool = pa.types.is_struct(field.type)
        self.description = _describe_names(field, 0)
        self.leaves: list[Hasher] = []
        for path, leaf in _leaf_types(field, ()):
            hasher = hashlib.sha3_256()
            hasher.update(type_bytes(leaf, ".".join(path)))
            self.leaves.append(hasher)

    def update(self, values: pa.Array | pa.ChunkedArray, pool: Executor | None = None) -> None:
        with closing(ahead(self._encoded(values), pool)) as pieces:
            for piece in pieces:
                for hasher, data in zip(self.leaves, piece, strict=True):
                    hasher.update(memoryview(data))

    def _encoded(self, values: pa.Array | pa.ChunkedArray) -> Iterator[list[pa.Buffer]]:
        """Yield the bytes of each leaf, piece by piece."""
        chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        for chunk in chunks:
            if is_zero_copy(chunk):  # no buffers have to be allocated, so the chunk need not be split
                yield [value_bytes(chunk)]
                continue
            most = _PIECE_BOOLEANS if pa.types.is_boolean(chunk.type) else _PIECE_ROWS
            rows = min(most, max(1, len(chunk) * _PIECE_BYTES // max(1, bytes_of(chunk))))
            for start in range(0, len(chunk), rows):
                piece = chunk.slice(start, rows)
                if self.is_struct:  # so that nulls of the struct are applied to children of any layout
                    piece = plain_array(piece)
                yield [value_bytes(leaf) for leaf in _leaf_arrays(piece)]


def _leaf_types(field: pa.Field, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    here = (*path, field.name)
    if pa.types.is_struct(field.type):
        yield from chain.from_iterable(_leaf_types(child, here) for child in field.type.fields)
    else:
        yield here, field.type


def _leaf_arrays(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the leaves below an array; a leaf is null where it or any struct above it is null."""
    if pa.types.is_struct(array.type):
        yield from chain.from_iterable(_leaf_arrays(child) for child in array.flatten())
    else:
        yield array


def _describe_names(field: pa.Field, level: int) -> bytes:
    """Return names and levels for the record hasher: depth first, a struct before its children."""
    name: bytes = field.name.encode()
    here = len(name).to_bytes(8, "little") + name + level.to_bytes(8, "little")
    children = field.type.fields if pa.types.is_struct(field.type) else ()
    return here + b"".join(_describe_names(child, level + 1) for child in children)


def _describe(field: pa.Field, level: int) -> tuple[bytes, list[bytes]]:
    """Return the bytes for a column's schema: names and levels, and the type of each leaf."""
    types = [type_bytes(leaf, ".".join(path)) for path, leaf in _leaf_types(field, ())]
    return _describe_names(field, level), types


# --- Deviations of the reference implementation ----------------------------------------------------------------------


def ambiguous_columns(source: pa.Table | PathLike) -> list[str]:
    """Return leaf columns (`struct.leaf`) over which the reference implementation's hash is not a function of the data.

    In a batch where both a struct and a leaf below it have nulls, it hashes leaves that are null below a non-null
    struct as values, with arbitrary bytes. So logical hashes by other implementations may differ from ours for such
    leaves; if the physical hash matches, that justifies a warning, not a failure.

    Raises:
        IntegrityError: the file is damaged.
        ObjectNotFound: there is no such file.
    """
    if isinstance(source, pa.Table):
        return _ambiguous_in(source.combine_chunks().to_batches(max_chunksize=_REFERENCE_BATCH))
    with open_parquet(source) as file:
        structs = [field.name for field in file.schema_arrow if pa.types.is_struct(field.type)]
        return _ambiguous_in(file.iter_batches(_REFERENCE_BATCH, columns=structs)) if structs else []


def _ambiguous_in(batches: Iterable[pa.RecordBatch]) -> list[str]:
    found: dict[str, None] = {}
    for batch in batches:
        for name, values in zip(batch.schema.names, batch.columns, strict=True):
            found.update(dict.fromkeys(_ambiguous(plain_array(values), name, None)))
    return list(found)


def _ambiguous(array: pa.Array, path: str, taken_valid: pa.Array | None) -> Iterator[str]:
    """Yield leaves with nulls that the reference implementation hashes as values, given `taken_valid` of the parent."""
    valid = array.is_valid()
    if array.null_count == 0:
        combined = taken_valid
    elif taken_valid is None or taken_valid.true_count == len(array):
        combined = valid
    else:
        combined = pc.or_(taken_valid, valid)
    if pa.types.is_struct(array.type):
        for field, child in zip(array.type.fields, array.flatten(), strict=True):
            yield from _ambiguous(child, f"{path}.{field.name}", combined)
    elif combined is not None and pc.any(pc.and_not(combined, valid)).as_py():
        yield path
