"""Statistics of files, by which clients and hints skip files (Delta Sharing protocol, "Per-file Statistics").

Uncertain bounds are omitted: an extra file costs time, a skipped one loses rows. Parquet's bounds of floats ignore NaN,
which some engines sort as the greatest value, so floats have none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from odfpy.sharing.tables.parquet_files import FilePlace, footer
from odfpy.sharing.tables.statistics import bounds

if TYPE_CHECKING:
    import pyarrow.parquet as pq


def file_statistics(path: FilePlace, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statistics of a Parquet file: `numRecords`, `minValues`, `maxValues`, `nullCount`.

    Args:
        path: the file.
        columns: names of the visible columns.
    """
    return footer_statistics(footer(path).metadata, columns)


def footer_statistics(metadata: pq.FileMetaData, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the statistics of a file from its footer, as `file_statistics`.

    Args:
        metadata: the footer.
        columns: names of the visible columns.
    """
    least: dict[str, Any] = {}
    greatest: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for number in range(metadata.num_columns):
        leaf = metadata.schema.column(number)
        name = leaf.path
        if name not in columns or leaf.name != name:  # paths of nested columns have dots; so may names
            continue
        parts = [metadata.row_group(group).column(number) for group in range(metadata.num_row_groups)]
        found = [part.statistics for part in parts]
        if all(statistics is not None and statistics.has_null_count for statistics in found):
            nulls[name] = sum(statistics.null_count for statistics in found)
        bounded = [one for part, one in zip(parts, found, strict=True) if not _is_only_nulls(part, one)]
        if bounded and all(statistics is not None and statistics.has_min_max for statistics in bounded):
            low, high = _bounds(bounded)
            if low is not None:
                least[name], greatest[name] = low, high
    return {"numRecords": metadata.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _bounds(bounded: Sequence[Any]) -> tuple[Any, Any]:
    """Return the bounds of several row groups, None for times and dates beyond the years 1 to 9999."""
    try:
        return bounds(min(statistics.min for statistics in bounded), max(statistics.max for statistics in bounded))
    except OverflowError:
        return None, None


def _is_only_nulls(part: Any, statistics: Any) -> bool:
    return statistics is not None and statistics.has_null_count and statistics.null_count == part.num_values
