"""Files made for what somebody may see: only these rows, only these columns, or with the kind of each change.

    <folder>/<two letters>/<key>.parquet     made once, never changed; removed when others need the room

The key is a hash of all that decides about the bytes: the file and the rows of it that count, the view, the columns,
the format. So a file can be of no use to anybody who may see something else.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.data.vocabulary import OperationType
from odfpy.errors import OdfError
from odfpy.files import make_folder
from odfpy.sharing.decisions import ALL, View, any_of
from odfpy.sharing.files.kinds import WORDS, kinds_of
from odfpy.sharing.files.schema import fits_as_it_is, shared_column, without_views
from odfpy.sharing.names import folded
from odfpy.sharing.tables.contract import TableChange, TableFile
from odfpy.sharing.tables.opened import FilePlace, footer, opened, opened_plainly
from odfpy.sharing.tables.partitions import partition_scalars

if TYPE_CHECKING:
    import duckdb
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa
    import pyarrow.parquet as pq
    from typing_extensions import Self

CHANGE_TYPE: Final = "_change_type"
_FORMAT: Final = b"odfpy shared file 1"
_ROWS: Final = 128 * 1024  # of a batch, and of a row group


@dataclass(frozen=True, slots=True)
class ServedFile:
    """A file as it goes out.

    Attributes:
        id: the same for the same bytes; tells nothing of the file that it was made from.
        size: bytes.
        path: where it is.
    """

    id: str
    size: int
    path: FilePlace


class FileMaker:
    """Makes files, and keeps them within a limit. Used by several threads and processes."""

    def __init__(self, folder: Path, most: int) -> None:
        """
        Args:
            folder: where they are kept.
            most: bytes that they may take up together; one that is in use may exceed it.
        """
        self._folder = folder
        self._most = most
        self._room = threading.BoundedSemaphore(max(1, os.cpu_count() or 1))
        self._unlooked = 0  # bytes that may be made before the folder is looked through again

    def served(
        self,
        file: TableFile,
        schema: pa.Schema,
        view: View = ALL,
        change: TableChange | None = None,
    ) -> ServedFile | None:
        """The file for whoever has a view; None if nothing of it shows.

        Args:
            file: a file of a table.
            schema: the columns of the table as clients see them, without those that are hidden.
            view: what may be seen.
            change: the change that it is part of, if its rows say each what has become of them.

        Raises:
            OdfError: it cannot be read, or not be written.
        """
        operations = change.operations if change is not None else None
        if file.live is None and operations is None and self._goes_as_it_is(file, schema, view):
            return ServedFile(_id(file.identity.encode()), file.size, file.path)
        parts = [file.identity.encode(), view.identity, schema.serialize().to_pybytes(), str(operations).encode()]
        if file.partition_values:
            parts.append(repr(sorted(file.partition_values.items())).encode())
        key = _id(_FORMAT, *parts)
        path = self.path(key)
        if not _touched(path):
            with self._alone(path):
                if not _touched(path):
                    with self._room:
                        self._make(path, file, schema, view, operations)
                    self._unlooked -= path.stat().st_size
                    if self._unlooked < 0:
                        self.tidy()
        size = path.stat().st_size
        return ServedFile(key, size, path) if size else None

    def path(self, key: str) -> Path:
        """Return where the file of a key is kept."""
        return self._folder / key[:2] / f"{key}.parquet"

    def tidy(self) -> int:
        """Remove what was used longest ago where all is above the limit; gives the bytes that this has freed.

        An eighth of the limit is then free, so that not each file that is made looks through all the others.
        """
        files = []
        for path in self._folder.glob("??/*.parquet"):
            with suppress(FileNotFoundError):
                stamp = path.stat()
                files.append((stamp.st_atime_ns, stamp.st_size, path))
        total, freed = sum(size for _, size, _ in files), 0
        most = self._most if total <= self._most else self._most - self._most // 8
        for _, size, path in sorted(files)[:-1]:  # never the one that was used last
            if total - freed <= most:
                break
            path.unlink(missing_ok=True)
            freed += size
        self._unlooked = max(0, self._most - total + freed) // 4  # other processes make files, too
        return freed

    # --- Making ---

    @staticmethod
    def _goes_as_it_is(file: TableFile, schema: pa.Schema, view: View) -> bool:
        if not view.is_all:
            return False
        return fits_as_it_is(footer(file.path).columns, schema)

    @staticmethod
    def _make(path: Path, file: TableFile, schema: pa.Schema, view: View, operations: str | None) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        written = schema if operations is None else schema.append(pa.field(CHANGE_TYPE, pa.string()))
        aside = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.new")
        count = 0
        try:
            with opened_plainly(file.path) as parquet, aside.open("wb") as target, _Filter(view, schema, file) as shown:
                with pq.ParquetWriter(target, written, compression="zstd", compression_level=1) as writer:
                    changes = None if operations is None else shown.changes(parquet, operations)
                    for batch in _live_batches(parquet, file.live):
                        rows = shown.rows(shown.whole(batch))
                        if rows.num_rows:
                            kinds = [] if changes is None else [changes[count : count + len(rows)]]
                            columns = [*rows.columns, *kinds]
                            count += len(rows)
                            writer.write_batch(pa.record_batch(columns, schema=written), row_group_size=_ROWS)
                if not count:  # an empty file says that nothing of it shows
                    target.seek(0)
                    target.truncate()
                target.flush()
                os.fsync(target.fileno())
            aside.replace(path)
        except OSError as error:
            raise OdfError(f"Cannot make a file for a shared table: {error.strerror or error}") from error
        finally:
            aside.unlink(missing_ok=True)

    @contextmanager
    def _alone(self, path: Path) -> Iterator[None]:
        """Let one thread of one process make a file; the others wait and find it."""
        make_folder(path.parent)
        with (path.parent / "lock").open("w") as lock:  # for all files of the folder: there are 256 of these
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def visible_rows(file: TableFile, schema: pa.Schema, view: View) -> Iterator[pa.RecordBatch]:
    """The rows of a file that show, as clients see them.

    Args:
        file: a file of a table.
        schema: the columns of the table as clients see them, also those of partitions.
        view: what may be seen.

    Raises:
        OdfError: it cannot be read.
    """
    with opened(file.path) as parquet, _Filter(view, schema, file) as shown:
        for batch in _live_batches(parquet, file.live):
            yield shown.rows(shown.whole(batch))


def has_visible_row(file: TableFile, view: View) -> bool:
    """Return whether a row of a file shows; only the columns that decide are read.

    Args:
        file: a file of a table.
        view: what may be seen.

    Raises:
        OdfError: it cannot be read.
    """
    import pyarrow as pa

    if view.has_all_rows:
        return True
    with opened(file.path) as parquet, _Filter(view, pa.schema([]), file) as shown:
        names = parquet.schema_arrow.names
        wanted = [name for name in names if folded(name) in view.deciding_columns]
        batches = parquet.iter_batches(_ROWS, columns=wanted)
        return any(shown.any_row(shown.whole(batch), [*names, *file.partition_values]) for batch in batches)


class _Filter:
    """Leaves out of batches what is hidden, and brings the rest into the form that clients see."""

    def __init__(self, view: View, schema: pa.Schema, file: TableFile) -> None:
        self._view = view
        self._schema = schema
        self._constants = partition_scalars(file.partition_values, file.partition_types)
        self._db: duckdb.DuckDBPyConnection | None = None

    def __enter__(self) -> Self:
        if not self._view.is_all:
            import duckdb

            settings: dict[str, str | bool | int | float | list[str]] = {
                "enable_external_access": False,
                "autoload_known_extensions": False,
                "threads": 1,
            }
            self._db = duckdb.connect(config=settings)
            self._db.execute("SET TimeZone = 'UTC'")
        return self

    def __exit__(self, *_: object) -> None:
        if self._db is not None:
            self._db.close()

    def whole(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a file with the columns of its partition, which conditions may name and clients see."""
        import pyarrow as pa

        if not self._constants:
            return batch
        columns = {name: batch.column(at) for at, name in enumerate(batch.schema.names)}
        columns |= {name: pa.repeat(value, batch.num_rows) for name, value in self._constants.items()}
        return pa.record_batch(columns)

    def changes(self, parquet: pq.ParquetFile, operations: str) -> pa.Array:
        """The kind of change of each row of a file that shows, in order.

        Of a correction that takes a row into the view, or out of it, only one half shows: that is an insert or delete.
        """
        import numpy as np
        import pyarrow as pa

        kinds, shown = [], []
        for stored in parquet.iter_batches(_ROWS):
            batch = self.whole(without_views(stored))
            kinds.append(kinds_of(batch.column(operations), is_whole=self._view.has_all_rows))
            condition = None if self._view.is_all else self._view.condition(batch.schema.names)
            every = np.ones(batch.num_rows, np.bool_)
            shown.append(every if condition is None else self._true(batch, [condition])[0])
        kind = np.concatenate([np.zeros(0, np.int32), *kinds])
        seen = np.concatenate([np.zeros(0, np.bool_), *shown])
        # The second half of a correction follows the first one at once.
        begins = (kind[:-1] == OperationType.CORRECT_FROM) & (kind[1:] == OperationType.CORRECT_TO)
        kind[:-1][begins & ~seen[1:]] = OperationType.RETRACT
        kind[1:][begins & ~seen[:-1]] = OperationType.APPEND
        return pa.array(WORDS).take(pa.array(kind[seen], pa.int32()))

    def any_row(self, batch: pa.RecordBatch, names: Sequence[str]) -> bool:
        """Return whether a row of a batch shows.

        Args:
            batch: the columns that decide.
            names: all columns of the table.
        """
        condition = self._view.condition(names)
        return batch.num_rows > 0 and (condition is None or bool(self._true(batch, [condition])[0].any()))

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch that show, as clients see them."""
        import pyarrow as pa

        names = batch.schema.names
        masks: dict[str, npt.NDArray[np.bool_]] = {}
        if not self._view.is_all:
            condition = self._view.condition(names)
            if condition is not None:
                kept = pa.array(self._true(batch, [condition])[0])
                batch = batch.filter(kept)
            masks = self._hidden_cells(batch, names)
        columns = [self._column(batch, field, masks) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _hidden_cells(self, batch: pa.RecordBatch, names: Sequence[str]) -> dict[str, npt.NDArray[np.bool_]]:
        """For columns that do not show in all rows, those in which they do not."""
        shown = {name: any_of(found) for name in names if (found := self._view.conditions_of(name))}
        if not shown:
            return {}
        distinct = list(dict.fromkeys(shown.values()))
        true = dict(zip(distinct, self._true(batch, distinct), strict=True))
        return {folded(name): ~true[condition] for name, condition in shown.items()}

    def _true(self, batch: pa.RecordBatch, conditions: list[str]) -> list[npt.NDArray[np.bool_]]:
        """For each condition, the rows of which it is true."""
        import pyarrow as pa

        assert self._db is not None  # noqa: S101  there is one where something is hidden
        relation = self._db.from_arrow(pa.Table.from_batches([batch]))
        found = relation.project(", ".join(f"coalesce(({one}), FALSE) AS c{n}" for n, one in enumerate(conditions)))
        table = found.to_arrow_table()
        return [column.to_numpy() for column in table.columns]

    @staticmethod
    def _column(batch: pa.RecordBatch, field: pa.Field, masks: dict[str, npt.NDArray[np.bool_]]) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        values = shared_column(batch, field)
        hidden = masks.get(folded(field.name))
        if hidden is None:
            return values
        return pc.if_else(pa.array(hidden), pa.scalar(None, field.type), values)


def _live_batches(parquet: pq.ParquetFile, live: npt.NDArray[np.bool_] | None) -> Iterator[pa.RecordBatch]:
    """The rows of a file that count, row group by row group; those without any are not read."""
    import pyarrow as pa

    start = 0
    for group in range(parquet.num_row_groups):
        count = parquet.metadata.row_group(group).num_rows
        rows = None if live is None else live[start : start + count]
        start += count
        if rows is not None and not rows.any():
            continue
        place = 0
        for stored in parquet.iter_batches(_ROWS, row_groups=[group]):
            batch = without_views(stored)
            part = None if rows is None else rows[place : place + batch.num_rows]
            place += batch.num_rows
            yield batch if part is None or part.all() else batch.filter(pa.array(part))


def _touched(path: Path) -> bool:
    """Return whether a file is there, and note that it is in use."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def _id(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
