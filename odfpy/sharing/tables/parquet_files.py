"""Parquet files of tables, opened locally or in object stores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from odfpy.data.lru_cache import LruCache
from odfpy.data.slices.bounded_batches import reading_plan, split
from odfpy.data.slices.parquet_io import INT96_UNIT, reading
from odfpy.sharing.tables.remote import BucketFile

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

FilePlace: TypeAlias = "Path | BucketFile"
"""The location of a file: a local path, or an object in a bucket."""

_AT_ONCE: Final = 16
_MAX_LOCAL: Final = 100  # enough for repeated requests to one file; a footer can be large


class Footer(NamedTuple):
    """The footer of a Parquet file, with its columns."""

    metadata: pq.FileMetaData
    columns: pa.Schema


@contextmanager
def open_parquet_file(location: FilePlace) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; from a bucket, only the parts that are read are requested.

    Raises:
        OdfError: the file cannot be read; errors in the block are converted, too.
    """
    with reading(_name(location)), _opened(location) as file:
        yield file


class RowsOfFile:
    """The rows of a Parquet file, in batches of limited size, whatever the size of its row groups.

    Attributes:
        names: names of its columns.
        sizes: number of rows of each row group.
    """

    def __init__(self, location: FilePlace, rows: int) -> None:
        """
        Args:
            location: location of the file.
            rows: maximum rows of a batch.

        Raises:
            OdfError: the file cannot be read.
        """
        found = footer(location)
        groups = range(found.metadata.num_row_groups)
        self.names: list[str] = found.columns.names
        self.sizes = [found.metadata.row_group(group).num_rows for group in groups]
        self._place = location
        self._dictionaries, self._rows = reading_plan(found.metadata, rows, groups)

    def batches(self, columns: Sequence[str], groups: Sequence[int] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the given row groups; text may be dictionary-encoded.

        Args:
            columns: names of columns.
            groups: row groups, all by default.

        Raises:
            OdfError: the rows cannot be read. Exceptions of the consumer are not converted.
        """
        name = _name(self._place)
        with ExitStack() as stack:
            with reading(name):
                options = {"read_dictionary": self._dictionaries, "coerce_int96_timestamp_unit": INT96_UNIT}
                file = stack.enter_context(_opened(self._place, **options))
                read = file.iter_batches(self._rows, groups, columns=list(columns))
            while True:
                with reading(name):
                    batch = next(read, None)
                if batch is None:
                    return
                yield from split(batch, name)


@contextmanager
def _opened(location: FilePlace, **options: Any) -> Iterator[pq.ParquetFile]:
    import pyarrow.parquet as pq

    if isinstance(location, Path):
        with pq.ParquetFile(location, **options) as file:
            yield file
    else:
        with location.open() as stream, pq.ParquetFile(stream, **options) as file:
            yield file


def _name(location: FilePlace) -> Path | str:
    return location if isinstance(location, Path) else location.url


def footer(location: FilePlace) -> Footer:
    """Return the footer of a Parquet file, cached as long as the file is unchanged.

    Raises:
        OdfError: the file cannot be read.
    """
    if isinstance(location, BucketFile):
        return _footer(location)
    with reading(location):
        stamp = location.stat()
    return _LOCAL.get((location, stamp.st_mtime_ns, stamp.st_size), partial(_read_footer, location))


def fetch_footers(places: Iterable[FilePlace]) -> None:
    """Fetch the footers of files in buckets that are not cached yet, concurrently.

    Raises:
        OdfError: a file cannot be read.
    """
    remote = [location for location in places if isinstance(location, BucketFile)]
    if len(remote) > 1:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _ in pool.map(_footer, remote):
                pass


def _read_footer(location: FilePlace) -> Footer:
    with open_parquet_file(location) as file:
        return Footer(file.metadata, file.schema_arrow)


_footer = lru_cache(maxsize=10_000)(_read_footer)
_LOCAL: Final[LruCache[tuple[Path, int, int], Footer]] = LruCache(_MAX_LOCAL)
