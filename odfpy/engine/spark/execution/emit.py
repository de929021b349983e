"""Output of result rows that correspond to rows of the sources, written to a slice in the order of the sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from odfpy.data.timestamp import Timestamp
from odfpy.engine.contract import SliceDescription, TransformRequest
from odfpy.engine.corrections import TaggedRows, finalize_correction_pairs
from odfpy.engine.floats import normalize_floats
from odfpy.engine.output import OutputLayout, OutputSlice
from odfpy.engine.spark.plan.catalyst import Catalyst
from odfpy.engine.spark.plan.step import CARRIED_INPUT
from odfpy.engine.spark.row_by_row.carried import Delta
from odfpy.engine.spark.rows.batches import ROWS_IN_ONE_TASK, in_input_order, tagged_rows
from odfpy.engine.spark.rows.write import write_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_delta(
    catalyst: Catalyst,
    delta: Delta,
    layout: OutputLayout,
    request: TransformRequest,
    source_rows: Sequence[int],
    names: Sequence[str],
    rows_in_one_task: int = ROWS_IN_ONE_TASK,
) -> tuple[SliceDescription, ...]:
    """Write the rows of a delta to the slice of a request.

    Args:
        catalyst: the session.
        delta: the rows.
        layout: their final columns.
        request: the request, with the path and the first offset.
        source_rows: how many rows are read from each source.
        names: names of the sources, for messages.
        rows_in_one_task: has no effect on the result.
    """
    if not any(source_rows):
        return ()
    frame = in_input_order(catalyst.dataframe(delta.plan), delta, source_rows, rows_in_one_task)
    fans_out = tuple(branch.fans_out for branch in delta.branches)
    return write_slice(frame, request, _DeltaRows(fans_out, tuple(names)), layout)


def write_slice(
    frame: DataFrame, request: TransformRequest, final: FinalRows, layout: OutputLayout
) -> tuple[SliceDescription, ...]:
    """Write rows that are in their final order to the slice of a request, in the driver or in an executor.

    Args:
        frame: the rows.
        request: the request, with the path and the first offset.
        final: assigns operation types to the rows.
        layout: their final columns.
    """
    work = _SliceWork(layout, request.next_offset, request.system_time, final)
    slices = write_file(frame, Path(request.new_data_path), work)
    return tuple(replace(described, path=request.new_data_path) for described in slices)


FinalRow: TypeAlias = tuple[pa.RecordBatch, pa.Array, Callable[[int], str]]
FinalRows: TypeAlias = Callable[[Iterator[pa.RecordBatch]], Iterator[FinalRow]]
"""Converts batches from Spark to the arguments of `OutputSlice.write`."""


@dataclass(frozen=True, slots=True)
class _SliceWork:
    """Work that writes a slice; it is pickled if an executor runs it."""

    layout: OutputLayout
    next_offset: int
    system_time: Timestamp
    final: FinalRows

    def __call__(self, path: str, batches: Iterator[pa.RecordBatch]) -> tuple[SliceDescription, ...]:
        output = OutputSlice(path, self.layout, next_offset=self.next_offset, system_time=self.system_time)
        with output:
            for rows, operation_types, where in self.final(batches):
                output.write(normalize_floats(rows), operation_types, where)
            return output.finish()


@dataclass(frozen=True, slots=True)
class _DeltaRows:
    """Result rows that correspond to source rows; the operation type of half a correction is adjusted."""

    fans_out: tuple[bool, ...]
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[FinalRow]:
        for batch in finalize_correction_pairs(tagged_rows(batches, self.fans_out)):
            yield batch.rows, pa.array(batch.operation_types, pa.int32()), _origin_of(batch, self.names)


def _origin_of(batch: TaggedRows, names: Sequence[str]) -> Callable[[int], str]:
    """Return a function that names the source row of a result row, for messages."""

    def name(row: int) -> str:
        source = names[batch.rows.column(CARRIED_INPUT)[row].as_py()]
        return f"; it comes from offset {batch.offsets[row]} of `{source}`"

    return name
