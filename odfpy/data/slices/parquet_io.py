"""Opening of Parquet files, with errors of libraries converted to ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.errors import IntegrityError, ObjectNotFound, OdfError

PathLike: TypeAlias = "str | os.PathLike[str]"


INT96_UNIT: Final = "us"
"""Unit of times in the old form INT96, which Spark writes: in nanoseconds, by default, those after 2262 wrap around."""

UPGRADE: Final = f"pyarrow {pa.__version__} does not support such columns. Try a newer version: pip install -U pyarrow"
"""Hint for errors that are due to the library and not to a file."""

# Message of releases before 24 for a null in a list of fixed size, which is valid.
_NOT_DAMAGE: Final = "Expected all lists to be of size="


def lacks_code(error: Exception) -> bool:
    """Return whether an error of pyarrow means that a feature is unsupported, and not that the data is invalid."""
    return isinstance(error, pa.ArrowNotImplementedError) or _NOT_DAMAGE in str(error)


@contextmanager
def reading(path: PathLike) -> Iterator[None]:
    """Convert errors of the Parquet reader in the block, including those during iteration.

    Raises:
        ObjectNotFound: there is no such file.
        IntegrityError: the file cannot be decoded.
        OdfError: it cannot be read, for example for lack of permission or memory, or pyarrow does not support it.
    """
    try:
        yield
    except OdfError:
        raise
    except FileNotFoundError as error:
        raise ObjectNotFound(f"There is no data file {os.fspath(path)}") from error
    except MemoryError as error:  # also raised by pyarrow; a damaged file may request any amount
        raise OdfError(
            f"Not enough memory to read data file {os.fspath(path)}: {error}",
            hint="Close other programs. `odf verify --integrity` checks whether the file is damaged.",
        ) from error
    # Besides pyarrow's own errors, its C++ code raises ValueError (for example for text that is not UTF-8) and
    # IndexError for invalid bytes. A TypeError or KeyError is a fault of the caller.
    except (pa.ArrowException, OSError, ValueError, IndexError) as error:
        if (isinstance(error, OSError) and error.errno is not None) or Path(path).is_dir():
            reason = getattr(error, "strerror", None) or "it is a folder"
            raise OdfError(f"Cannot read data file {os.fspath(path)}: {reason}") from error
        if lacks_code(error):
            raise OdfError(f"Cannot read data file {os.fspath(path)}: {error}", hint=UPGRADE) from error
        raise IntegrityError(
            f"Data file {os.fspath(path)} is damaged: {error}",
            hint="`odf verify --integrity` shows what is damaged; pull the dataset again from an intact copy.",
        ) from error


@contextmanager
def open_parquet(path: PathLike) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; errors in the block are converted as by `reading`."""
    with reading(path), pq.ParquetFile(path) as file:
        yield file


def extremes(metadata: pq.FileMetaData, leaf: int) -> list[tuple[Any, Any] | None]:
    """Return the minimum and maximum of a column in each row group, ignoring nulls and NaN.

    Args:
        metadata: the footer of a file.
        leaf: index of the column, which is not nested.

    Returns:
        None for row groups without such statistics. Times with nanoseconds count as missing, since Python's types
        cannot represent them.
    """
    known = [metadata.row_group(group).column(leaf).statistics for group in range(metadata.num_row_groups)]
    return [None if statistics is None or not statistics.has_min_max else _values(statistics) for statistics in known]


def overall_extremes(metadata: pq.FileMetaData, leaf: int) -> tuple[Any, Any] | None:
    """Return the minimum and maximum of a column in a file; None if there is no row group, or one has no statistics.

    Args:
        metadata: the footer of the file.
        leaf: index of the column, which is not nested.
    """
    found = extremes(metadata, leaf)
    known = [bounds for bounds in found if bounds is not None]
    if not known or len(known) < len(found):
        return None
    return min(least for least, _ in known), max(greatest for _, greatest in known)


def _values(known: pq.Statistics) -> tuple[Any, Any] | None:
    try:
        found = known.min, known.max
    except (ValueError, OverflowError):  # for times outside of Python's range of years
        return None
    return None if any(getattr(value, "nanosecond", 0) for value in found) else found
