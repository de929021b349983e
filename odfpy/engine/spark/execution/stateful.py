"""Execution of stateful transforms, fragment by fragment, each over the changes of earlier fragments."""

from __future__ import annotations

import shutil
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from odfpy.data.lru_cache import LruCache
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.dataset.transform import TransformSql
from odfpy.engine.checkpoint import CheckpointRows, load_checkpoint, manifest_after, write_checkpoint
from odfpy.engine.contract import SliceDescription, TransformRequest, TransformRequestInput
from odfpy.engine.lateness.policy import LatePolicy
from odfpy.engine.output import OutputLayout, output_layout
from odfpy.engine.spark.execution.emit import FinalRow, write_delta, write_slice
from odfpy.engine.spark.incremental.operators.steps import Steps, steps_of
from odfpy.engine.spark.incremental.properties.keys import sources_read
from odfpy.engine.spark.incremental.properties.plan_info import PlanInfo
from odfpy.engine.spark.incremental.run import FragmentRun
from odfpy.engine.spark.incremental.state.arrangement import Arrangement, carry_over_arrangement
from odfpy.engine.spark.incremental.state.attempt import Attempt
from odfpy.engine.spark.incremental.state.correctable import Correctable, check_correctable
from odfpy.engine.spark.incremental.state.difference import OPERATION, in_order
from odfpy.engine.spark.incremental.state.pull import Pull, Stream
from odfpy.engine.spark.incremental.state.source_rows import leaf_over
from odfpy.engine.spark.incremental.streams import FragmentStream, HistoryNeeded, streams_of
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, column_id
from odfpy.engine.spark.plan.times import MILLISECOND, Clock, DerivedWatermark, check_advance
from odfpy.engine.spark.plan.types import arrow_schema
from odfpy.engine.spark.row_by_row.carry import carry
from odfpy.engine.spark.rows.batches import ROWS_IN_ONE_TASK
from odfpy.engine.spark.rows.parallelism import Parallelism
from odfpy.engine.spark.rows.tables import Table
from odfpy.engine.watermark import input_watermark, watermark_at
from odfpy.errors import InvalidQuery
from odfpy.stages import stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ANALYZED: Final[LruCache[Hashable, tuple[Steps, pa.Schema]]] = LruCache(32)
"""Analyzed transforms, by everything that their plans depend on; the plans are independent of sessions."""


@dataclass(frozen=True, slots=True)
class Stateful:
    """A stateful transform that is ready to run.

    Attributes:
        catalyst: the session of this request.
        steps: the analyzed queries, and their fragments.
        layout: the columns of the output.
        late: the policy for late rows.
        scratch: a folder for temporary files.
        nets_rows: whether retracted rows are cancelled out before anything is computed from them.
    """

    catalyst: Catalyst
    steps: Steps
    layout: OutputLayout
    late: LatePolicy
    scratch: Path
    nets_rows: bool = False

    @property
    def watermark(self) -> DerivedWatermark | None:
        """The watermark of the output, derived from those of the inputs; None if it never advances."""
        info = self.steps.last.info
        time = info.times.get(column_id(info.columns[self.layout.sources[0]]))
        return None if time is None or time.windows else time.watermark


def prepare_stateful(
    catalyst: Catalyst,
    key: Hashable,
    transform: TransformSql,
    vocab: DatasetVocabulary,
    tables: Sequence[Table],
    policy: LatePolicy,
    scratch: Path,
    recorded: DataSchema | None = None,
) -> Stateful:
    """Prepare a stateful transform.

    Args:
        catalyst: a session that does not know the inputs yet.
        key: key of the analyzed transform in the cache: everything that its plans depend on.
        transform: the queries.
        vocab: names of the system columns of the output.
        tables: the inputs, in declared order.
        policy: the policy for late rows.
        scratch: folder for temporary files.
        recorded: schema of the output so far.

    Raises:
        InvalidQuery, UnsupportedQuery, NondeterministicQuery: the queries are at fault.
    """

    def analyzed() -> tuple[Steps, pa.Schema]:
        steps = steps_of(catalyst, transform, tables, vocab.event_time_column, policy)
        return steps, arrow_schema(catalyst.dataframe(steps.last.step.plan).schema)

    steps, result = _ANALYZED.get(key, analyzed)
    check_correctable(policy, steps.fragments, len(tables))
    layout = output_layout(result, vocab, recorded)
    if layout.operation_type is not None:
        name = vocab.operation_type_column
        raise InvalidQuery(
            f"The column `{name}` of the result is made by the engine, which finds out what has changed",
            hint="Leave it out, or give the column another name with AS.",
        )
    layout = replace(layout, key=frozenset(key_positions(steps.last.info) or ()))
    return Stateful(catalyst, steps, layout, policy, scratch)


def write_changes(
    ready: Stateful, request: TransformRequest, engine: str, rows_in_one_task: int = ROWS_IN_ONE_TASK
) -> tuple[SliceDescription, ...]:
    """Run a transform over the new rows, and write the changes of its result and the state for the next run.

    Args:
        ready: the transform.
        request: the request, with the new rows.
        engine: the version of the engine.
        rows_in_one_task: number of rows up to which one task does the work; does not affect the result.

    Raises:
        HistoryNeeded: the request lacks earlier rows that are needed.
    """
    sources = request.query_inputs
    is_same_time = all(source.prev_watermark == input_watermark(source) for source in sources)
    if is_same_time and all(source.offset_interval is None for source in sources):
        if request.prev_checkpoint_path is not None:
            shutil.copyfile(request.prev_checkpoint_path, request.new_checkpoint_path)
        carry_over_arrangement(request, engine)
        return ()
    attempt = Attempt.begun(request)
    try:
        runs = run_fragments(ready, request, engine, rows_in_one_task, attempt)
        output = ready.steps.output
        if output is None:
            with stage("output"):
                slices = _write_last_step(ready, request, runs)
        else:
            with stage("plan"):
                changes = runs.fragments[-1].changes()
            with stage("output"):
                changed = in_final_order(ready.catalyst, changes, key_of(output.info), ready.layout.sources[0])
                slices = write_rows(request, ready.layout, changed)
        runs.write_state(request, engine)
    except HistoryNeeded:
        attempt.interrupt()
        raise
    return slices


@dataclass(frozen=True, slots=True)
class FragmentRuns:
    """The fragments of a transform during a pull, with the number of rows that each of them reads."""

    pull: Pull
    fragments: tuple[FragmentRun, ...]
    counts: tuple[int, ...]

    def write_state(self, request: TransformRequest, engine: str) -> None:
        """Write the checkpoint and the arrangement."""
        stored = CheckpointRows()
        for run, count in zip(self.fragments, self.counts, strict=True):
            with stage("kept rows"):
                self.pull.parallelism.set(count)
                stored.update(run.store_state())
        with stage("checkpoint"):
            rows = (rows for _, rows in stored.files.values())
            manifest = manifest_after(request, engine, rows, stored.arranged.values())
            paths = {name: path for name, (path, _) in stored.files.items()}
            write_checkpoint(Path(request.new_checkpoint_path), manifest, paths)
        if self.pull.arrangement is not None:
            with stage("arrangement"):
                self.pull.arrangement.finish()


def run_fragments(
    ready: Stateful,
    request: TransformRequest,
    engine: str,
    rows_in_one_task: int = ROWS_IN_ONE_TASK,
    attempt: Attempt | None = None,
) -> FragmentRuns:
    """Run all fragments but the one that forms the output, which is only prepared.

    Fragments that the previous attempt has finished are not run again.

    Args:
        ready: the prepared transform.
        request: the request.
        engine: name and version of the engine.
        rows_in_one_task: number of rows up to which one task does the work.
        attempt: this attempt at the pull, with the fragments that a previous one has finished; None to remember none.
    """
    streams: list[Stream] = list(streams_of(ready.catalyst, request.query_inputs, ready.late, ready.scratch))
    stream_counts = [_count(source) for source in request.query_inputs]  # rows in each stream
    pull = _begin_pull(ready, request, engine, streams, rows_in_one_task, attempt)
    runs = tuple(FragmentRun(pull, fragment) for fragment in ready.steps.fragments)
    run_counts = []  # rows that each fragment reads
    for run in runs:
        read = [
            number
            for stateful_input in run.fragment.info.stateful_inputs
            for number in sources_read(stateful_input.plan)
        ]
        count = sum(stream_counts[number] for number in read)
        run_counts.append(count)
        with stage("settings", again=True):
            pull.parallelism.set(count)
        if run.fragment is not ready.steps.output:
            path = ready.scratch / f"fragment-{run.fragment.source}.parquet"
            changes = _changes_of(run, path, count, attempt)
            streams.append(changes)
            stream_counts.append(changes.count)
    return FragmentRuns(pull, runs, tuple(run_counts))


def _begin_pull(
    ready: Stateful,
    request: TransformRequest,
    engine: str,
    streams: Sequence[Stream],
    rows_in_one_task: int,
    attempt: Attempt | None,
) -> Pull:
    """Return the context of a pull, with the rows of the last checkpoint.

    Args:
        ready: the prepared transform.
        request: the request.
        engine: name and version of the engine.
        streams: the inputs; the changes of fragments are added to them during the pull.
        rows_in_one_task: number of rows up to which one task does the work.
        attempt: this attempt at the pull, with what a previous one has found out; None for none.
    """
    catalyst, sources = ready.catalyst, request.query_inputs
    before, after = _clocks(catalyst, sources)
    _check_rules_advance(ready, before, after)
    # Constants may have been emitted before there were any rows.
    is_new = request.next_offset == 0 or request.query_changed
    with stage("checkpoint"):
        stored = load_checkpoint(request, engine, ready.scratch)
    with stage("settings"):
        files = () if stored is None else (path for path, _ in stored.files.values())
        parallelism = Parallelism(catalyst, rows_in_one_task, files)
    correctable = Correctable.of(catalyst, ready.late, sources, ready.scratch)
    return Pull(
        catalyst,
        parallelism,
        streams,
        before,
        after,
        ready.scratch,
        is_first=is_new and all(source.prev_offset is None for source in sources),
        checkpoint=stored,
        correctable=correctable,
        arrangement=None if request.new_arrangement_path is None else Arrangement(request, engine, parallelism),
        late=set[int]() if attempt is None else attempt.late,
        nets_rows=ready.nets_rows and correctable is None,
    )


def _check_rules_advance(ready: Stateful, before: Clock, after: Clock) -> None:
    """Check that no limit of a completeness rule moves back when the watermarks of the inputs advance."""
    stateful_inputs = [item for fragment in ready.steps.fragments for item in fragment.info.stateful_inputs]
    limits = [rule.limit for stateful_input in stateful_inputs for rule in stateful_input.rules.all]
    check_advance(limits, before, after)


def _changes_of(run: FragmentRun, path: Path, rows: int, attempt: Attempt | None) -> FragmentStream:
    """Return the changes of a fragment as a stream; runs the fragment unless a previous attempt has finished it.

    Args:
        run: the run of the fragment.
        path: a file for the changes.
        rows: number of rows that the fragment reads.
        attempt: this attempt at the pull, None to remember nothing.
    """
    source = run.fragment.source
    finished = attempt.done.get(source) if attempt is not None else None
    if finished is not None:
        return FragmentStream.of_finished(run, path, finished, rows)
    with stage("intermediate result"):
        with stage("plan"):
            changes = run.changes()
        ordered = in_order(run.pull.catalyst, changes, None, key_of(run.fragment.info), with_offsets=True)
        stream = FragmentStream.of_changes(run, path, ordered, rows)
    if attempt is not None:
        attempt.add(source, path, stream.schema, stream.count)
    return stream


def _count(source: TransformRequestInput) -> int:
    """Return the number of rows of an input that a request contains."""
    last = source.offset_interval.end if source.offset_interval else source.prev_offset
    first = 0 if source.history_paths is not None or source.prev_offset is None else source.prev_offset + 1
    return 0 if last is None else last + 1 - first


def _write_last_step(ready: Stateful, request: TransformRequest, runs: FragmentRuns) -> tuple[SliceDescription, ...]:
    """Write the result of a stateless last step: it maps the changes of its sources row by row."""
    new = [source.new() for source in runs.pull.streams]
    runs.pull.parallelism.set(sum(rows.count for rows in new if rows is not None))
    catalyst, info = ready.catalyst, ready.steps.last.info
    delta = carry(catalyst, info.stateless_plan, lambda number, leaf: leaf_over(catalyst, leaf, new[number]))
    aliases = {fragment.source: fragment.alias or "a step" for fragment in ready.steps.fragments}
    names = [source.query_alias for source in request.query_inputs]
    names += [aliases[number] for number in range(len(names), len(new))]
    counts = [0 if rows is None else rows.count for rows in new]
    return write_delta(catalyst, delta, ready.layout, request, counts, names)


def watermark_of(ready: Stateful, request: TransformRequest) -> Timestamp | None:
    """Return the watermark of the output after a pull."""
    watermark = ready.watermark
    if watermark is None:
        return None
    before, after = _clocks(ready.catalyst, request.query_inputs)
    check_advance([watermark], before, after)
    micros = watermark.at(after)
    return watermark_at(None if micros is None else micros // MILLISECOND)


def _clocks(catalyst: Catalyst, sources: Sequence[TransformRequestInput]) -> tuple[Clock, Clock]:
    """Return the watermarks of the inputs before a pull and after it."""
    before = Clock(catalyst, [_micros(source.prev_watermark) for source in sources])
    return before, Clock(catalyst, [_micros(input_watermark(source)) for source in sources])


def key_positions(info: PlanInfo) -> list[int] | None:
    """Return the positions of the columns that identify a row, in order; None if no columns do."""
    unique = info.unique
    return None if unique is None else [at for at, column in enumerate(info.columns) if column_id(column) in unique]


def key_of(info: PlanInfo) -> list[str] | None:
    """Return the names of the columns that identify a row, in order; None if no columns do."""
    positions = key_positions(info)
    return None if positions is None else [f"c{at}" for at in positions]


def in_final_order(catalyst: Catalyst, changed: Node, key: list[str] | None, event_time: int | None) -> DataFrame:
    """Return changes in their final order, each with its operation type.

    Args:
        catalyst: the session.
        changed: the changes, with their weights.
        key: names of the key columns, None for no key.
        event_time: position of the event time, None for none.
    """
    return in_order(catalyst, changed, None if event_time is None else f"c{event_time}", key)


def write_rows(request: TransformRequest, layout: OutputLayout, frame: DataFrame) -> tuple[SliceDescription, ...]:
    """Write ordered changes to the slice of a request.

    Args:
        request: the request.
        layout: the layout of the output.
        frame: the rows in their order.
    """
    return write_slice(frame, request, _changed_rows, layout)


def _changed_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[FinalRow]:
    for batch in batches:
        yield batch, batch.column(OPERATION).cast(pa.int32()), lambda _: ""


def _micros(watermark: Timestamp | None) -> int | None:
    return None if watermark is None else watermark.millis * MILLISECOND
