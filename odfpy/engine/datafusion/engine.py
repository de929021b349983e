"""DataFusion in process: derivative datasets row by row, preprocessing of ingests, ad hoc queries.

`engine: datafusion` names the dialect and the meaning that the reference implementation gives to a query, and its
datasets verify by replay: the operation type is what the query selects under its name, else every row is appended.
(`engine: spark` passes it through; see the decision record "op in row-by-row queries".)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.data.arrow import from_arrow, plain_schema
from odfpy.data.schema import DataSchema
from odfpy.data.slice import iter_slice, slice_schema
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.dataset.transform import TransformSql
from odfpy.engine.contract import (
    AnalyzeRequest,
    AnalyzeResponse,
    AnalyzeResponseSuccess,
    InputSchema,
    SqlRequest,
    SqlResponse,
    SqlResponseSuccess,
    StepAnalysis,
    TransformRequest,
    TransformRequestInput,
    TransformResponse,
    TransformResponseSuccess,
)
from odfpy.engine.control import Control
from odfpy.engine.datafusion.ad_hoc import DataFusionRows
from odfpy.engine.datafusion.late_hints import check_no_late_hints
from odfpy.engine.datafusion.plan import check_is_query, check_row_by_row, check_total_order, scans
from odfpy.engine.datafusion.session import (
    datafusion_errors,
    name_rows,
    new_session,
    quoted,
    rows_in_order,
    run_query,
)
from odfpy.engine.ipc import even_batches, map_stream, write_stream
from odfpy.engine.lateness import late_tally
from odfpy.engine.output import OutputForm, OutputSlice, output_form
from odfpy.engine.responses import answered
from odfpy.engine.row_stream import Beside, RowStream
from odfpy.engine.source_text import SourceText, step_texts
from odfpy.engine.watermark import input_watermark, least_watermark
from odfpy.errors import InvalidQuery, UnsupportedQuery

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext

ENGINE_RELEASE: Final = 2
"""Counts up whenever this engine gives other results for the same query, inputs and DataFusion."""

_ROWS_AT_ONCE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class DataFusionEngine:
    """Runs SQL with DataFusion in this process."""

    name: str = "datafusion"

    @property
    def version(self) -> str:
        """What results depend on besides query and inputs, as recorded with every transform."""
        return f"odfpy-datafusion/{ENGINE_RELEASE} datafusion/{version('datafusion')}"

    def analyze(self, request: AnalyzeRequest) -> AnalyzeResponse:
        """What the queries of a transform are, without running them."""
        return answered(lambda: _analyze(request))

    def transform(self, request: TransformRequest) -> TransformResponse:
        """Run the queries of a transform over the new rows of its inputs and write the slice."""
        return answered(lambda: _transform(request, self.version))

    def sql(self, request: SqlRequest) -> SqlResponse:
        """Run a query of any class over whole datasets and write its rows as an Arrow IPC stream."""
        return answered(lambda: _sql(request))

    def stream(self, request: SqlRequest, control: Control) -> RowStream:
        """The rows of a query as they are made, by a thread beside this one.

        Raises:
            InvalidQuery: the query is at fault; also while the rows are read.
        """
        rows = DataFusionRows(request)
        return Beside(rows.schema, rows.__iter__, control)

    def preprocess(
        self, transform: TransformSql, tables: Mapping[str, pa.Table], *, spool: Path | None = None
    ) -> pa.Table:
        """The result of a transform of any class over tables, in the order of their rows if row by row.

        Nullability is what DataFusion says of the result, as the schema of a dataset is made from it.

        Args:
            transform: the queries.
            tables: by the names that the queries give them.
            spool: a new file for the rows of the result, which are mapped into memory: then what is row by row takes
                the memory of a few batches; else the result is held in memory.

        Raises:
            InvalidQuery: a query cannot be run; the message names the step.
            NondeterministicQuery: its result would not be a function of the tables.
            UnsupportedQuery: temporal tables.
        """
        context = new_session(deterministic=True)
        for name, table in tables.items():
            # How a file was read must not show in a sum of floating point numbers, which depends on batches.
            name_rows(context, name, table.schema, list(even_batches([table])))
        steps = []
        for frame, source in _steps(context, transform):
            with datafusion_errors(source):
                check_is_query(frame.logical_plan(), source)
                check_total_order(frame.logical_plan(), source)
            steps.append((frame, source))
        frame, source = steps[-1]
        try:
            with datafusion_errors(source):
                schema = plain_schema(frame.schema())
                if spool is None:
                    return pa.Table.from_batches(rows_in_order(frame), schema)
                write_stream(str(spool), schema, rows_in_order(frame))
                return map_stream(str(spool))
        except InvalidQuery:
            _blame_first(steps)
            raise


def _blame_first(steps: Iterable[tuple[DataFrame, SourceText]]) -> None:
    """Raise the error of the first step that cannot be computed: views are run with what is built on them."""
    for frame, source in steps:
        with datafusion_errors(source):
            for _ in rows_in_order(frame):
                pass


def _steps(context: SessionContext, transform: TransformSql) -> Iterator[tuple[DataFrame, SourceText]]:
    """The result of each step, not computed; a step sees those before it."""
    if transform.temporal_tables:
        raise UnsupportedQuery("Temporal table joins are not supported by engine datafusion")
    steps = transform.steps
    for number, (source, step) in enumerate(zip(step_texts(transform), steps, strict=True), start=1):
        with datafusion_errors(source):
            frame = run_query(context, step.query)
            if number < len(steps):
                if step.alias is None:
                    raise InvalidQuery(f"Step {number} has no alias, so that no later step can use it")
                if context.table_exist(quoted(step.alias)):
                    raise InvalidQuery(f"Step {number} has the alias `{step.alias}`, which is taken already")
                context.register_view(quoted(step.alias), frame)
        yield frame, source


# --- Transforms ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Analysis:
    """What is known of a transform before it runs."""

    steps: tuple[StepAnalysis, ...]
    form: OutputForm
    scans: Mapping[str, int]


def _analyzed(
    transform: TransformSql,
    vocab: DatasetVocabulary,
    inputs: Sequence[InputSchema | TransformRequestInput],
    recorded: DataSchema | None = None,
) -> _Analysis:
    context = new_session(deterministic=True)
    names = [source.query_alias for source in inputs]
    if len(set(names)) < len(names):
        raise InvalidQuery("Two inputs have the same alias", hint="Give each input an alias of its own.")
    for text in step_texts(transform):
        check_no_late_hints(text)
    for source in inputs:
        name_rows(context, source.query_alias, _schema_of(source), [])
    steps, frame, plan = [], None, None
    for (frame, text), step in zip(_steps(context, transform), transform.steps, strict=True):
        plan = frame.logical_plan()
        steps.append(StepAnalysis(step.alias, step.query, "row-by-row", check_row_by_row(plan, names, text)))
    result: pa.Schema = frame.schema() if frame is not None else pa.schema([])
    return _Analysis(tuple(steps), output_form(result, vocab, recorded), scans(plan))


def _analyze(request: AnalyzeRequest) -> AnalyzeResponseSuccess:
    analysis = _analyzed(request.transform, request.vocab, request.inputs)
    note = (
        f"`{request.vocab.operation_type_column}` is not selected, so that every row is appended: corrections and "
        "retractions of an input are lost."
    )
    return AnalyzeResponseSuccess(
        steps=analysis.steps,
        output_columns=tuple(analysis.form.schema.names),
        output_schema=from_arrow(analysis.form.schema),
        notes=(note,) if analysis.form.operation_type is None else (),
        watermark=_watermark_in_words([source.query_alias for source in request.inputs]),
        late="passed on",
    )


def _watermark_in_words(inputs: Sequence[str]) -> str:
    words = [f"the watermark of `{name}`" for name in inputs]
    return words[0] if len(words) == 1 else "the least of: " + ", ".join(words)


def _transform(request: TransformRequest, engine_version: str) -> TransformResponseSuccess:
    analysis = _analyzed(request.transform, request.vocab, request.query_inputs, request.recorded_schema)
    output = OutputSlice(
        request.new_data_path, analysis.form, next_offset=request.next_offset, system_time=request.system_time
    )
    with output:
        for batch in _result(request, analysis):
            output.write(batch, _operation_types(batch, analysis.form))
        slices = output.finish()
    return TransformResponseSuccess(
        new_offset_interval=slices[0].offset_interval if slices else None,
        new_watermark=least_watermark(input_watermark(source) for source in request.query_inputs),
        slices=slices,
        engine_version=engine_version,
        output_schema=from_arrow(analysis.form.schema),
        late_rows=sum(late_tally(source).rows for source in request.query_inputs),
    )


def _result(request: TransformRequest, analysis: _Analysis) -> Iterator[pa.RecordBatch]:
    """The rows of the result, those of the first input first.

    A query row by row is linear: its result over all inputs is that over the first, all others being empty, then that
    over the second, and so on; the same for parts of an input, which keeps memory flat. Only where a query reads an
    input twice must the whole of it be there, since all rows of one reading come before those of the next.
    """
    for source in request.query_inputs:
        reads = analysis.scans.get(source.query_alias, 0)
        if not reads:
            continue
        for rows in _parts(_new_rows(source), whole=reads > 1):
            context = new_session(deterministic=True)
            for other in request.query_inputs:
                name_rows(context, other.query_alias, _schema_of(other), rows if other is source else [])
            *_, (frame, text) = _steps(context, request.transform)
            with datafusion_errors(text):
                yield from rows_in_order(frame)


def _parts(batches: Iterable[pa.RecordBatch], *, whole: bool) -> Iterator[list[pa.RecordBatch]]:
    part: list[pa.RecordBatch] = []
    for batch in batches:
        part.append(batch)
        if not whole and sum(rows.num_rows for rows in part) >= _ROWS_AT_ONCE:
            yield part
            part = []
    if part:
        yield part


def _schema_of(source: InputSchema | TransformRequestInput) -> pa.Schema:
    return slice_schema(source.schema_file, vocab=source.vocab)


def _new_rows(source: TransformRequestInput) -> Iterator[pa.RecordBatch]:
    """The rows of an input that are to be processed, in order of offset, with the columns of its schema in force."""
    interval = source.offset_interval
    if interval is None:
        return
    schema = _schema_of(source)
    for path in source.data_paths:
        for batch in iter_slice(path, vocab=source.vocab):
            offset = batch.column(source.vocab.offset_column)
            inside = pc.and_(pc.greater_equal(offset, interval.start), pc.less_equal(offset, interval.end))
            rows = _fitted(batch.filter(inside), schema)
            if rows.num_rows:
                yield rows


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the columns of a schema that may have grown since its slice was written."""
    arrays = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.record_batch(arrays, schema=schema)


def _operation_types(batch: pa.RecordBatch, form: OutputForm) -> pa.Array:
    """The operation types that the query selects, or +A for every row."""
    if form.operation_type is None:
        return pa.array(np.zeros(batch.num_rows, dtype=np.int32))
    selected = batch.column(form.operation_type)
    name = form.vocab.operation_type_column
    if not pa.types.is_integer(selected.type):
        raise InvalidQuery(f"The column `{name}` of the result has type {selected.type} and not an integer type")
    if selected.null_count or pc.any(pc.or_(pc.less(selected, 0), pc.greater(selected, 3))).as_py():
        raise InvalidQuery(f"The column `{name}` of the result has values other than 0, 1, 2 and 3")
    return selected.cast(pa.int32())


# --- Ad hoc ----------------------------------------------------------------------------------------------------------


def _sql(request: SqlRequest) -> SqlResponseSuccess:
    rows = DataFusionRows(request)
    return SqlResponseSuccess(write_stream(request.output_path, rows.schema, rows))
