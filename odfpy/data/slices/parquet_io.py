"""Opening Parquet files so that whatever is wrong with them becomes one of our own errors."""

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


UPGRADE: Final = f"pyarrow {pa.__version__} does not support such columns. Try a newer version: pip install -U pyarrow"
"""What to try where a library is at fault, and not a file."""

# What releases before 24 say of a null among lists of a fixed size, which others write and read.
_NOT_DAMAGE: Final = "Expected all lists to be of size="


def lacks_code(error: Exception) -> bool:
    """Return whether an error of pyarrow says that it cannot do something, rather than that data are wrong."""
    return isinstance(error, pa.ArrowNotImplementedError) or _NOT_DAMAGE in str(error)


@contextmanager
def reading(path: PathLike) -> Iterator[None]:
    """Turn errors of the Parquet reader into ours, also while iterating.

    Raises:
        ObjectNotFound: there is no such file.
        IntegrityError: the file cannot be decoded.
        OdfError: it cannot be read, for want of permission or memory for example, or of code in the installed pyarrow.
    """
    try:
        yield
    except OdfError:
        raise
    except FileNotFoundError as error:
        raise ObjectNotFound(f"There is no data file {os.fspath(path)}") from error
    except MemoryError as error:  # also of pyarrow; a damaged file may ask for any amount
        raise OdfError(
            f"Not enough memory to read data file {os.fspath(path)}: {error}",
            hint="Close other programs. `odf verify --integrity` checks whether the file is damaged.",
        ) from error
    # Of what is not pyarrow's own, its C++ throws ValueError (text that is not UTF-8, for one) and IndexError for bytes
    # that make no sense. A TypeError or KeyError is a fault of the caller.
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
    """Open a Parquet file; errors inside the block are turned into ours as by `reading`."""
    with reading(path), pq.ParquetFile(path) as file:
        yield file


def extremes(metadata: pq.FileMetaData, leaf: int) -> list[tuple[Any, Any] | None]:
    """Return the least and the greatest value of a column in each row group, nulls and NaN aside.

    Args:
        metadata: the footer of a file.
        leaf: number of the column, which is not nested.

    Returns:
        None for row groups of which the footer tells nothing. That includes times with nanoseconds, which Python's
        own cannot have.
    """
    known = [metadata.row_group(group).column(leaf).statistics for group in range(metadata.num_row_groups)]
    return [None if one is None or not one.has_min_max else _values(one) for one in known]


def overall_extremes(metadata: pq.FileMetaData, leaf: int) -> tuple[Any, Any] | None:
    """Return the least and greatest value of a column in a file; None if it has no row group, or one does not tell.

    Args:
        metadata: the footer of the file.
        leaf: number of the column, which is not nested.
    """
    found = extremes(metadata, leaf)
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found):
        return None
    return min(least for least, _ in known), max(greatest for _, greatest in known)


def _values(known: pq.Statistics) -> tuple[Any, Any] | None:
    try:
        found = known.min, known.max
    except (ValueError, OverflowError):  # of times out of the years that Python has
        return None
    return None if any(getattr(value, "nanosecond", 0) for value in found) else found
