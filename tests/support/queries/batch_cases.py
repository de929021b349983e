"""Cases of queries whose outputs are compared with the batch, after any pull."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from support.engine.requests import transform_request
from support.queries.cases import Runner, zulu

from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.schema import DataSchema
from odfpy.dataset.transform import TemporalTable
from odfpy.engine.contract import OutputSoFar, TransformRequest, TransformResponse, TransformResponseSuccess
from odfpy.engine.spark.batch.job import compare_output
from odfpy.engine.spark.batch.request import BatchAnswer, BatchRequest


@dataclass
class Compared(Runner):
    """Runs the pulls of a case, and compares their output with the batch.

    Attributes:
        temporal: the temporal tables of the transform.
        batch_spark: runs the batch, with other settings perhaps.
        slices: slices written by the engine so far.
        schema: schema of the output.
    """

    temporal: Sequence[TemporalTable] = ()
    batch_spark: Any = None
    slices: list[str] = field(default_factory=list)
    schema: DataSchema | None = None

    def respond(self, request: TransformRequest) -> TransformResponse:
        """Return the response of the engine; record its slices."""
        response = super().respond(self._with_tables(request))
        if isinstance(response, TransformResponseSuccess):
            self.slices += [one.path for one in response.slices]
            self.schema = response.output_schema
        return response

    def _with_tables(self, request: TransformRequest) -> TransformRequest:
        transform = replace(request.transform, temporal_tables=tuple(self.temporal) or None)
        return replace(request, transform=transform)

    def request(self, most: int = 100, **changes: Any) -> BatchRequest:
        """Return the current request to the batch; changes are for the run."""
        assert self.schema is not None, "nothing has been pulled"
        folder = self.folder / f"batch-{self.pulls}"
        folder.mkdir(exist_ok=True)
        inputs = [source.input(watermark=zulu(self.known.get(alias))) for alias, source in self.sources.items()]
        run = self._with_tables(transform_request(folder, self.case.steps, *inputs))
        schema = folder / "schema"
        pq.write_table(to_arrow(self.schema).empty_table(), schema)
        output = OutputSoFar(str(schema), tuple(self.slices))
        return BatchRequest(replace(run, recorded_schema=self.schema, **changes), output, most)

    def compare(self, most: int = 100, **changes: Any) -> BatchAnswer:
        """Return how the output so far differs from the batch over all rows so far."""
        return compare_output(self.batch_spark or self.spark, self.request(most, **changes))

    def spoil(self, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
        """Replace the rows of the last slice."""
        path = Path(self.slices[-1])
        table = pq.read_table(path)
        pq.write_table(pa.Table.from_pylist(change(table.to_pylist()), schema=table.schema), path)
