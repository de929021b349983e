"""Transforms of which a step is not row by row: run block by block, each over the changes of those before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from odfpy.data.schema import DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.dataset.transform import TransformSql
from odfpy.engine.checkpoint import kept_rows, manifest_after, write_checkpoint
from odfpy.engine.contract import SliceDescription, StepAnalysis, TransformRequest
from odfpy.engine.floats import in_one_form
from odfpy.engine.output import OutputForm, OutputSlice, output_form
from odfpy.engine.spark.catalyst import Catalyst
from odfpy.engine.spark.classes.row_by_row import carried
from odfpy.engine.spark.emit import write_delta
from odfpy.engine.spark.incremental.difference import OPERATION, in_order
from odfpy.engine.spark.incremental.gates import Pull, Stream, leaf_over
from odfpy.engine.spark.incremental.parts import Block, Part, column_id
from odfpy.engine.spark.incremental.run import BlockRun
from odfpy.engine.spark.incremental.steps import Steps, steps_of
from odfpy.engine.spark.incremental.streams import BlockStream, streams_of
from odfpy.engine.spark.incremental.times import MILLISECOND, Clock, Times
from odfpy.engine.spark.rows import stream
from odfpy.engine.spark.tables import Table
from odfpy.engine.spark.types import arrow_schema
from odfpy.engine.watermark import input_watermark
from odfpy.errors import InvalidQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Stateful:
    """A transform that is ready to run.

    Attributes:
        catalyst: the session of this request.
        steps: what the queries are, and the blocks they are processed in.
        form: the columns of the output.
        scratch: a folder for temporary files.
    """

    catalyst: Catalyst
    steps: Steps
    form: OutputForm
    scratch: Path

    @property
    def watermark(self) -> Times | None:
        """The watermark of the output, None when it does not advance."""
        part = self.steps.last.part
        time = part.times.get(column_id(part.columns[self.form.sources[0]]))
        return None if time is None or time.windows else time.watermark


def stateful(
    catalyst: Catalyst,
    transform: TransformSql,
    vocab: DatasetVocabulary,
    tables: Sequence[Table],
    scratch: Path,
    recorded: DataSchema | None = None,
) -> Stateful:
    """Prepare a transform.

    Args:
        catalyst: a session that does not know the inputs yet.
        transform: the queries.
        vocab: names of the system columns of the output.
        tables: the inputs, in declared order.
        scratch: folder for temporary files.
        recorded: schema of the output so far.

    Raises:
        InvalidQuery, UnsupportedQuery, NondeterministicQuery: the queries are at fault.
    """
    steps = steps_of(catalyst, transform, tables)
    form = output_form(arrow_schema(catalyst.dataframe(steps.last.step.plan).schema), vocab, recorded)
    if form.operation_type is not None:
        name = vocab.operation_type_column
        raise InvalidQuery(
            f"The column `{name}` of the result is made by the engine, which finds out what has changed",
            hint="Leave it out, or give the column another name with AS.",
        )
    return Stateful(catalyst, steps, form, scratch)


def write_changes(ready: Stateful, request: TransformRequest, engine: str) -> tuple[SliceDescription, ...]:
    """Run a transform over what is new, write what changes in its result, and what is kept for the next run.

    Raises:
        HistoryNeeded: rows of the past are needed that the request does not have.
    """
    before = [_micros(source.prev_watermark) for source in request.query_inputs]
    after = [_micros(input_watermark(source)) for source in request.query_inputs]
    if before == after and all(source.offset_interval is None for source in request.query_inputs):
        return ()
    catalyst = ready.catalyst
    streams: list[Stream] = list(streams_of(catalyst, request.query_inputs, ready.scratch))
    is_first = all(source.prev_offset is None for source in request.query_inputs)
    kept = kept_rows(request, engine, ready.scratch)
    pull = Pull(catalyst, streams, Clock(catalyst, before), Clock(catalyst, after), ready.scratch, is_first, kept)
    runs = []
    slices = None
    for block in ready.steps.blocks:
        run = BlockRun(pull, block)
        runs.append(run)
        if block is ready.steps.output:
            slices = _write(ready, request, _ordered(run.changes(), block, ready.form.sources[0]))
        else:
            path = ready.scratch / f"block-{block.source}"
            streams.append(BlockStream.of(run, path, _ordered(run.changes(), block, None)))
    if slices is None:
        slices = _write_last_step(ready, request, streams)
    files = {name: found for run in runs for name, found in run.keep().items()}
    manifest = manifest_after(request, engine, [rows for _, rows in files.values()])
    write_checkpoint(Path(request.new_checkpoint_path), manifest, {name: path for name, (path, _) in files.items()})
    return slices


def _write_last_step(
    ready: Stateful, request: TransformRequest, streams: Sequence[Stream]
) -> tuple[SliceDescription, ...]:
    """The last step is row by row: what changes in its sources passes through it."""
    new = [source.new() for source in streams]
    catalyst, part = ready.catalyst, ready.steps.last.part
    delta = carried(catalyst, part.free, lambda number, leaf: leaf_over(catalyst, leaf, new[number]))
    aliases = {block.source: block.alias or "a step" for block in ready.steps.blocks}
    names = [source.query_alias for source in request.query_inputs]
    names += [aliases[number] for number in range(len(names), len(streams))]
    return write_delta(catalyst, delta, ready.form, request, [0 if rows is None else rows.count for rows in new], names)


def stateful_steps(ready: Stateful) -> tuple[StepAnalysis, ...]:
    """What the steps are, as `odf inspect query` shows it."""
    return tuple(
        StepAnalysis(found.step.alias, found.step.source.text, *_class_of(found.part)) for found in ready.steps.steps
    )


def _class_of(part: Part) -> tuple[str, str]:
    if part.free is not None:
        return "row-by-row", "every result row comes from one row"
    names = list(dict.fromkeys(trait.name for trait in part.traits))
    reasons = [f"{trait.reason}; kept: {trait.state}" for trait in part.traits]
    return " + ".join(names), "; ".join(reasons)


def watermark_of(ready: Stateful, request: TransformRequest) -> Timestamp | None:
    """The watermark of the output after a pull."""
    times = ready.watermark
    if times is None:
        return None
    micros = times.at(Clock(ready.catalyst, [_micros(input_watermark(source)) for source in request.query_inputs]))
    return None if micros is None else Timestamp.from_millis(micros // MILLISECOND)


def _ordered(changed: DataFrame, block: Block, event_time: int | None) -> DataFrame:
    part = block.part
    positions = {column_id(column): at for at, column in enumerate(part.columns)}
    key = None if part.unique is None else sorted(positions[column] for column in part.unique)
    names = None if key is None else [f"c{at}" for at in key]
    return in_order(changed, None if event_time is None else f"c{event_time}", names)


def _write(ready: Stateful, request: TransformRequest, frame: DataFrame) -> tuple[SliceDescription, ...]:
    schema = arrow_schema(frame.schema)
    output = OutputSlice(
        request.new_data_path, ready.form, next_offset=request.next_offset, system_time=request.system_time
    )
    with output:
        for batch in stream(frame, schema):
            output.write(in_one_form(batch), batch.column(OPERATION).cast(pa.int32()))
        return output.finish()


def _micros(watermark: Timestamp | None) -> int | None:
    return None if watermark is None else watermark.millis * MILLISECOND
