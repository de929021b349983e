"""Runs: the rows of one part of the input, checked and in their final types, in an Arrow file.

For an append, a run is sorted by event time, so that a slice needs one contiguous range of each. For other strategies,
it has the order of the input, and includes what the merge needs to know about each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.chain.sources import MergeAppend
from odfpy.data.memory import bulk_memory
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.schema import DataSchema
from odfpy.errors import OdfError
from odfpy.files import replaced_atomically
from odfpy.ingest.evolve import untyped_columns
from odfpy.ingest.fit import fit_rows
from odfpy.ingest.gather import combine, gather
from odfpy.ingest.lanes.failure import Failure
from odfpy.ingest.lanes.request import LaneRequest
from odfpy.ingest.lanes.source import SplittableInput, open_table
from odfpy.ingest.normalize import NormalizedRows, count_null_event_times, normalize_rows
from odfpy.ingest.order import as_numbers, time_order
from odfpy.ingest.read import FilePart
from odfpy.ingest.read.files import Incomplete

SAMPLE_STEP: Final = 4_096
"""Every `SAMPLE_STEP`th row is sampled."""

_GIVEN, _OPERATION = "\0given", "\0op"


@dataclass(frozen=True, slots=True)
class Run:
    """A run.

    Attributes:
        path: path of its file.
        rows: number of rows.
        schema: schema of the dataset including these rows, None if they determine none.
        sample: event times of every `SAMPLE_STEP`th row, from the first on, as numbers.
        untimed: number of rows without an event time.
        lacking: number of those rows whose input has the column; see `count_null_event_times`.
        cut: number of times finer than a millisecond, by column, if there are any.
    """

    path: str
    rows: int
    schema: DataSchema | None
    sample: npt.NDArray[np.int64]
    untimed: int = 0
    lacking: int = 0
    cut: Mapping[str, int] = field(default_factory=dict)


def make_run(request: LaneRequest, source: SplittableInput, part: FilePart, path: str, first_row: int) -> Run | Failure:
    """Read a part of the input and write it as a run.

    Args:
        request: the ingest.
        source: input of the run.
        part: the part to read.
        path: file to write.
        first_row: rows of the input before the part, for messages.
    """
    try:
        with bulk_memory():
            return _make_run(request, source.rows(request, part, first_row), path, first_row)
    except Incomplete:
        return Failure(None)
    except OdfError as error:
        return Failure.of(error)


def _make_run(request: LaneRequest, rows: pa.Table, path: str, first_row: int) -> Run:
    if request.schema is None and rows.num_rows == 0 and (not rows.num_columns or untyped_columns(rows.schema)):
        return Run(path, 0, None, np.empty(0, np.int64))
    known = {} if request.schema is None else {field.name: field.type for field in to_arrow(request.schema)}
    normal = normalize_rows(
        rows,
        strategy=request.strategy,
        vocabulary=request.vocab,
        source_event_time=request.source_event_time,
        event_time_type=known.get(request.vocab.event_time_column),
        recorded=tuple(known),
        first_row=first_row,
    )
    schema, fitted = fit_rows(normal, request.schema, request.vocab)
    if isinstance(request.strategy, MergeAppend):
        table = sorted_rows(fitted.columns, request.vocab.event_time_column)
    else:
        table = fitted.columns.append_column(_GIVEN, fitted.event_time_given)
        if fitted.operations is not None:
            table = table.append_column(_OPERATION, fitted.operations)
    write_table(table, path)
    times = as_numbers(table.column(request.vocab.event_time_column))
    untimed = rows.num_rows - (pc.sum(normal.event_time_given).as_py() or 0)
    lacking = count_null_event_times(rows, normal, request.strategy, request.vocab.event_time_column)
    return Run(path, rows.num_rows, schema, times[::SAMPLE_STEP].copy(), untimed, lacking, normal.cut)


def sorted_rows(rows: pa.Table, event_time: str) -> pa.Table:
    """Return rows sorted by event time; rows with equal times keep their order."""
    order = time_order(rows.column(event_time))
    if order is None:
        return rows
    return pa.table([gather(combine(column), order) for column in rows.columns], schema=rows.schema)


# --- Files -----------------------------------------------------------------------------------------------------------


def write_table(table: pa.Table, path: str) -> None:
    """Write rows to an Arrow file, in as few batches as possible.

    Raises:
        OdfError: the file cannot be written.
    """
    whole = pa.table([combine(column) for column in table.columns], schema=table.schema)
    write_batches(whole.schema, whole.to_batches(), path)


def write_batches(schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: str) -> None:
    """Write rows to an Arrow file, batch by batch.

    Args:
        schema: schema of the batches.
        batches: the rows.
        path: the Arrow file.

    Raises:
        OdfError: the file cannot be written.
    """
    try:
        # Spark may run a task twice: each attempt writes under its own name, and no reader sees an incomplete file.
        with (
            replaced_atomically(Path(path)) as own,
            pa.OSFile(str(own), "wb") as sink,
            pa.ipc.new_file(sink, schema) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
    except OSError as error:
        raise OdfError(
            f"Cannot write {path}: {error.strerror or error}", hint="Free space on the disk of the workspace."
        ) from error


def rows_of_run(run: Run, rows: int | None = None) -> NormalizedRows:
    """Return the rows of a run in the order of the input, or its first rows."""
    table = open_table(run.path).slice(0, rows)
    names = [name for name in table.column_names if name not in (_GIVEN, _OPERATION)]
    operations = table.column(_OPERATION) if _OPERATION in table.column_names else None
    return NormalizedRows(table.select(names), table.column(_GIVEN), operations)


# --- Rows of runs ---------------------------------------------------------------------------------------------------


def gather_runs(runs: list[Run], positions: npt.NDArray[np.int64], names: list[str]) -> pa.Table:
    """Return rows by their positions in the input, in the given order; one run is in memory at a time.

    Args:
        runs: all runs, unsorted, in the order of the input.
        positions: positions in the input.
        names: names of the requested columns.
    """
    starts = np.cumsum([0, *(run.rows for run in runs)])
    run_of = np.searchsorted(starts, positions, side="right") - 1
    by_run = np.argsort(run_of, kind="stable")
    bounds = np.searchsorted(run_of[by_run], np.arange(len(runs) + 1))
    taken: list[pa.Table] = []
    for at, run in enumerate(runs):
        chosen = by_run[bounds[at] : bounds[at + 1]]
        if len(chosen) or not taken:
            table = open_table(run.path).select(names)
            places = pa.array(positions[chosen] - starts[at])
            taken.append(pa.table([gather(column, places) for column in table.columns], schema=table.schema))
    back = np.empty(len(positions), np.int64)
    back[by_run] = np.arange(len(positions))
    return pa.concat_tables(taken).take(pa.array(back))
