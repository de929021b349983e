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
_FORMAT: Final = b"odfpy shared file 2"


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
        self._most = most
        self._room = threading.BoundedSemaphore(processors())
        self._unlooked = 0  # bytes that may be written before the folder is scanned again

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
            OdfError: it cannot be read or written.
        """
        operations = change.operations if change is not None else None
        has_few_dead = file.live is None or (has_vectors and np.mean(~file.live) <= MAX_SHARE)
        if has_few_dead and operations is None and self._goes_as_it_is(file, schema, view):
            vector = None if file.live is None else inline_vector(file.live)
            return ServedFile(_id(file.identity.encode()), file.size, file.path, vector)
        key = _key(file, schema, view, operations)
        path = self.path(key)
        size = _used(path)
        if size is None:
            with self._alone(path):
                size = _used(path)
                if size is None:
                    with self._room:
                        size = self._make(path, file, schema, view, operations)
                    self._unlooked -= size
                    if self._unlooked < 0:
                        self.tidy()
        return ServedFile(key, size, path) if size else None

    def has(self, file: TableFile, schema: pa.Schema, view: View) -> bool:
        """Return whether the file for a view is cached; see `served`."""
        return self.path(_key(file, schema, view, None)).exists()

    def path(self, key: str) -> Path:
        """Return the path of the file of a key."""
        return self._folder / key[:2] / f"{key}.parquet"

    def tidy(self) -> int:
        """Evict the least recently used files if the limit is exceeded; returns the number of freed bytes.

        An eighth of the limit is then free, so that not every new file causes a scan of all others.
        """
        files = []
        for path in self._folder.glob("??/*.parquet"):
            with suppress(FileNotFoundError):
                stamp = path.stat()
                files.append((stamp.st_atime_ns, stamp.st_size, path))
        total, freed = sum(size for _, size, _ in files), 0
        most = self._most if total <= self._most else self._most - self._most // 8
        for _, size, path in sorted(files)[:-1]:  # never the most recently used one
            if total - freed <= most:
                break
            path.unlink(missing_ok=True)
            freed += size
        self._unlooked = max(0, self._most - total + freed) // 4  # other processes write files, too
        return freed

    # --- Production ---

    @staticmethod
    def _goes_as_it_is(file: TableFile, schema: pa.Schema, view: View) -> bool:
        if not view.is_all:
            return False
        return fits_as_it_is(footer(file.path).columns, schema)

    @staticmethod
    def _make(path: Path, file: TableFile, schema: pa.Schema, view: View, operations: str | None) -> int:
        """Write a file, and return its size: another process may evict it immediately."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        written = schema if operations is None else schema.append(pa.field(CHANGE_TYPE, pa.string()))
        aside = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.new")
        count = 0
        try:
            stored = RowsOfFile(file.path, BATCH_ROWS)
            with aside.open("wb") as target, RowFilter(view, schema, file) as shown:
                dictionaries: Any = _repeating(written)
                with pq.ParquetWriter(
                    target, written, compression="zstd", compression_level=1, use_dictionary=dictionaries
                ) as writer:
                    live = live_batches(stored, file.live, shown.columns(stored.names))
                    batches: Iterator[pa.RecordBatch] = (shown.rows(shown.whole(batch)) for batch in live)
                    if operations is not None:
                        changes = _with_kinds(batches, shown.changes(stored, operations), written)
                        batches = changes if view.is_all else without_unseen_pairs(changes)
                    for batch in batches:
                        if batch.num_rows:
                            count += batch.num_rows
                            writer.write_batch(batch, row_group_size=BATCH_ROWS)
                if not count:  # an empty file records that nothing is visible
                    target.seek(0)
                    target.truncate()
                target.flush()
                os.fsync(target.fileno())
                size = os.fstat(target.fileno()).st_size
            aside.replace(path)
        except OSError as error:
            raise OdfError(f"Cannot make a file for a shared table: {error.strerror or error}") from error
        finally:
            aside.unlink(missing_ok=True)
        return size

    @contextmanager
    def _alone(self, path: Path) -> Iterator[None]:
        """Let one thread of one process write a file; others wait for it."""
        make_folder(path.parent)
        with (path.parent / "lock").open("w") as lock:  # one lock for all files of the folder: there are 256 folders
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _with_kinds(batches: Iterator[pa.RecordBatch], kinds: pa.Array, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Add the kinds of changes of all rows as the last column."""
    import pyarrow as pa

    count = 0
    for batch in batches:
        yield pa.record_batch([*batch.columns, kinds[count : count + batch.num_rows]], schema=schema)
        count += batch.num_rows


def _repeating(schema: pa.Schema) -> list[str]:
    """Return columns whose values repeat often; dictionaries of numbers take long and save little."""
    import pyarrow as pa

    return [field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)]


def _key(file: TableFile, schema: pa.Schema, view: View, operations: str | None) -> str:
    """Return the key of the file that is derived from a file."""
    parts = [file.identity.encode(), view.identity, schema.serialize().to_pybytes(), str(operations).encode()]
    if file.partition_values:
        parts.append(repr(sorted(file.partition_values.items())).encode())
    return _id(_FORMAT, *parts)


def _used(path: Path) -> int | None:
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
