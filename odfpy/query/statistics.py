"""Statistics of columns from the footers of slices: minimum and maximum, without reading rows."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


def bounds(path: Path, column: str) -> tuple[Any, Any] | None:
    """Return the minimum and maximum of an unnested column, ignoring nulls; None if the footer has no such statistics.

    Raises:
        IntegrityError: the file is damaged.
    """
    return _bounds(path, column)


@lru_cache(maxsize=1 << 16)  # a slice never changes
def _bounds(path: Path, column: str) -> tuple[Any, Any] | None:
    from odfpy.data.slices.parquet_io import open_parquet, overall_extremes

    with open_parquet(path) as file:
        metadata: pq.FileMetaData = file.metadata
        leaf = _leaf(metadata, column)
        return None if leaf is None else overall_extremes(metadata, leaf)


def _leaf(metadata: pq.FileMetaData, column: str) -> int | None:
    paths = [metadata.schema.column(at).path for at in range(metadata.num_columns)]
    return paths.index(column) if column in paths else None


def event_times(path: Path, vocabulary: DatasetVocabulary) -> tuple[Timestamp, Timestamp] | None:
    """Return the first and last event time in a slice; None if the footer has no such statistics."""
    found = bounds(path, vocabulary.event_time_column)
    return None if found is None else _as_times(found)


def has_only_appends(path: Path, vocabulary: DatasetVocabulary) -> bool:
    """Return whether all rows are `+A` by the statistics of the footer."""
    return bounds(path, vocabulary.operation_type_column) == (0, 0)


def system_times(path: Path, vocabulary: DatasetVocabulary) -> tuple[Timestamp, Timestamp]:
    """Return the first and last system time in a slice.

    Raises:
        IntegrityError: the file is damaged.
    """
    found = bounds(path, vocabulary.system_time_column)
    times = None if found is None else _as_times(found)
    return times or _read(path, vocabulary)


_EPOCH = Timestamp(0)


def last_row_at(path: Path, vocabulary: DatasetVocabulary, time: Timestamp) -> int:
    """Return the position of the last row of a slice that was recorded at or before a time.

    Args:
        path: the slice.
        vocabulary: names of the system columns.
        time: the system time.
    """
    import pyarrow.compute as pc

    return int(pc.sum(pc.less_equal(_system_nanos(path, vocabulary), time.nanos)).as_py()) - 1


def _read(path: Path, vocabulary: DatasetVocabulary) -> tuple[Timestamp, Timestamp]:
    import pyarrow.compute as pc

    found = pc.min_max(_system_nanos(path, vocabulary)).as_py()
    return (_EPOCH, _EPOCH) if found["min"] is None else (Timestamp(found["min"]), Timestamp(found["max"]))


def _system_nanos(path: Path, vocabulary: DatasetVocabulary) -> pa.ChunkedArray:
    import pyarrow as pa

    from odfpy.data.slices.slice import read_slice

    column = read_slice(path, [vocabulary.system_time_column], vocab=vocabulary).column(0)
    return column.cast(pa.timestamp("ns", "UTC")).cast(pa.int64())


def _as_times(values: tuple[Any, Any]) -> tuple[Timestamp, Timestamp] | None:
    """Return values of `datetime` or `date` as timestamps; None for other types."""
    from datetime import date, datetime

    if not all(isinstance(value, date) for value in values):
        return None
    first, last = (
        Timestamp.from_datetime(value) if isinstance(value, datetime) else Timestamp.parse(value.isoformat())
        for value in values
    )
    return first, last
