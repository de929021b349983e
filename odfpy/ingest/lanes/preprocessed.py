"""Preprocessing of an input that may not fit into memory: rows are passed in files.

The engine gets the rows in an Arrow file that is mapped into memory, and writes its result to another one. Its own
memory use depends on the query: row-by-row queries only need a few batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pyarrow as pa

from odfpy.dataset.transform import TransformSql
from odfpy.engine.ipc import even_batches
from odfpy.engine.registry import EngineRegistry
from odfpy.ingest.lanes.request import LaneRequest
from odfpy.ingest.lanes.runs import write_batches
from odfpy.ingest.lanes.source import SplittableInput, open_table
from odfpy.ingest.preprocess import preprocess
from odfpy.ingest.read import FilePart
from odfpy.ingest.read.files import Incomplete

_READ, _MADE, _PREPROCESSED = "read", "made", "preprocessed"


def preprocess_input(
    transform: TransformSql, request: LaneRequest, engines: EngineRegistry, folder: Path
) -> tuple[LaneRequest, tuple[str, ...]]:
    """Return the ingest of the result of a source's queries.

    Args:
        transform: the queries.
        request: the ingest of the input as it is.
        engines: the engines that run the queries.
        folder: a folder for the rows before and after.

    Returns:
        The ingest, and remarks for the user.

    Raises:
        OdfError: as `odfpy.ingest.read.read` and `odfpy.ingest.preprocess.preprocess`.
    """
    read, made, path = (folder / name for name in (_READ, _MADE, _PREPROCESSED))
    tables = _rows(request, folder)
    first = next(tables)
    write_batches(first.schema, even_batches(chain([first], tables)), str(read))
    rows, remarks = preprocess(transform, open_table(str(read)), engines, spool=made)
    write_batches(rows.schema, rows.to_batches(), str(path))
    for done in (read, made):
        done.unlink(missing_ok=True)
    return replace(request, read=None, path=str(path)), remarks


def _rows(request: LaneRequest, folder: Path) -> Iterator[pa.Table]:
    """Yield the rows of an input as read, part by part; at least one table."""
    source = SplittableInput.of(request, folder)
    rows = 0
    for part in source.parts:
        try:
            table = source.rows(request, part, rows)
        except Incomplete:  # the following parts were cut at the wrong position
            yield source.rows(request, FilePart(part.start), rows)
            return
        yield table
        rows += table.num_rows
