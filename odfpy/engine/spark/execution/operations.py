"""Operations of the Spark engine: analyze, transform, sql. Mistakes of users are responses, not exceptions."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from odfpy.engine.bounds import is_append_only
from odfpy.engine.contract import (
    AnalyzeRequest,
    AnalyzeResponse,
    AnalyzeResponseSuccess,
    SliceDescription,
    SqlRequest,
    SqlResponse,
    SqlResponseSuccess,
    TransformRequest,
    TransformResponse,
    TransformResponseNeedsHistory,
    TransformResponseSuccess,
)
from odfpy.engine.ipc import within, write_stream
from odfpy.engine.responses import respond
from odfpy.engine.spark.analysis.analysis import analyze_query
from odfpy.engine.spark.analysis.event_time import output_watermark
from odfpy.engine.spark.analysis.stars import refuse_star
from odfpy.engine.spark.execution.converge import write_difference
from odfpy.engine.spark.execution.describe import describe, output_schema
from odfpy.engine.spark.execution.emit import write_delta
from odfpy.engine.spark.execution.prepare import prepare
from odfpy.engine.spark.execution.stateful import Stateful, watermark_of, write_changes
from odfpy.engine.spark.execution.tally import tally
from odfpy.engine.spark.incremental.rehearsal import rehearse
from odfpy.engine.spark.incremental.streams import HistoryNeeded
from odfpy.engine.spark.plan.catalyst import Catalyst
from odfpy.engine.spark.plan.failures import spark_errors
from odfpy.engine.spark.plan.times import Clock
from odfpy.engine.spark.plan.types import arrow_schema
from odfpy.engine.spark.process.session import request_session, version_of
from odfpy.engine.spark.rows.batches import ROWS_IN_ONE_TASK
from odfpy.engine.spark.rows.parallelism import gather_few
from odfpy.engine.spark.rows.tables import Table, name_projected
from odfpy.engine.spark.rows.write import batches_of
from odfpy.engine.sql.source_text import SourceText, step_texts
from odfpy.engine.watermark import input_watermark
from odfpy.errors import InvalidQuery
from odfpy.stages import stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_MAX_OF_SPARK: Final = (1 << 31) - 1
"""The maximum number of rows that Spark can skip or take."""


def analyze(spark: SparkSession, request: AnalyzeRequest) -> AnalyzeResponse:
    """Return the properties of the queries of a transform, without running them."""
    return respond(lambda: _analyze(spark, request))


def transform(
    spark: SparkSession, request: TransformRequest, *, rows_in_one_task: int = ROWS_IN_ONE_TASK
) -> TransformResponse:
    """Run the queries of a transform over the new rows of its inputs, and write the slice.

    Queries that work row by row have no state. Other queries may read earlier rows; if the request does not contain
    these, the response asks for them.

    Args:
        spark: the session.
        request: the request.
        rows_in_one_task: number of rows up to which one task does the work.
    """
    try:
        return respond(lambda: _transform(spark, request, rows_in_one_task))
    except HistoryNeeded:
        past = (at for at, source in enumerate(request.query_inputs) if source.prev_offset is not None)
        return TransformResponseNeedsHistory(tuple(past), output=request.query_changed)


def sql(spark: SparkSession, request: SqlRequest) -> SqlResponse:
    """Run a query of any class over whole datasets and write its rows as an Arrow IPC stream."""
    return respond(lambda: _sql(spark, request))


def _analyze(spark: SparkSession, request: AnalyzeRequest) -> AnalyzeResponseSuccess:
    tables = tuple(Table.of(source) for source in request.inputs)
    with prepare(spark, request.transform, request.vocab, tables) as ready:
        if isinstance(ready, Stateful):
            for fragment in ready.steps.fragments:
                rehearse(ready.catalyst, fragment, Clock(ready.catalyst, [None] * len(tables)))
        elif ready.plan.star is not None:
            raise refuse_star(ready.plan.star, tables)
        return describe(ready, tables)


def _transform(spark: SparkSession, request: TransformRequest, rows_in_one_task: int) -> TransformResponseSuccess:
    tables = tuple(Table.of(source) for source in request.query_inputs)
    scratch = Path(request.new_data_path).parent
    with prepare(spark, request.transform, request.vocab, tables, scratch, request.recorded_schema) as ready:
        if isinstance(ready, Stateful):
            with stage("watermark"):
                watermark = watermark_of(ready, request)
            slices = _write_stateful(ready, request, version_of(spark), rows_in_one_task)
        else:
            if ready.plan.star is not None and not all(
                is_append_only(table.data_paths, table.vocab.operation_type_column) for table in tables
            ):
                raise refuse_star(ready.plan.star, tables)
            known = [input_watermark(source) for source in request.query_inputs]
            before = [source.prev_watermark for source in request.query_inputs]
            with stage("watermark"):
                watermark = output_watermark(
                    ready.catalyst, ready.plan.time_origins, ready.delta.branches, tables, known, before
                )
            names = [table.name for table in tables]
            rows = [table.num_rows for table in tables]
            if not any(branch.fans_out for branch in ready.delta.branches):
                gather_few(ready.catalyst.spark, sum(rows))
            with stage("output"):
                slices = write_delta(ready.catalyst, ready.delta, ready.layout, request, rows, names, rows_in_one_task)
        with stage("late rows"):
            late, ignored = tally(ready, request)
        with stage("answer"):
            schema, version = output_schema(ready), version_of(spark)
        return TransformResponseSuccess(
            new_offset_interval=slices[0].offset_interval if slices else None,
            new_watermark=watermark,
            slices=slices,
            engine_version=version,
            output_schema=schema,
            late_rows=late,
            ignored_rows=ignored,
        )


def _write_stateful(
    ready: Stateful, request: TransformRequest, engine: str, rows_in_one_task: int
) -> tuple[SliceDescription, ...]:
    """Write the changes of the result of a stateful query.

    If an expression fails for a row, the row may have been retracted in the meantime, and not be part of the state. So
    the query is then run once more over rows with retractions cancelled out. This is not the default, since looking for
    such rows takes time.
    """
    write = write_difference if request.query_changed else write_changes
    try:
        with spark_errors(step_texts(request.transform)):
            return write(ready, request, engine, rows_in_one_task)
    except InvalidQuery:
        if not _has_retractions(request):
            raise
        scratch = ready.scratch / "net"
        scratch.mkdir()
        return write(replace(ready, scratch=scratch, nets_rows=True), request, engine, rows_in_one_task)


def _has_retractions(request: TransformRequest) -> bool:
    """Return whether a request has rows that are not appended."""
    return not all(
        is_append_only([*source.data_paths, *(source.history_paths or ())], source.vocab.operation_type_column)
        for source in request.query_inputs
    )


def _sql(spark: SparkSession, request: SqlRequest) -> SqlResponseSuccess:
    source = SourceText(request.shown or request.query)
    folder = TemporaryDirectory(prefix="engine-", dir=Path(request.output_path).parent)
    with folder as scratch, spark_errors([source]):
        catalyst = Catalyst(request_session(spark))
        for number, table in enumerate(request.tables):
            name_projected(catalyst, table, f"__odf_log_{number}", Path(scratch))
        names = [table.name for table in request.tables]
        frame = catalyst.dataframe(analyze_query(catalyst, SourceText(request.query), names, shown=source))
        skip = request.skip
        if skip + (request.limit or 0) <= _MAX_OF_SPARK:
            frame, skip = frame.offset(skip) if skip else frame, 0
            frame = frame if request.limit is None else frame.limit(request.limit)
        schema = arrow_schema(frame.schema)
        rows = within(batches_of(frame), skip, request.limit, request.max_bytes)
        # Write an empty batch first: whoever reads the stream then learns the columns early.
        no_rows = [pa.RecordBatch.from_pylist([], schema)]
        return SqlResponseSuccess(write_stream(request.output_path, schema, chain(no_rows, rows)))
