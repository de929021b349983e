"""Runs: the rows of one part of the input, checked and in their final types, in an Arrow file.

For an append a run is sorted by event time, so that a slice takes one stretch of each. For other strategies it has the
order of the input, and says of each row what the merge wants to know of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odfpy.chain.sources import MergeAppend
from odfpy.data.arrow import to_arrow
from odfpy.data.memory import bulk_memory
from odfpy.data.schema import DataSchema
from odfpy.errors import OdfError
from odfpy.ingest.evolve import untyped_columns
from odfpy.ingest.fit import fit_rows
from odfpy.ingest.gather import combined, gathered
from odfpy.ingest.lanes.failure import Failure
from odfpy.ingest.lanes.request import LaneRequest
from odfpy.ingest.normalize import NormalizedRows, coerce_inferred_event_time, normalize_rows
from odfpy.ingest.order import as_numbers, time_order
from odfpy.ingest.read import Part, read_part, schema_of
from odfpy.ingest.read.files import Incomplete

_GIVEN, _OPERATION = "\0given", "\0op"


@dataclass(frozen=True, slots=True)
class Run:
    """A run.

    Attributes:
        path: its file.
        rows: how many it has.
        schema: of the dataset with these rows in it, None if they tell none.
    """

    path: str
    rows: int
    schema: DataSchema | None


def make_run(request: LaneRequest, part: Part, path: str, first_row: int) -> Run | Failure:
    """Read a part of the input and write it as a run.

    Args:
        request: the ingest.
        part: what to read.
        path: file to write.
        first_row: rows of the input before the part, for messages.
    """
    try:
        with bulk_memory():
            return _make_run(request, _read(request, part), path, first_row)
    except Incomplete:
        return Failure(None)
    except OdfError as error:
        return Failure.of(error)


def _read(request: LaneRequest, part: Part) -> pa.Table:
    if request.read is None:
        return open_table(request.path)
    rows = read_part(request.read, Path(request.path), part, name=request.name)
    return coerce_inferred_event_time(rows, request.vocab) if schema_of(request.read) is None else rows


def _make_run(request: LaneRequest, rows: pa.Table, path: str, first_row: int) -> Run:
    if request.schema is None and rows.num_rows == 0 and (not rows.num_columns or untyped_columns(rows.schema)):
        return Run(path, 0, None)
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
        table = _sorted(fitted.columns, request.vocab.event_time_column)
    else:
        table = fitted.columns.append_column(_GIVEN, fitted.event_time_given)
        if fitted.operations is not None:
            table = table.append_column(_OPERATION, fitted.operations)
    write_table(table, path)
    return Run(path, rows.num_rows, schema)


def _sorted(rows: pa.Table, event_time: str) -> pa.Table:
    order = time_order(rows.column(event_time))
    if order is None:
        return rows
    return pa.table([gathered(combined(column), order) for column in rows.columns], schema=rows.schema)


# --- Files -----------------------------------------------------------------------------------------------------------


def write_table(table: pa.Table, path: str) -> None:
    """Rows to an Arrow file, in as few batches as possible."""
    whole = pa.table([combined(column) for column in table.columns], schema=table.schema)
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, whole.schema) as writer:
        writer.write_table(whole)


def open_table(path: str) -> pa.Table:
    """The rows of an Arrow file, of which only what is looked at gets into memory."""
    with pa.memory_map(path) as source, pa.ipc.open_file(source) as reader:
        return reader.read_all()


def rows_of_run(run: Run, rows: int | None = None) -> NormalizedRows:
    """A run that has the order of the input, or its first rows."""
    table = open_table(run.path).slice(0, rows)
    names = [name for name in table.column_names if name not in (_GIVEN, _OPERATION)]
    operations = table.column(_OPERATION) if _OPERATION in table.column_names else None
    return NormalizedRows(table.select(names), table.column(_GIVEN), operations)


# --- Runs together ---------------------------------------------------------------------------------------------------


class SortedRuns:
    """The rows of sorted runs by rank, which is their place in the order of all."""

    def __init__(self, runs: list[Run], event_time: str) -> None:
        self._event_time = event_time
        self._tables = [open_table(run.path) for run in runs if run.rows]
        self._times = [_numbers(table.column(event_time)) for table in self._tables]
        self._last: tuple[int, npt.NDArray[np.int64]] | None = None

    def places(self, rank: int) -> npt.NDArray[np.int64]:
        """How many rows of each run are among the first `rank` of all; of equal rows the earlier run's are first."""
        low = min(int(times[0]) for times in self._times)
        high = max(int(times[-1]) for times in self._times)
        while low < high:
            middle = (low + high) // 2
            if sum(int(np.searchsorted(times, middle, side="right")) for times in self._times) >= rank:
                high = middle
            else:
                low = middle + 1
        before = np.array([np.searchsorted(times, low, side="left") for times in self._times])
        equal = np.array([np.searchsorted(times, low, side="right") for times in self._times]) - before
        wanted = rank - before.sum()
        taken_before = np.cumsum(equal) - equal
        places: npt.NDArray[np.int64] = before + np.clip(wanted - taken_before, 0, equal)
        return places

    def rows(self, start: int, stop: int) -> pa.Table:
        """The rows from one rank to another, in order."""
        first = self._last[1] if self._last is not None and self._last[0] == start else self.places(start)
        last = self.places(stop)
        self._last = stop, last
        stretches = [
            table.slice(begin, end - begin)
            for table, begin, end in zip(self._tables, first, last, strict=True)
            if begin < end
        ]
        return _sorted(pa.concat_tables(stretches), self._event_time)


def _numbers(event_time: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Event times as numbers; those of a single array stay in their file, so that bisection reads a few pages only."""
    if event_time.num_chunks != 1:
        return as_numbers(event_time)
    times = event_time.chunk(0)
    numbers: npt.NDArray[Any] = times.cast(pa.int32() if pa.types.is_date(times.type) else pa.int64()).to_numpy()
    return numbers


def gather_runs(runs: list[Run], positions: npt.NDArray[np.int64], names: list[str]) -> pa.Table:
    """Rows by their place in the input, in the order asked for; one run is in memory at a time.

    Args:
        runs: all, in the order of the input, not sorted.
        positions: places in the input.
        names: columns wanted.
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
            taken.append(pa.table([gathered(column, places) for column in table.columns], schema=table.schema))
    back = np.empty(len(positions), np.int64)
    back[by_run] = np.arange(len(positions))
    return pa.concat_tables(taken).take(pa.array(back))
