"""Query results as Arrow IPC streams in files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa

from odfpy.data.memory import bytes_of
from odfpy.data.schemas.arrow import plain_schema
from odfpy.data.schemas.retype import plain_batch
from odfpy.errors import OdfError, ResultTooLarge

BATCH_ROWS: Final = 1 << 16
"""Rows of an even batch."""


def write_stream(path: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write batches, in plain layout, to a new file.

    Args:
        path: the file.
        schema: the schema of the rows.
        batches: the rows.

    Returns:
        The number of rows.

    Raises:
        OdfError: the file cannot be written; it is removed.
    """
    plain = plain_schema(schema)
    rows = 0
    try:
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, plain) as writer:
            for batch in batches:
                writer.write_batch(plain_batch(batch, plain))
                rows += batch.num_rows
    except BaseException as error:
        Path(path).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OdfError(f"Cannot write the result to {path}: {error.strerror or error}") from error
        raise
    return rows


def within(
    batches: Iterable[pa.RecordBatch], skip: int, limit: int | None, max_bytes: int | None
) -> Iterator[pa.RecordBatch]:
    """Yield some of the rows.

    Args:
        batches: the rows.
        skip: how many rows to skip.
        limit: the maximum number of rows.
        max_bytes: the maximum number of bytes.

    Raises:
        ResultTooLarge: the rows have more bytes.
    """
    size = 0
    for batch in batches if limit != 0 else ():
        rows = batch.slice(skip, limit)
        skip -= min(skip, batch.num_rows)
        if not rows.num_rows:
            continue
        size += bytes_of(rows)
        if max_bytes is not None and size > max_bytes:
            raise ResultTooLarge(
                f"The result has more than {max_bytes} bytes",
                hint="Request fewer rows or columns, or read the rows in parts.",
            )
        yield rows
        if limit is not None:
            limit -= rows.num_rows
            if not limit:
                return


def map_stream(path: str) -> pa.Table:
    """Map the rows of a stream in a file, which are loaded only as needed; the file may be unlinked."""
    with pa.memory_map(path) as file, pa.ipc.open_stream(file) as reader:
        return reader.read_all()


def even_batches(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    """The rows of several tables in batches of `BATCH_ROWS`, however they were cut; those that are so already are not
    copied.
    """
    left: pa.Table | None = None
    for table in tables:
        rows = table if left is None else pa.concat_tables([left, table])
        stop = rows.num_rows // BATCH_ROWS * BATCH_ROWS
        for start in range(0, stop, BATCH_ROWS):
            yield from rows.slice(start, BATCH_ROWS).combine_chunks().to_batches()
        left = rows.slice(stop)
    if left is not None and left.num_rows:
        yield from left.combine_chunks().to_batches()
