"""Files produced for a view: only its rows, only its columns, or with the kind of each change.

    <folder>/<two letters>/<key>.parquet     written once, never changed; evicted when the cache is full

The key is a hash of everything that determines the bytes: the file and its live rows, the view, the columns, the
format. So a file is useless to callers with other permissions.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from odfpy.data.processors import processors
from odfpy.errors import OdfError
from odfpy.files import make_folder
from odfpy.sharing.decisions import ALL, View
from odfpy.sharing.files.schema import fits_as_it_is
from odfpy.sharing.files.unseen_pairs import without_unseen_pairs
from odfpy.sharing.files.vectors import MAX_SHARE, inline_vector
from odfpy.sharing.files.visible_rows import BATCH_ROWS, RowFilter, live_batches
from odfpy.sharing.tables.contract import TableChange, TableFile
from odfpy.sharing.tables.parquet_files import FilePlace, RowsOfFile, footer

if TYPE_CHECKING:
    import pyarrow as pa

CHANGE_TYPE: Final = "_change_type"
_FORMAT: Final = b"odfpy shared file 3"


@dataclass(frozen=True, slots=True)
class ServedFile:
    """A file as it is served.

    Attributes:
        id: equal for equal bytes; reveals nothing about the original file.
        size: size in bytes.
        path: path of the file.
        vector: deletion vector of the superseded rows, None if all rows are live.
    """

    id: str
    size: int
    path: FilePlace
    vector: Mapping[str, Any] | None = field(default=None, compare=False)


class FileMaker:
    """Produces files for views, and caches them within a size limit. Safe for threads and processes."""

    def __init__(self, folder: Path, most: int) -> None:
        """
        Args:
            folder: folder of the cache.
            most: maximum bytes of the cache; a file in use may exceed it.
        """
        self._folder = folder
        self._max_bytes = most
        self._writers = threading.BoundedSemaphore(processors())
        self._bytes_until_scan = 0  # bytes that may be written before the folder is scanned again

    def served(
        self,
        file: TableFile,
        schema: pa.Schema,
        view: View = ALL,
        change: TableChange | None = None,
        *,
        has_vectors: bool = False,
    ) -> ServedFile | None:
        """Return the file for a view; None if nothing in it is visible.

        Args:
            file: a file of a table.
            schema: visible columns of the table, in the protocol's types.
            view: the visible part.
            change: the change that the file belongs to, if its rows have change types.
            has_vectors: whether the file may contain superseded rows, marked by a deletion vector.

        Raises:
            OdfError: a file cannot be read or written.
        """
        operations = change.operations if change is not None else None
        has_few_superseded = file.live is None or (has_vectors and np.mean(~file.live) <= MAX_SHARE)
        if has_few_superseded and operations is None and self._is_servable_unchanged(file, schema, view):
            vector = None if file.live is None else inline_vector(file.live)
            return ServedFile(_id(file.identity.encode()), file.size, file.path, vector)
        key = _key(file, schema, view, operations)
        path = self.path(key)
        size = _size_and_touch(path)
        if size is None:
            with self._locked(path):
                size = _size_and_touch(path)
                if size is None:
                    with self._writers:
                        size = self._make(path, file, schema, view, operations)
                    self._bytes_until_scan -= size
                    if self._bytes_until_scan < 0:
                        self.tidy()
        return ServedFile(key, size, path) if size else None

    def has(self, file: TableFile, schema: pa.Schema, view: View) -> bool:
        """Return whether the file for a view is cached; see `served`."""
        return self.path(_key(file, schema, view, None)).exists()

    def path(self, key: str) -> Path:
        """Return the path of the file with a key."""
        return self._folder / key[:2] / f"{key}.parquet"

    def tidy(self) -> int:
        """Evict the least recently used files if the limit is exceeded; return the number of freed bytes.

        Afterwards an eighth of the limit is free, so that not every new file causes a scan of all others.
        """
        files = []
        for path in self._folder.glob("??/*.parquet"):
            with suppress(FileNotFoundError):
                stamp = path.stat()
                files.append((stamp.st_atime_ns, stamp.st_size, path))
        total, freed = sum(size for _, size, _ in files), 0
        most = self._max_bytes if total <= self._max_bytes else self._max_bytes - self._max_bytes // 8
        for _, size, path in sorted(files)[:-1]:  # never the most recently used one
            if total - freed <= most:
                break
            path.unlink(missing_ok=True)
            freed += size
        self._bytes_until_scan = max(0, self._max_bytes - total + freed) // 4  # other processes write files, too
        return freed

    # --- Production ---

    @staticmethod
    def _is_servable_unchanged(file: TableFile, schema: pa.Schema, view: View) -> bool:
        if not view.is_all:
            return False
        return fits_as_it_is(footer(file.path).columns, schema)

    @staticmethod
    def _make(path: Path, file: TableFile, schema: pa.Schema, view: View, operations: str | None) -> int:
        """Write a file, and return its size: another process may evict it immediately."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        output_schema = schema if operations is None else schema.append(pa.field(CHANGE_TYPE, pa.string()))
        temporary = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.new")
        try:
            stored = RowsOfFile(file.path, BATCH_ROWS)
            with temporary.open("wb") as target, RowFilter(view, schema, file) as row_filter:
                dictionaries: Any = _dictionary_columns(output_schema)
                with pq.ParquetWriter(
                    target, output_schema, compression="zstd", compression_level=1, use_dictionary=dictionaries
                ) as writer:
                    count = 0
                    for batch in _visible_batches(stored, file, row_filter, view, operations, output_schema):
                        if batch.num_rows:
                            count += batch.num_rows
                            writer.write_batch(batch, row_group_size=BATCH_ROWS)
                if not count:  # an empty file records that nothing is visible
                    target.seek(0)
                    target.truncate()
                target.flush()
                os.fsync(target.fileno())
                size = os.fstat(target.fileno()).st_size
            temporary.replace(path)
        except OSError as error:
            raise OdfError(f"Cannot make a file for a shared table: {error.strerror or error}") from error
        finally:
            temporary.unlink(missing_ok=True)
        return size

    @contextmanager
    def _locked(self, path: Path) -> Iterator[None]:
        """Let one thread of one process write a file; others wait for it."""
        make_folder(path.parent)
        with (path.parent / "lock").open("w") as lock:  # one lock for all files of the folder: there are 256 folders
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _visible_batches(
    stored: RowsOfFile, file: TableFile, row_filter: RowFilter, view: View, operations: str | None, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Return the visible live rows of a file, with the kinds of their changes if `operations` is given.

    Args:
        stored: the rows of the file.
        file: the file.
        row_filter: the filter for the view.
        view: the visible part.
        operations: the column of operation types, None without kinds of changes.
        schema: the schema of the result.
    """
    live = live_batches(stored, file.live, row_filter.columns(stored.names))
    batches: Iterator[pa.RecordBatch] = (row_filter.rows(row_filter.whole(batch)) for batch in live)
    if operations is None:
        return batches
    changes = _with_kinds(batches, row_filter.changes(stored, operations), schema)
    return changes if view.is_all else without_unseen_pairs(changes)


def _with_kinds(batches: Iterator[pa.RecordBatch], kinds: pa.Array, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the batches with the kind of each row's change as the last column."""
    import pyarrow as pa

    count = 0
    for batch in batches:
        yield pa.record_batch([*batch.columns, kinds[count : count + batch.num_rows]], schema=schema)
        count += batch.num_rows


def _dictionary_columns(schema: pa.Schema) -> list[str]:
    """Return the columns whose values repeat often; dictionaries of numbers take long and save little."""
    import pyarrow as pa

    return [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)]


def _key(file: TableFile, schema: pa.Schema, view: View, operations: str | None) -> str:
    """Return the key of the file that is produced from a file."""
    parts = [file.identity.encode(), view.identity, schema.serialize().to_pybytes(), str(operations).encode()]
    if file.partition_values:
        parts.append(repr(sorted(file.partition_values.items())).encode())
    return _id(_FORMAT, *parts)


def _size_and_touch(path: Path) -> int | None:
    """Return the size of a file, and mark it as used; None if it does not exist, or is being removed."""
    try:
        os.utime(path)
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _id(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
