"""The Spark lane, as it runs in the engine's worker: each step of an ingest is a set of tasks over parts of the input.

1. cut     the input into parts that can be read independently
2. read    one task per part: read, check, normalize, write a run (`runs`)
3. merge   for strategies with a key, in Spark SQL: the rows of the result, their operations and order (`spark_merge`)
4. write   one task per slice: its rows from all runs and, for retractions and corrections, from the dataset's slices

Rows never pass through Spark: they are copied between Arrow files, so that every value stays unchanged. No task
holds more than its part, or a few row groups of its slice.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from odfpy.chain.sources import MergeAppend, MergeSnapshot
from odfpy.codec.tree import from_tree, to_tree
from odfpy.data.data_warning import DataWarning
from odfpy.data.lateness import late_rows
from odfpy.data.memory import bulk_memory
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.fit import fit_table
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.slices.cut import cut_rows
from odfpy.data.slices.writer import SliceInfo
from odfpy.data.vocabulary import DatasetVocabulary, OperationType
from odfpy.engine.spark.process.counting import count_jobs
from odfpy.errors import OdfError
from odfpy.files import replaced_atomically
from odfpy.ingest.cut_times import warnings_of_cut_times
from odfpy.ingest.lanes.failure import Failure
from odfpy.ingest.lanes.positions import MergedPositions, RepeatedKeys
from odfpy.ingest.lanes.request import LaneRequest, LaneResult
from odfpy.ingest.lanes.runs import Run, gather_runs, make_run
from odfpy.ingest.lanes.sorted_runs import SortedRuns
from odfpy.ingest.lanes.source import SplittableInput
from odfpy.ingest.lanes.spark_merge import SparkMerge
from odfpy.ingest.lanes.task_merge import TaskMerge
from odfpy.ingest.merge import StateNeed
from odfpy.ingest.merge_plan import MergePlan, repeated_key
from odfpy.ingest.normalize import primary_key
from odfpy.ingest.pipeline import IngestStatistics
from odfpy.ingest.read import FilePart
from odfpy.ingest.retractions import StateChange, check_retractions
from odfpy.ingest.write import SliceLayout, slice_files, write_slice
from odfpy.stages import stage
from odfpy.state.current import ScannedState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

_ROWS_AT_ONCE = 1 << 17
"""Number of rows that are picked at a time, so that wide rows do not fill the memory."""


def ingest(spark: SparkSession, arguments: str) -> str:
    """Run the job: take a `LaneRequest` as JSON, and return a `LaneResult` as JSON.

    Raises:
        OdfError: as `odfpy.ingest.pipeline.ingest_rows`.
    """
    request: LaneRequest = from_tree(LaneRequest, json.loads(arguments))
    lane = _Lane(spark, request)
    try:
        return json.dumps(to_tree(lane.run()))
    except BaseException:
        for path in Path(request.out).parent.glob(f"{Path(request.out).name}*"):
            with suppress(OSError):
                path.unlink()
        raise
    finally:
        shutil.rmtree(lane.folder, ignore_errors=True)


class _Lane:
    def __init__(self, spark: SparkSession, request: LaneRequest) -> None:
        self._spark = spark
        self._request = request
        self.folder = Path(f"{request.out}.runs")
        self.folder.mkdir()

    def run(self) -> LaneResult:
        with stage("read"):
            runs = self._read()
        read = sum(run.rows for run in runs)
        schema = next((run.schema for run in runs if run.rows), runs[0].schema)
        if schema is None:
            return LaneResult(slices=(), schema=None, statistics=IngestStatistics())
        filled = [run for run in runs if run.rows]
        strategy = self._request.strategy
        if isinstance(strategy, MergeAppend):
            result = self._appended(filled, schema, read)
        else:
            result = self._merged(filled or list(runs[:1]), schema, read)
        cut: Counter[str] = Counter()
        for run in runs:
            cut.update(run.cut)
        return replace(result, warnings=(*result.warnings, *warnings_of_cut_times(cut, strategy)))

    # --- (1) and (2) ---

    def _read(self) -> list[Run]:
        request = self._request
        source = SplittableInput.of(request, self.folder)
        read = _Read(request, source, str(self.folder))
        done = self._tasks(read, [(at, part, 0) for at, part in enumerate(source.parts)])
        runs: list[Run] = []
        for at, (part, result) in enumerate(zip(source.parts, done, strict=True)):
            if isinstance(result, Run):
                runs.append(result)
                continue
            # The following part was cut at the wrong position; or the message needs the number of preceding rows.
            again = FilePart(part.start) if result.error is None else part
            rows = sum(run.rows for run in runs)
            (repeated,) = self._tasks(read, [(at, again, rows)])
            if isinstance(repeated, Failure):
                raise repeated.raised()
            runs.append(repeated)
            if again is not part:
                break
        return runs

    # --- Append ---

    def _appended(self, runs: list[Run], schema: DataSchema, read: int) -> LaneResult:
        cuts = cut_rows(read, lambda _: 0, self._request.slice_rows)
        work = _WriteSorted(self._request, schema, tuple(runs))
        with stage("write"):
            slices, late = self._write(work, cuts)
        untimed, lacking = sum(run.untimed for run in runs), sum(run.lacking for run in runs)
        statistics = IngestStatistics(read=read, appended=read, late=late, untimed=untimed, lacking=lacking)
        return LaneResult(slices=slices, schema=schema, statistics=statistics)

    # --- (3) ---

    def _merged(self, runs: list[Run], schema: DataSchema, read: int) -> LaneResult:
        request = self._request
        made = made_columns(request.vocab)
        names = [name for name in to_arrow(schema).names if name not in made]
        plan = MergePlan.of(names, request.strategy, request.vocab)
        with stage("merge"):
            repeated, merged_places = self._merge(runs, schema, plan)
        if repeated.keys and isinstance(request.strategy, MergeSnapshot):
            key = gather_runs(runs, np.array([repeated.first]), list(plan.keys)).to_pylist()[0]
            raise repeated_key(key, repeated.keys, repeated.first)
        with stage("merge", again=True):
            places = merged_places()
        appended, retracted, _, corrected = places.counts
        warnings: tuple[DataWarning, ...] = ()
        if request.limit is not None and isinstance(request.strategy, MergeSnapshot):
            change = StateChange(read, appended, retracted)
            warnings = check_retractions(change, request.limit, lambda most: self._retracted_keys(places, schema, most))
        if plan.merge.needs_state is StateNeed.SEEN_KEYS and read > places.rows:
            merge = TaskMerge(request, tuple(runs), schema, plan, str(self.folder))
            warnings = self._once(partial(merge.warn_conflicting_rows, places))
        looks_up = plan.merge.needs_state is StateNeed.CURRENT_ROWS
        work = _WritePicked(request, schema, tuple(runs), places, looks_up)
        with stage("write"):
            slices, late = self._write(work, cut_rows(places.rows, places.operation_at, request.slice_rows))
        statistics = IngestStatistics(
            read=read,
            appended=appended,
            corrected=corrected,
            retracted=retracted,
            dropped=read - sum(places.counts[operation] for operation in plan.from_input),
            repeated=repeated.rows,
            late=late,
            untimed=sum(run.untimed for run in runs),
            lacking=sum(run.lacking for run in runs),
        )
        return LaneResult(slices=slices, schema=schema, statistics=statistics, warnings=warnings)

    def _retracted_keys(self, places: MergedPositions, schema: DataSchema, most: int) -> list[dict[str, Any]]:
        """Return the primary keys of the first retracted rows."""
        found = places.first_of(int(OperationType.RETRACT), most)
        return self._once(partial(_keys_at, self._request, schema, found))

    def _merge(
        self, runs: list[Run], schema: DataSchema, plan: MergePlan
    ) -> tuple[RepeatedKeys, Callable[[], MergedPositions]]:
        """Return the repeated keys, and a function that computes the result of the merge."""
        if self._request.one_machine:
            here = TaskMerge(self._request, tuple(runs), schema, plan, str(self.folder))
            return self._once(here.repeated), lambda: self._once(here.places)
        merge = SparkMerge(self._spark, self._request, runs, schema, plan, self.folder)
        return merge.repeated(), merge.places

    # --- (4) ---

    def _write(
        self, work: _WriteSorted | _WritePicked, cuts: list[tuple[int, int]]
    ) -> tuple[tuple[SliceInfo, ...], int]:
        files = slice_files(Path(self._request.out), len(cuts))
        slices, late = [], 0
        for result in self._tasks(work, [(file, *cut) for file, cut in zip(files, cuts, strict=True)]):
            if isinstance(result, Failure):
                raise result.raised()
            info, late_here = result
            late += late_here
            slices.append(info)
        return tuple(slices), late

    def _once(self, work: Callable[[], R]) -> R:
        """Run a function as a Spark task, so that it ends with the job."""
        (result,) = self._tasks(_Once(work), [None])
        if isinstance(result, Failure):
            raise result.raised()
        return result

    def _tasks(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Run each item as a Spark task; return the results in order."""
        if not items:
            return []
        results: list[R] = self._spark.sparkContext.parallelize(items, len(items)).map(work).collect()
        count_jobs(self._spark)
        return results


# --- Tasks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Once(Generic[R]):
    work: Callable[[], R]

    def __call__(self, _: None) -> R | Failure:
        try:
            with bulk_memory():
                return self.work()
        except OdfError as error:
            return Failure.of(error)


@dataclass(frozen=True, slots=True)
class _Read:
    request: LaneRequest
    source: SplittableInput
    folder: str

    def __call__(self, task: tuple[int, FilePart, int]) -> Run | Failure:
        number, part, first_row = task
        return make_run(self.request, self.source, part, f"{self.folder}/run-{number}-{first_row}", first_row)


def _keys_at(request: LaneRequest, schema: DataSchema, positions: pa.Array) -> list[dict[str, Any]]:
    """Return the primary keys of rows of the dataset."""
    state = ScannedState([Path(path) for path in request.slices], schema, request.vocab)
    keys: list[dict[str, Any]] = state.rows(positions).select(list(primary_key(request.strategy))).to_pylist()
    return keys


_Rows = Iterator[tuple[pa.Array, pa.Table]]


@dataclass(frozen=True, slots=True)
class _WriteSorted:
    """Slices of an append."""

    request: LaneRequest
    schema: DataSchema
    runs: tuple[Run, ...]

    def __call__(self, task: tuple[Path, int, int]) -> tuple[SliceInfo, int] | Failure:
        return _write(self.request, self.schema, task, self._rows)

    def _rows(self, start: int, stop: int) -> _Rows:
        runs = SortedRuns(self.runs, self.request.vocab.event_time_column)
        for at in range(start, stop, _ROWS_AT_ONCE):
            rows = min(at + _ROWS_AT_ONCE, stop) - at
            yield pa.repeat(pa.scalar(0, pa.int32()), rows), runs.rows(at, at + rows)


@dataclass(frozen=True, slots=True)
class _WritePicked:
    """Slices of a merge."""

    request: LaneRequest
    schema: DataSchema
    runs: tuple[Run, ...]
    places: MergedPositions
    looks_up: bool

    def __call__(self, task: tuple[Path, int, int]) -> tuple[SliceInfo, int] | Failure:
        return _write(self.request, self.schema, task, self._rows)

    def _rows(self, start: int, stop: int) -> _Rows:
        for at in range(start, stop, _ROWS_AT_ONCE):
            chosen = self.places.between(at, min(at + _ROWS_AT_ONCE, stop)).combine_chunks()
            operations = pa.concat_arrays(chosen.column("op").chunks)
            yield operations, self._picked(operations, chosen.column("pos").to_numpy())

    def _picked(self, operations: pa.Array, positions: Any) -> pa.Table:
        """Return the rows at positions: new rows for +A and +C, old rows for -R and -C."""
        made = made_columns(self.request.vocab)
        names = [field.name for field in self.schema.fields if field.name not in made]
        is_old = np.isin(operations.to_numpy(), [1, 2]) & self.looks_up
        new = gather_runs(list(self.runs), positions[~is_old], names)
        if not is_old.any():
            return new
        state = ScannedState([Path(path) for path in self.request.slices], self.schema, self.request.vocab)
        old = fit_table(state.rows(pa.array(positions[is_old])), new.schema)
        order = np.empty(len(positions), np.int64)
        order[~is_old] = np.arange(len(new))
        order[is_old] = len(new) + np.arange(len(old))
        return pa.concat_tables([new, old]).take(pa.array(order))


def made_columns(vocab: DatasetVocabulary) -> set[str]:
    """Return the columns of a slice that are not part of the input."""
    return set(vocab.changelog_columns)


def _write(
    request: LaneRequest, schema: DataSchema, task: tuple[Path, int, int], rows_of: Callable[[int, int], _Rows]
) -> tuple[SliceInfo, int] | Failure:
    path, start, stop = task
    late = 0

    def watched() -> _Rows:
        nonlocal late
        for operations, rows in rows_of(start, stop):
            late += late_rows(rows.column(request.vocab.event_time_column), operations, request.watermark)
            yield operations, rows

    try:
        with bulk_memory(), replaced_atomically(path) as own:  # an abandoned attempt may still be running
            form = SliceLayout(schema, request.vocab, request.system_time)
            return write_slice(own, watched(), form, request.next_offset + start), late
    except OdfError as error:
        return Failure.of(error)
