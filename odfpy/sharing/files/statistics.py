"""Statistics of files, which let clients and hints pass files over (Delta Sharing protocol, "Per-file Statistics").

A bound that is not sure is left out: a file too many costs time, a file too few loses rows. Parquet's bounds of floats
leave out NaN, which some engines sort as the greatest value, so that floats have none.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from odfpy.data.slices.parquet_io import open_parquet

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow.parquet as pq

_LONGEST: Final = 256  # characters of a bound; writers may cut longer ones off
_MILLISECOND: Final = dt.timedelta(milliseconds=1)


def file_statistics(path: Path, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The statistics of a Parquet file: `numRecords`, `minValues`, `maxValues`, `nullCount`.

    Args:
        path: the file.
        columns: names of the columns that may be told of.
    """
    with open_parquet(path) as file:
        return footer_statistics(file.metadata, columns)


def footer_statistics(metadata: pq.FileMetaData, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a footer.

    Args:
        metadata: the footer.
        columns: names of the columns that may be told of.
    """
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for number in range(metadata.num_columns):
        name = metadata.schema.column(number).path
        if name not in columns:  # also all that is nested
            continue
        parts = [metadata.row_group(group).column(number) for group in range(metadata.num_row_groups)]
        found = [part.statistics for part in parts]
        if all(one is not None and one.has_null_count for one in found):
            nulls[name] = sum(one.null_count for one in found)
        bounded = [one for part, one in zip(parts, found, strict=True) if not _is_only_nulls(part, one)]
        if bounded and all(one is not None and one.has_min_max for one in bounded):
            low, high = _bounds(min(one.min for one in bounded), max(one.max for one in bounded))
            if low is not None:
                least[name], greatest[name] = low, high
    return {"numRecords": metadata.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _is_only_nulls(part: Any, statistics: Any) -> bool:
    return statistics is not None and statistics.has_null_count and statistics.null_count == part.num_values


def _bounds(low: Any, high: Any) -> tuple[Any, Any]:
    """Both as the protocol writes them, None where they cannot be told."""
    if isinstance(low, (bool, float)):
        return None, None
    if isinstance(low, int):
        return low, high
    if isinstance(low, str):
        return (low, high) if max(len(low), len(high)) <= _LONGEST else (None, None)
    if isinstance(low, dt.datetime):
        return _instant(low), _instant(high + (_MILLISECOND if high.microsecond % 1000 else dt.timedelta()))
    if isinstance(low, dt.date):
        return low.isoformat(), high.isoformat()
    return None, None


def _instant(time: dt.datetime) -> str:
    text = time.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return f"{text}Z" if time.tzinfo is not None else text
