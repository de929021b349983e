"""Rows that stand for rows of the sources, written to a slice in the order of the sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa

from odfpy.engine.contract import SliceDescription, TransformRequest
from odfpy.engine.corrections import CarriedRows, mend_pairs
from odfpy.engine.floats import in_one_form
from odfpy.engine.output import OutputForm, OutputSlice
from odfpy.engine.spark.catalyst import Catalyst
from odfpy.engine.spark.classes.base import Delta
from odfpy.engine.spark.rows import ROWS_IN_ONE_TASK, carried_rows, in_input_order


def write_delta(
    catalyst: Catalyst,
    delta: Delta,
    form: OutputForm,
    request: TransformRequest,
    source_rows: Sequence[int],
    names: Sequence[str],
    rows_in_one_task: int = ROWS_IN_ONE_TASK,
) -> tuple[SliceDescription, ...]:
    """Write the rows of a delta to the slice of a request.

    Args:
        catalyst: the session.
        delta: the rows.
        form: their final columns.
        request: says where to, and from which offset on.
        source_rows: how many rows are read, of each source.
        names: of the sources, for messages.
        rows_in_one_task: makes no difference to the result.
    """
    if not any(source_rows):
        return ()
    frame = in_input_order(catalyst.dataframe(delta.plan), delta, source_rows, rows_in_one_task)
    output = OutputSlice(request.new_data_path, form, next_offset=request.next_offset, system_time=request.system_time)
    with output:
        for batch in mend_pairs(carried_rows(frame, delta)):
            operation_types = pa.array(batch.operation_types, pa.int32())
            output.write(in_one_form(batch.rows), operation_types, _origin_of(batch, names))
        return output.finish()


def _origin_of(batch: CarriedRows, names: Sequence[str]) -> Callable[[int], str]:
    """Names the row of a source that a row of the result stands for."""

    def name(row: int) -> str:
        source = names[batch.rows.column("__odf_input")[row].as_py()]
        return f"; it comes from offset {batch.offsets[row]} of `{source}`"

    return name
