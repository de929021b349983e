"""The operation that traces rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from odfpy.data.vocabulary import OperationType
from odfpy.engine.responses import respond
from odfpy.engine.spark.execution.prepare import PreparedTransform, prepare
from odfpy.engine.spark.execution.stateful import Stateful
from odfpy.engine.spark.plan.catalyst import columns
from odfpy.engine.spark.plan.operators import ROW_OPERATORS
from odfpy.engine.spark.plan.step import CARRIED_BRANCH
from odfpy.engine.spark.provenance.columns import column_origins
from odfpy.engine.spark.provenance.find_rows import narrow, result_keys
from odfpy.engine.spark.provenance.identifiers import IDS, identifier, parts_of
from odfpy.engine.spark.provenance.inputs_at import TransformAt
from odfpy.engine.spark.row_by_row.carried import CARRIED
from odfpy.engine.spark.rows.tables import Table
from odfpy.engine.spark.rows.write import batches_of
from odfpy.engine.traced_rows import SourceRow, TraceTarget, write_answer
from odfpy.engine.tracing import TraceRequest, TraceResponse, TraceResponseSuccess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LESS: Final = (int(OperationType.RETRACT), int(OperationType.CORRECT_FROM))
_SIGN: Final = "__odf_sign"
_GROUPING: Final = frozenset(("Aggregate", "Distinct"))
_OTHERS: Final = ROW_OPERATORS | {"Expand"}


def trace(spark: SparkSession, request: TraceRequest) -> TraceResponse:
    """Return the input rows from which rows of an output are derived."""
    return respond(partial(_trace, spark, request))


def _trace(spark: SparkSession, request: TraceRequest) -> TraceResponseSuccess:
    tables = tuple(Table.of(source) for source in request.query_inputs)
    scratch = Path(request.output_path).parent
    with prepare(spark, request.transform, request.vocab, tables, scratch, request.recorded_schema) as ready:
        wanted = TraceTarget.read(request.wanted_path, ready.layout)
        if isinstance(ready, Stateful):
            then = TransformAt(ready, request.query_inputs, scratch)
            frame, by_time = _of_state(then)
            if request.has_earlier and not _only_adds(then):
                return TraceResponseSuccess(0, is_complete=False)
        else:
            frame, by_time = _of_rows(ready), True
        candidates = narrow(frame, wanted, by_time=by_time)
        ways = _ways(wanted, batches_of(candidates), by_rows=isinstance(ready, PreparedTransform))
        return TraceResponseSuccess(write_answer(request.output_path, ways), column_origins(ready))


def _only_adds(then: TransformAt) -> bool:
    """Return whether a row whose input rows all existed earlier was derived from the same ones then.

    This holds if nothing is retracted, and a row-by-row query is grouped once. A group without newer rows was the same,
    and was emitted no later than now, since the time that it waits for is one of its grouping values. (It does not hold
    for sessions, nor for nested groups: rows leave a group whose own values change. If rows do not show their grouping
    values, another group may have replaced a changed one.)
    """
    operators = [operator for step in then.ready.steps.steps for operator in step.step.operators]
    names = [operator.name for operator in operators]
    return (
        then.only_appended
        and not then.annotator.has_sessions
        and then.ready.steps.last.info.unique is not None
        and all(name in _OTHERS or name in _GROUPING for name in names)
        and sum(name in _GROUPING for name in names) == 1
        and all(operator.subquery is None for operator in operators)
        and len(then.ready.steps.fragments) == 1  # temporal tables are fragments, too
    )


def _of_state(then: TransformAt) -> tuple[DataFrame, bool]:
    """Return the result as it was, with identifiers; and whether conditions on times hold for the rows below, too."""
    plan = then.result()
    names = [f"c{at}" for at in range(len(columns(plan)) - 1)]
    return then.catalyst.dataframe(plan).toDF(*names, IDS), not then.annotator.has_sessions


def _of_rows(ready: PreparedTransform) -> DataFrame:
    """Return the rows of the runs, each of which represents one row of an input."""
    from pyspark.sql import functions

    names = [f"c{at}" for at in range(len(columns(ready.delta.plan)) - len(CARRIED))]
    frame = ready.catalyst.dataframe(ready.delta.plan).toDF(*names, *CARRIED)
    source, branch, offset, operation = map(functions.col, CARRIED)
    sign = functions.when(operation.isin(*_LESS), -1).otherwise(1)
    number = functions.array(identifier(offset, source))
    return frame.select(*names, number.alias(IDS), sign.alias(_SIGN), branch.alias(CARRIED_BRANCH))


def _ways(
    wanted: TraceTarget, batches: Iterable[pa.RecordBatch], *, by_rows: bool
) -> Mapping[int, Sequence[Sequence[SourceRow]]]:
    """Return all derivations of the searched rows, in an order that does not depend on Spark's scheduling."""
    ways: defaultdict[int, list[Sequence[SourceRow]]] = defaultdict(list)
    for batch in batches:
        keys = result_keys(wanted.layout, batch)
        signs, branches = (
            batch.column(name).to_pylist() if by_rows else [default] * len(keys)
            for name, default in ((_SIGN, 1), (CARRIED_BRANCH, -1))
        )
        for key, ids, sign, branch in zip(keys, batch.column(IDS).to_pylist(), signs, branches, strict=True):
            for number in wanted.numbers.get((key, sign), ()):
                ways[number].append(sorted({(*parts_of(identifier), branch) for identifier in ids}))
    return {number: sorted(ways_of_row, key=tuple) for number, ways_of_row in ways.items()}
