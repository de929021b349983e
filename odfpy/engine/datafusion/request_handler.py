"""The work of DataFusion for a request, in the process forked for it. See `fork_server`."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from odfpy.data.memory import bytes_of
from odfpy.data.schemas.arrow import plain_schema
from odfpy.engine.contract import (
    AnalyzeRequest,
    PreprocessRequest,
    PreprocessResponseSuccess,
    SqlRequest,
    SqlResponseSuccess,
    TransformRequest,
)
from odfpy.engine.datafusion.ad_hoc import DataFusionRows
from odfpy.engine.datafusion.failures import datafusion_errors
from odfpy.engine.datafusion.files import FileRows
from odfpy.engine.datafusion.plan import check_is_query, check_total_order
from odfpy.engine.datafusion.session import name_rows, new_session, rows_in_order
from odfpy.engine.datafusion.trace import trace
from odfpy.engine.datafusion.transform import analyze, query_steps, transform
from odfpy.engine.datafusion.version import engine_version
from odfpy.engine.ipc import map_stream, write_stream
from odfpy.engine.responses import respond, with_files
from odfpy.engine.scans import ScanRequest, scan
from odfpy.engine.sql.files import FilesRequest
from odfpy.engine.sql.source_text import SourceText
from odfpy.engine.tracing import TraceRequest
from odfpy.engine.worker.messages import Job, Result
from odfpy.errors import InvalidQuery, QueryTooDeep, ResultTooLarge, UnsupportedQuery

if TYPE_CHECKING:
    from datafusion import DataFrame

_PIECE_BYTES: Final = 8 << 20
_ROW_BYTES: Final = 64 << 20


def answer(request: Job | ScanRequest | FilesRequest, rows: int) -> Result:
    """Process a request.

    Args:
        request: the request.
        rows: descriptor of a pipe, for the rows of a query that names no file for them.
    """
    return respond(lambda: with_files(lambda: _answer(request, rows)))


def _answer(request: Job | ScanRequest | FilesRequest, rows: int) -> Result:
    try:
        match request:
            case AnalyzeRequest():
                return analyze(request)
            case TransformRequest():
                return transform(request, engine_version())
            case TraceRequest():
                return trace(request)
            case PreprocessRequest():
                return _preprocess(request)
            case SqlRequest(output_path=""):
                query_rows = DataFusionRows(request)
                return _stream(query_rows.schema, query_rows, rows)
            case FilesRequest():
                result = FileRows(request)
                return _stream(result.schema, result, rows)
            case ScanRequest():
                return _stream(request.arrow_schema(), scan(request), rows)
            case SqlRequest():
                query_rows = DataFusionRows(request)
                return SqlResponseSuccess(write_stream(request.output_path, query_rows.schema, query_rows))
    except RecursionError as error:
        raise QueryTooDeep.anywhere() from error
    raise UnsupportedQuery(f"Engine datafusion does not do this: {type(request).__name__}")


def _stream(schema: pa.Schema, batches: Iterable[pa.RecordBatch], rows: int) -> SqlResponseSuccess:
    """Write rows as an Arrow IPC stream; its schema is written before the first row exists."""
    count = 0
    with (
        io.FileIO(rows, "w", closefd=False) as pipe,
        pa.ipc.new_stream(pa.PythonFile(pipe, "w"), schema) as writer,
    ):
        # Arrow writes the schema together with the first batch, so an empty one sends it at once.
        writer.write_batch(pa.RecordBatch.from_pylist([], schema=schema))
        for batch in batches:
            for piece in _pieces(batch):
                writer.write_batch(piece)
            count += batch.num_rows
    return SqlResponseSuccess(count)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches that their reader, which is a server, has room for.

    Raises:
        ResultTooLarge: a row has more bytes than that.
    """
    if bytes_of(batch) <= _PIECE_BYTES:
        yield batch
    elif batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _pieces(batch.slice(0, half))
        yield from _pieces(batch.slice(half))
    elif bytes_of(batch) <= _ROW_BYTES:
        yield batch
    else:
        raise ResultTooLarge(
            f"A row has {bytes_of(batch)} bytes, and may have {_ROW_BYTES}",
            hint="Request other columns, or a part of their values.",
        )


def _preprocess(request: PreprocessRequest) -> PreprocessResponseSuccess:
    """Write the result of queries of any class over tables, in the order of their rows if row by row.

    Nullability is as DataFusion reports it, since the schema of a dataset is built from it.
    """
    context = new_session(deterministic=True)
    for table in request.tables:
        rows = map_stream(table.data_path)
        name_rows(context, table.name, rows.schema, rows.to_batches())
    steps = []
    for frame, source in query_steps(context, request.transform):
        with datafusion_errors(source):
            check_is_query(frame.logical_plan(), source)
            check_total_order(frame.logical_plan(), source)
        steps.append((frame, source))
    frame, source = steps[-1]
    try:
        with datafusion_errors(source):
            schema = plain_schema(frame.schema())
            return PreprocessResponseSuccess(write_stream(request.output_path, schema, rows_in_order(frame)))
    except InvalidQuery:
        _blame_first(steps)
        raise


def _blame_first(steps: Iterable[tuple[DataFrame, SourceText]]) -> None:
    """Raise the error of the first step that fails: views only run together with the query over them."""
    for frame, source in steps:
        with datafusion_errors(source):
            for _ in rows_in_order(frame):
                pass
