"""The coordinator's side of the Spark lane: a request goes to the engine's worker, slices are returned as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.codec.tree import from_tree, to_tree
from odfpy.ingest.lanes.request import LaneRequest, LaneResult
from odfpy.ingest.pipeline import IngestedData
from odfpy.ingest.write import WrittenSlice, slice_files

if TYPE_CHECKING:
    from odfpy.engine.worker.client import SparkEngine

JOB = "odfpy.ingest.lanes.spark:ingest"


def ingest_on_spark(engine: SparkEngine, request: LaneRequest, folder: Path) -> IngestedData:
    """Convert a file to data slices in the engine's worker.

    Args:
        engine: the engine.
        request: the request.
        folder: folder of `request.out`, which is emptied if the worker crashes.

    Raises:
        OdfError: as `odfpy.ingest.pipeline.ingest_rows` and `odfpy.ingest.read.read`.
        EngineUnavailable: the worker does not start, or dies.
    """
    answer = engine.run_job(JOB, json.dumps(to_tree(request)), folder, (request.path, *request.slices))
    return ingested_data(from_tree(LaneResult, json.loads(answer)), request)


def ingested_data(result: LaneResult, request: LaneRequest) -> IngestedData:
    """Return the result of the lane in the form of the local one."""
    files = slice_files(Path(request.out), len(result.slices))
    slices = tuple(map(WrittenSlice, files, result.slices))
    changed = result.schema is not None and (
        request.schema is None or (bool(slices) and result.schema != request.schema)
    )
    schema = result.schema if slices or request.schema is None else request.schema
    return IngestedData(slices, schema, changed, result.statistics, result.warnings)
