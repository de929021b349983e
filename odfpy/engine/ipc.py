"""Results of ad hoc queries as Arrow IPC streams."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from odfpy.data.arrow import plain_array, plain_schema
from odfpy.errors import OdfError


def write_stream(path: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> int:
    """Write batches, in plain layout, to a new file.

    Returns:
        the number of rows.

    Raises:
        OdfError: the file cannot be written; nothing is left of it.
    """
    plain = plain_schema(schema)
    rows = 0
    try:
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_stream(sink, plain) as writer:
            for batch in batches:
                arrays = [
                    plain_array(column).cast(field.type) for column, field in zip(batch.columns, plain, strict=True)
                ]
                writer.write_batch(pa.record_batch(arrays, schema=plain))
                rows += batch.num_rows
    except BaseException as error:
        Path(path).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OdfError(f"Cannot write the result to {path}: {error.strerror or error}") from error
        raise
    return rows
