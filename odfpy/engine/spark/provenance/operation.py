"""What the engine does with a request to trace rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from odfpy.data.vocabulary import OperationType
from odfpy.engine.ipc import write_stream
from odfpy.engine.responses import answered
from odfpy.engine.spark.catalyst import columns
from odfpy.engine.spark.classes.base import CARRIED
from odfpy.engine.spark.prepare import Prepared, prepared
from odfpy.engine.spark.provenance.columns import column_origins
from odfpy.engine.spark.provenance.identifiers import IDS, identifier, parts_of
from odfpy.engine.spark.provenance.moment import Then
from odfpy.engine.spark.provenance.wanted import Wanted
from odfpy.engine.spark.stateful import Stateful
from odfpy.engine.spark.tables import Table
from odfpy.engine.spark.write import batches_of
from odfpy.engine.tracing import INPUT, OFFSET, WANTED, WAY, TraceRequest, TraceResponse, TraceResponseSuccess

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ANSWER: Final = pa.schema([(WANTED, pa.int64()), (WAY, pa.int32()), (INPUT, pa.int32()), (OFFSET, pa.int64())])
_LESS: Final = (int(OperationType.RETRACT), int(OperationType.CORRECT_FROM))
_SIGN: Final = "__odf_sign"


def trace(spark: SparkSession, request: TraceRequest) -> TraceResponse:
    """Which rows of the inputs some rows of an output are made of."""
    return answered(partial(_trace, spark, request))


def _trace(spark: SparkSession, request: TraceRequest) -> TraceResponseSuccess:
    tables = tuple(Table.of(source) for source in request.query_inputs)
    scratch = Path(request.output_path).parent
    with prepared(spark, request.transform, request.vocab, tables, scratch, request.recorded_schema) as ready:
        wanted = Wanted.read(request.wanted_path, ready.form)
        frame, by_time = _of_state(ready, request, scratch) if isinstance(ready, Stateful) else (_of_rows(ready), True)
        narrowed = wanted.narrowed(frame, by_time=by_time)
        found = _found(wanted, batches_of(narrowed), has_sign=isinstance(ready, Prepared))
        batch = pa.RecordBatch.from_pylist(list(_answer(found)), schema=_ANSWER)
        rows = write_stream(request.output_path, _ANSWER, [batch])
        return TraceResponseSuccess(rows, column_origins(ready))


def _of_state(ready: Stateful, request: TraceRequest, scratch: Path) -> tuple[DataFrame, bool]:
    """The result as it was, with identifiers; and whether conditions on times hold for the rows below, too."""
    then = Then(ready, request.query_inputs, scratch)
    plan = then.result()
    names = [f"c{at}" for at in range(len(columns(plan)) - 1)]
    return ready.catalyst.dataframe(plan).toDF(*names, IDS), not then.annotator.has_sessions


def _of_rows(ready: Prepared) -> DataFrame:
    """The rows of the runs, each of which stands for one row of an input."""
    from pyspark.sql import functions

    names = [f"c{at}" for at in range(len(columns(ready.delta.plan)) - len(CARRIED))]
    frame = ready.catalyst.dataframe(ready.delta.plan).toDF(*names, *CARRIED)
    source, _, offset, operation = map(functions.col, CARRIED)
    sign = functions.when(operation.isin(*_LESS), -1).otherwise(1)
    number = functions.array(identifier(offset, source))
    return frame.select(*names, number.alias(IDS), sign.alias(_SIGN))


def _found(
    wanted: Wanted, batches: Iterable[pa.RecordBatch], *, has_sign: bool
) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
    """Rows that are wanted, each with all that it may be made of."""
    for batch in batches:
        signs = batch.column(_SIGN).to_pylist() if has_sign else None
        for at, (key, ids) in enumerate(zip(wanted.keys_of(batch), batch.column(IDS).to_pylist(), strict=True)):
            made_of = tuple(sorted({parts_of(number) for number in ids}))
            for sign in (1, -1) if signs is None else (signs[at],):
                for number in wanted.numbers.get((key, sign), ()):
                    yield number, made_of


def _answer(found: Iterable[tuple[int, tuple[tuple[int, int], ...]]]) -> Iterator[dict[str, int]]:
    """In an order that does not depend on how Spark works."""
    ways: defaultdict[int, list[tuple[tuple[int, int], ...]]] = defaultdict(list)
    for number, made_of in found:
        ways[number].append(made_of)
    for number in sorted(ways):
        for way, made_of in enumerate(sorted(ways[number])):
            for source, offset in made_of:
                yield {WANTED: number, WAY: way, INPUT: source, OFFSET: offset}
