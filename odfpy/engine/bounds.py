"""Least and greatest values of columns, from the statistics in the footers of Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta, timezone
from typing import Any, Final

from odfpy.data.slices.parquet_io import extremes, open_parquet
from odfpy.data.vocabulary import OperationType

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def bounds_of(path: str, column: str) -> Iterator[tuple[Any, Any] | None]:
    """Yield the least and the greatest value of a column for each row group, None where the file has no statistics."""
    with open_parquet(path) as file:
        metadata = file.metadata
        names = [metadata.schema.column(at).path for at in range(metadata.num_columns)]
        yield from extremes(metadata, names.index(column)) if column in names else [None] * metadata.num_row_groups


def is_append_only(paths: Iterable[str], operation_type: str) -> bool:
    """Return whether the files show that all their rows are appended; True for no rows.

    Args:
        paths: the files.
        operation_type: name of the column with the operation type.
    """
    wanted = int(OperationType.APPEND)
    return all(bounds == (wanted, wanted) for path in paths for bounds in bounds_of(path, operation_type))


def least_time(paths: Iterable[str], column: str) -> int | None:
    """Return the least time of a column, in microseconds; None without statistics or rows."""
    column_bounds = [bounds for path in paths for bounds in bounds_of(path, column)]
    known = [_micros(bounds[0]) for bounds in column_bounds if bounds is not None]
    return min(known) if known and len(known) == len(column_bounds) else None


def _micros(value: datetime | date) -> int:
    moment = value if isinstance(value, datetime) else datetime.combine(value, time.min)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return (aware - _EPOCH) // timedelta(microseconds=1)
