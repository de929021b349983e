"""Preprocessing of an ingest's rows in Spark SQL before they are merged (ODF specification, "Preprocess").

Queries of any class are allowed, since each input is processed once and by itself; but as for derivative datasets, the
result must be a function of the input, and so must its order. If all steps work row by row, the rows keep the order of
the input, however Spark partitions them. Otherwise everything runs in one task over the rows in their order, so that
functions that depend on it (`row_number`, `first`, `collect_list`) always give the same result; the result is ordered
by a final ORDER BY if there is one, else by all columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.engine.contract import PreprocessRequest, PreprocessResponse, PreprocessResponseSuccess, PreprocessTable
from odfpy.engine.floats import normalize_floats
from odfpy.engine.ipc import write_stream
from odfpy.engine.responses import respond
from odfpy.engine.spark.analysis.analysis import check_names, each_step
from odfpy.engine.spark.analysis.classification import row_by_row_reason
from odfpy.engine.spark.analysis.determinism import check_deterministic, check_rows
from odfpy.engine.spark.analysis.hints import check_no_hints
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, children, columns, operator_name
from odfpy.engine.spark.plan.failures import spark_errors
from odfpy.engine.spark.plan.operators import ARRANGING
from odfpy.engine.spark.plan.session_windows import with_fences
from odfpy.engine.spark.plan.step import CARRIED_BRANCH, CARRIED_INPUT, CARRIED_OFFSET, CARRIED_OPERATION, Step
from odfpy.engine.spark.plan.types import arrow_schema, spark_schema
from odfpy.engine.spark.plan.unchanged import unchanged_columns
from odfpy.engine.spark.process.session import request_session
from odfpy.engine.spark.process.shared_files import read_parquet
from odfpy.engine.spark.row_by_row.carry import carry
from odfpy.engine.spark.rows.batches import ROWS_IN_ONE_TASK, in_input_order
from odfpy.engine.spark.rows.handover import ROW_NUMBER
from odfpy.engine.spark.rows.write import batches_of
from odfpy.engine.sql.source_text import step_texts
from odfpy.errors import UnsupportedQuery
from odfpy.stages import stage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

_ORDER: Final = (CARRIED_INPUT, CARRIED_BRANCH, CARRIED_OFFSET)
_KEEP_ORDER: Final = ("Project", "Filter", "SubqueryAlias", "View", "GlobalLimit", "LocalLimit", "Offset")


def preprocess(
    spark: SparkSession,
    request: PreprocessRequest,
    *,
    sort: bool = False,
    rows_in_one_task: int = ROWS_IN_ONE_TASK,
) -> PreprocessResponse:
    """Run the queries of an ingest over its rows and write the result as an Arrow IPC stream.

    Args:
        spark: the session of the process.
        request: queries, tables and where to write.
        sort: whether to sort rows of row-by-row queries, though they come in order; has no effect on the result.
        rows_in_one_task: the number of rows up to which one task sorts; has no effect on the result.
    """
    return respond(lambda: _preprocess(spark, request, sort, rows_in_one_task))


def _preprocess(
    spark: SparkSession, request: PreprocessRequest, sort: bool, rows_in_one_task: int
) -> PreprocessResponseSuccess:
    with spark_errors(step_texts(request.transform)):
        with stage("analysis"):
            analyzed = _look(spark, request, in_order=False)
            if not analyzed.is_row_by_row:
                analyzed = _look(spark, request, in_order=True)
            schema = arrow_schema(analyzed.catalyst.dataframe(analyzed.plan).schema)
            unchanged = unchanged_columns(analyzed.plan, request.tables)
        exact = {column.position for column in unchanged}

        def write(rows: Iterator[pa.RecordBatch]) -> int:
            return write_stream(request.output_path, schema, (_result(part, schema, exact) for part in rows))

        if not analyzed.is_row_by_row:
            return PreprocessResponseSuccess(write(_in_one_task(analyzed)), unchanged)
        if not sort:
            with suppress(OutOfOrder):
                return PreprocessResponseSuccess(write(in_order(_unsorted(analyzed))), unchanged)
        return PreprocessResponseSuccess(write(_sorted(analyzed, rows_in_one_task)), unchanged)


# --- Analysis --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _AnalyzedQueries:
    """Analyzed queries that may be run.

    Attributes:
        catalyst: the session of this request.
        last: the last step, whose result is that of all queries.
        is_row_by_row: whether every step works row by row.
        num_rows: the number of rows of each table.
    """

    catalyst: Catalyst
    last: Step
    is_row_by_row: bool
    num_rows: tuple[int, ...]

    @property
    def plan(self) -> Node:
        """Return the plan of the result."""
        return self.last.plan


def _look(spark: SparkSession, request: PreprocessRequest, *, in_order: bool) -> _AnalyzedQueries:
    catalyst = Catalyst(request_session(spark))
    if in_order:
        catalyst.spark.conf.set("spark.sql.shuffle.partitions", "1")
    tables = request.tables
    num_rows = tuple(_name_table(catalyst, table, at, in_order=in_order) for at, table in enumerate(tables))

    def visit(step: Step, *, is_last: bool) -> tuple[Step, bool]:  # noqa: ARG001  its order is kept in any case
        check_no_hints(catalyst, step.source)
        _check(catalyst, step)
        in_their_order = all(operator.name not in ARRANGING for operator in step.operators)
        return step, in_their_order and row_by_row_reason(step) is not None

    steps = each_step(catalyst, request.transform, [table.name for table in tables], visit)
    return _AnalyzedQueries(catalyst, steps[-1][0], all(row_by_row for _, row_by_row in steps), num_rows)


def _name_table(catalyst: Catalyst, table: PreprocessTable, position: int, *, in_order: bool) -> int:
    """Register a table as a view with the columns that row-by-row queries carry; return its number of rows."""
    with pq.ParquetFile(table.data_path) as file:
        count: int = file.metadata.num_rows
        fields = list(file.schema_arrow)
    wanted = _spark_schema(pa.schema(fields), table.name)
    if count:
        frame = read_parquet(catalyst.spark, wanted, [table.data_path])
        rows = catalyst.plan(frame.coalesce(1).sortWithinPartitions(ROW_NUMBER) if in_order else frame)
    else:
        rows = catalyst.empty(wanted)
    *data, number = columns(rows)
    exposed = [
        column if field.nullable else catalyst.alias(catalyst.never_null(column), field.name)
        for field, column in zip(fields, data, strict=False)
    ]
    carried = {
        CARRIED_INPUT: catalyst.integer(position),
        CARRIED_OFFSET: number,
        CARRIED_OPERATION: catalyst.integer(0),
    }
    inner = catalyst.project([*exposed, *(catalyst.alias(value, name) for name, value in carried.items())], rows)
    catalyst.name_view(table.name, catalyst.project(columns(inner)[: len(exposed)], inner))
    return count


def _spark_schema(schema: pa.Schema, name: str) -> StructType:
    try:
        return spark_schema(schema, name)
    except UnsupportedQuery as error:
        hint = "Declare another type in the source's schema, or preprocess with `engine: datafusion`."
        raise UnsupportedQuery(error.message, hint=hint) from error


def _check(catalyst: Catalyst, step: Step) -> None:
    """Refuse queries that do not always give the same result, including subqueries in expressions."""
    check_names(step)
    check_deterministic(catalyst, step.plan, step.source)
    check_rows(step.plan, step.source)


# --- Rows ------------------------------------------------------------------------------------------------------------


class OutOfOrder(Exception):
    """Signals that rows did not come in the order of the input."""


def in_order(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass batches on as long as their rows come in the order that sorting would give them.

    Raises:
        OutOfOrder: a row precedes one that it should follow.
    """
    last = (-1, -1, -1)
    for batch in batches:
        keys = [np.asarray(batch.column(name).to_numpy(), dtype=np.int64) for name in _ORDER]
        if not batch.num_rows:
            continue
        first = (int(keys[0][0]), int(keys[1][0]), int(keys[2][0]))
        later = np.zeros(batch.num_rows - 1, dtype=np.bool_)
        for key in reversed(keys):  # by the last key, unless an earlier key decides
            step = np.diff(key)
            later = np.where(step == 0, later, step < 0)
        if first < last or later.any():
            raise OutOfOrder
        last = (int(keys[0][-1]), int(keys[1][-1]), int(keys[2][-1]))
        yield batch


def _unsorted(analyzed: _AnalyzedQueries) -> Iterator[pa.RecordBatch]:
    """Return rows without sorting them: at present, Spark splits a file into ranges and returns one after the other."""
    frame = analyzed.catalyst.dataframe(carry(analyzed.catalyst, analyzed.last.plan).plan)
    return batches_of(frame)


def _sorted(analyzed: _AnalyzedQueries, rows_in_one_task: int) -> Iterator[pa.RecordBatch]:
    delta = carry(analyzed.catalyst, analyzed.last.plan)
    frame = in_input_order(analyzed.catalyst.dataframe(delta.plan), delta, analyzed.num_rows, rows_in_one_task)
    return batches_of(frame)


def _in_one_task(analyzed: _AnalyzedQueries) -> Iterator[pa.RecordBatch]:
    frame = analyzed.catalyst.dataframe(with_fences(analyzed.catalyst, analyzed.plan))
    if not _is_ordered(analyzed.plan):
        named = frame.toDF(*(f"c{at}" for at in range(len(frame.columns))))
        frame = named.coalesce(1).sortWithinPartitions(*(_sortable(named, at) for at in range(len(named.columns))))
    return batches_of(frame)


def _is_ordered(plan: Node) -> bool:
    """Return whether a query ends with an ORDER BY."""
    name = operator_name(plan)
    if name == "WithCTE":
        return _is_ordered(plan.plan())
    return name == "Sort" or (name in _KEEP_ORDER and _is_ordered(children(plan)[0]))


def _sortable(frame: DataFrame, at: int) -> Column:
    from pyspark.sql import functions

    column = frame[f"c{at}"]
    return functions.to_json(functions.struct(column)) if "map<" in frame.schema[at].simpleString() else column


def _result(rows: pa.RecordBatch, schema: pa.Schema, exact: Collection[int]) -> pa.RecordBatch:
    """Return the columns of the result, with computed floats normalized, since processors differ in their NaN."""
    batch = pa.record_batch(rows.columns[: len(schema)], schema=schema)
    one_form = normalize_floats(batch)
    return pa.record_batch(
        [(batch if at in exact else one_form).column(at) for at in range(len(schema))], schema=schema
    )
