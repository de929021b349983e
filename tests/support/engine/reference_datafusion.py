"""The DataFusion engine of the reference implementation, as far as the order of its rows is concerned.

Modeled on the source of kamu-engine-datafusion 0.9 (`src/engine.rs`): all slices of an input are one table over files
named by their hashes, in a session with one partition; offsets number the rows of the result as they arrive. The order
in which these files are read is up to DataFusion, as in the original.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
from datafusion import SessionConfig, SessionContext, col, lit

from odfpy.data.schemas.arrow import from_arrow, plain_schema
from odfpy.data.schemas.retype import plain_batch
from odfpy.engine.contract import (
    TransformRequest,
    TransformRequestInput,
    TransformResponseSuccess,
)
from odfpy.engine.output import OutputSlice, output_layout


class ReferenceDataFusion:
    """An engine that does not report its version, like those of the reference.

    Attributes:
        backwards: whether to reverse the rows of the result, as no engine does.
    """

    name = "datafusion"
    version: str | None = None
    backwards = False

    def transform(self, request: TransformRequest) -> TransformResponseSuccess:
        """Run the queries of a transform; all but the last have an alias."""
        context = SessionContext(
            SessionConfig()
            .with_target_partitions(1)
            .set("datafusion.sql_parser.enable_ident_normalization", "false")
            .set("datafusion.execution.parquet.schema_force_view_types", "false")
        )
        for source in request.query_inputs:
            _register(context, source, Path(request.new_data_path).parent)
        *earlier, last = request.transform.steps
        for step in earlier:
            context.register_view(step.alias, context.sql(step.query))
        frame = context.sql(last.query)
        if self.backwards:
            frame = frame.sort(*(col(name).sort(ascending=False) for name in ("event_time", "id", "op")))
        schema = plain_schema(frame.schema())
        layout = output_layout(schema, request.vocab, request.recorded_schema)
        system_time, next_offset = request.system_time, request.next_offset
        with OutputSlice(request.new_data_path, layout, next_offset=next_offset, system_time=system_time) as output:
            for batch in (plain_batch(found, schema) for found in frame.collect()):
                appended = pa.array(np.zeros(batch.num_rows, dtype=np.int32))
                output.write(batch, appended if layout.operation_type is None else batch.column(layout.operation_type))
            slices = output.finish()
        marks = [mark.event_time for source in request.query_inputs for mark in source.explicit_watermarks]
        interval = slices[0].offset_interval if slices else None
        return TransformResponseSuccess(interval, min(marks), slices, output_schema=from_arrow(layout.schema))


def _register(context: SessionContext, source: TransformRequestInput, scratch: Path) -> None:
    folder = scratch / f"in-{source.query_alias}"
    folder.mkdir()
    for path in source.data_paths:
        shutil.copy(path, folder)
    interval, offset = source.offset_interval, col(source.vocab.offset_column)
    rows = context.read_parquet(folder, file_extension="")
    wanted = (offset >= lit(interval.start)) & (offset <= lit(interval.end))
    context.register_view(source.query_alias, rows.filter(wanted))
