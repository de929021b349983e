"""Transforms in process: analysis of their queries, and their results over the new rows of the inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.data.schemas.arrow import from_arrow
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.slices.slice import iter_slice, slice_schema
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.dataset.transform import TransformSql
from odfpy.engine.contract import (
    ROW_BY_ROW,
    AnalyzeRequest,
    AnalyzeResponseSuccess,
    InputSchema,
    StepAnalysis,
    TransformRequest,
    TransformRequestInput,
    TransformResponseSuccess,
)
from odfpy.engine.datafusion.failures import datafusion_errors
from odfpy.engine.datafusion.plan import check_row_by_row, scans
from odfpy.engine.datafusion.session import (
    name_rows,
    new_session,
    quoted,
    rows_in_order,
    run_query,
)
from odfpy.engine.lateness.hints import check_no_late_hints
from odfpy.engine.lateness.slices import late_tally
from odfpy.engine.output import OutputLayout, OutputSlice, output_layout
from odfpy.engine.sql.source_text import SourceText, step_texts
from odfpy.engine.watermark import input_watermark, least_watermark
from odfpy.errors import InvalidQuery, UnsupportedQuery
from odfpy.stages import stage, staged

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext

_ROWS_AT_ONCE: Final = 1 << 20


def query_steps(context: SessionContext, transform: TransformSql) -> Iterator[tuple[DataFrame, SourceText]]:
    """Yield the result of each step, not computed; a step sees those before it."""
    if transform.temporal_tables:
        raise UnsupportedQuery("Temporal table joins are not supported by engine datafusion")
    steps = transform.steps
    for number, (source, step) in enumerate(zip(step_texts(transform), steps, strict=True), start=1):
        with datafusion_errors(source):
            frame = run_query(context, step.query)
            if number < len(steps):
                if step.alias is None:
                    raise InvalidQuery(f"Step {number} has no alias, so no later step can use it")
                if context.table_exist(quoted(step.alias)):
                    raise InvalidQuery(f"Step {number} has the alias `{step.alias}`, which is already used")
                context.register_view(quoted(step.alias), frame)
        yield frame, source


@dataclass(frozen=True, slots=True)
class Analysis:
    """The analysis of a transform before it runs.

    Attributes:
        steps: analysis of its queries.
        layout: the columns of the slice.
        scans: how often each input is read.
        plan: the logical plan of the result, over empty tables.
    """

    steps: tuple[StepAnalysis, ...]
    layout: OutputLayout
    scans: Mapping[str, int]
    plan: Any


def analyze_transform(
    transform: TransformSql,
    vocab: DatasetVocabulary,
    inputs: Sequence[InputSchema | TransformRequestInput],
    recorded: DataSchema | None = None,
) -> Analysis:
    """Return the analysis of a transform, and its result.

    Args:
        transform: the queries.
        vocab: names of the system columns of the output.
        inputs: inputs in declared order.
        recorded: schema of the output so far.

    Raises:
        InvalidQuery, UnsupportedQuery, NondeterministicQuery: the queries are at fault.
    """
    context = new_session(deterministic=True)
    names = [source.query_alias for source in inputs]
    if len(set(names)) < len(names):
        raise InvalidQuery("Two inputs have the same alias", hint="Give each input an alias of its own.")
    for text in step_texts(transform):
        check_no_late_hints(text)
    for source in inputs:
        name_rows(context, source.query_alias, _schema_of(source), [])
    steps, frame, plan = [], None, None
    for (frame, text), step in zip(query_steps(context, transform), transform.steps, strict=True):
        plan = frame.logical_plan()
        steps.append(StepAnalysis(step.alias, step.query, ROW_BY_ROW, check_row_by_row(plan, names, text)))
    result: pa.Schema = frame.schema() if frame is not None else pa.schema([])
    return Analysis(tuple(steps), output_layout(result, vocab, recorded), scans(plan), plan)


def analyze(request: AnalyzeRequest) -> AnalyzeResponseSuccess:
    """Return the analysis of a transform's queries, without running them."""
    analysis = analyze_transform(request.transform, request.vocab, request.inputs)
    note = (
        f"`{request.vocab.operation_type_column}` is not selected, so every row is appended: corrections and "
        "retractions of an input are lost."
    )
    return AnalyzeResponseSuccess(
        steps=analysis.steps,
        output_columns=tuple(analysis.layout.schema.names),
        output_schema=from_arrow(analysis.layout.schema),
        notes=(note,) if analysis.layout.operation_type is None else (),
        watermark=_watermark_in_words([source.query_alias for source in request.inputs]),
        late="passed on",
    )


def _watermark_in_words(inputs: Sequence[str]) -> str:
    words = [f"the watermark of `{name}`" for name in inputs]
    return words[0] if len(words) == 1 else "the least of: " + ", ".join(words)


def transform(request: TransformRequest, engine_version: str) -> TransformResponseSuccess:
    """Run the queries of a transform over the new rows of its inputs, and write the slice."""
    with stage("analysis"):
        analysis = analyze_transform(request.transform, request.vocab, request.query_inputs, request.recorded_schema)
    output = OutputSlice(
        request.new_data_path, analysis.layout, next_offset=request.next_offset, system_time=request.system_time
    )
    with output:
        for reading in readings(request.transform, request.query_inputs, analysis):
            with datafusion_errors(reading.text):
                for batch in staged("query", rows_in_order(reading.frame)):
                    with stage("output"):
                        output.write(batch, operation_types(batch, analysis.layout))
        with stage("output", again=True):
            slices = output.finish()
    with stage("late rows"):
        late_rows = sum(late_tally(source).rows for source in request.query_inputs)
    return TransformResponseSuccess(
        new_offset_interval=slices[0].offset_interval if slices else None,
        new_watermark=least_watermark(input_watermark(source) for source in request.query_inputs),
        slices=slices,
        engine_version=engine_version,
        output_schema=from_arrow(analysis.layout.schema),
        late_rows=late_rows,
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of a transform over rows of one input, with all other inputs empty.

    Attributes:
        number: number of the input.
        context: the session.
        frame: the result, not computed.
        text: text of the last query.
    """

    number: int
    context: SessionContext
    frame: DataFrame
    text: SourceText


def readings(transform: TransformSql, inputs: Sequence[TransformRequestInput], analysis: Analysis) -> Iterator[Reading]:
    """Yield the result in the order of its rows, those of the first input first.

    A row-by-row query is linear: its result over all inputs is that over the first, with all others empty, then that
    over the second, and so on; the same holds for parts of an input, which bounds memory. Only if a query reads an
    input twice must it be complete, since all rows of one reference precede those of the next.

    Args:
        transform: the transform.
        inputs: the inputs, as the request has them.
        analysis: the analysis of the transform.
    """
    for number, source in enumerate(inputs):
        reads = analysis.scans.get(source.query_alias, 0)
        if not reads:
            continue
        for rows in staged("inputs", _parts(_new_rows(source), whole=reads > 1)):
            with stage("plan"):
                context = new_session(deterministic=True)
                for other in inputs:
                    name_rows(context, other.query_alias, _schema_of(other), rows if other is source else [])
                *_, (frame, text) = query_steps(context, transform)
            yield Reading(number, context, frame, text)


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
    """Yield the new rows of an input, in order of offset, with the columns of its current schema."""
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
    """Return a batch with the columns of a schema that may have grown since its slice was written."""
    arrays = [
        batch.column(field.name).cast(field.type)
        if field.name in batch.schema.names
        else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    return pa.record_batch(arrays, schema=schema)


def operation_types(batch: pa.RecordBatch, layout: OutputLayout) -> pa.Array:
    """Return the operation types that the query selects, or +A for every row.

    Raises:
        InvalidQuery: the operation types are invalid.
    """
    if layout.operation_type is None:
        return pa.array(np.zeros(batch.num_rows, dtype=np.int32))
    selected = batch.column(layout.operation_type)
    name = layout.vocab.operation_type_column
    if not pa.types.is_integer(selected.type):
        raise InvalidQuery(f"The column `{name}` of the result has type {selected.type} and not an integer type")
    if selected.null_count or pc.any(pc.or_(pc.less(selected, 0), pc.greater(selected, 3))).as_py():
        raise InvalidQuery(f"The column `{name}` of the result has values other than 0, 1, 2 and 3")
    return selected.cast(pa.int32())
