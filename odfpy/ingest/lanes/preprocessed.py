"""Preprocessing of an input that may not fit into memory: the rows go from file to file.

The engine gets the rows as read in an Arrow file that is mapped into memory, and gives those that it makes in another.
How much memory it takes itself depends on the query: what works row by row takes a few batches.
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
    """The ingest of what the queries of a source make of its input.

    Args:
        transform: the queries.
        request: the ingest of the input as it is.
        engines: who runs them.
        folder: for the rows before and after.

    Returns:
        The ingest, and remarks for the person.

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
    """The rows of an input as read, part by part; at least one table."""
    source = SplittableInput.of(request, folder)
    rows = 0
    for part in source.parts:
        try:
            table = source.rows(request, part, rows)
        except Incomplete:  # what follows was cut in the wrong place
            yield source.rows(request, FilePart(part.start), rows)
            return
        yield table
        rows += table.num_rows
