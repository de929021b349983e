"""Parquet files of tables, opened wherever they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from odfpy.data.recent import Recent
from odfpy.sharing.tables.remote import BucketFile

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

FilePlace: TypeAlias = "Path | BucketFile"
"""Where a file is: on this machine, or in a bucket."""

_AT_ONCE: Final = 16
_MOST_LOCAL: Final = 100  # enough for those who ask several things of one file; a footer can be large


class Footer(NamedTuple):
    """The footer of a Parquet file, and the columns by it."""

    metadata: pq.FileMetaData
    columns: pa.Schema


@contextmanager
def opened(place: FilePlace) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; of one in a bucket, only those parts are asked for that are read.

    Raises:
        OdfError: it cannot be read; also for what goes wrong inside of the block.
    """
    from odfpy.data.slices.parquet_io import reading

    with reading(place if isinstance(place, Path) else place.url), opened_plainly(place) as file:
        yield file


@contextmanager
def opened_plainly(place: FilePlace) -> Iterator[pq.ParquetFile]:
    """The same, for those who write at the same time: errors are those of the library."""
    import pyarrow.parquet as pq

    if isinstance(place, Path):
        with pq.ParquetFile(place) as file:
            yield file
    else:
        with place.open() as stream, pq.ParquetFile(stream) as file:
            yield file


def footer(place: FilePlace) -> Footer:
    """The footer of a Parquet file, remembered as long as that stays the same.

    Raises:
        OdfError: it cannot be read.
    """
    if isinstance(place, BucketFile):
        return _footer(place)
    from odfpy.data.slices.parquet_io import reading

    with reading(place):
        stamp = place.stat()
    return _LOCAL.get((place, stamp.st_mtime_ns, stamp.st_size), partial(_read_footer, place))


def fetch_footers(places: Iterable[FilePlace]) -> None:
    """Ask for the footers of files in buckets that are not known yet, several at a time.

    Raises:
        OdfError: one cannot be read.
    """
    remote = [place for place in places if isinstance(place, BucketFile)]
    if len(remote) > 1:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for _ in pool.map(_footer, remote):
                pass


def _read_footer(place: FilePlace) -> Footer:
    with opened(place) as file:
        return Footer(file.metadata, file.schema_arrow)


_footer = lru_cache(maxsize=10_000)(_read_footer)
_LOCAL: Final[Recent[tuple[Path, int, int], Footer]] = Recent(_MOST_LOCAL)
