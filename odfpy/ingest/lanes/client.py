"""The Spark lane as the coordinator sees it: a request goes to the engine's worker, slices come back as files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from odfpy.codec.tree import from_tree, to_tree
from odfpy.data.slice_writer import SliceInfo
from odfpy.ingest.lanes.request import LaneRequest, LaneResult, LaneSlice
from odfpy.ingest.pipeline import IngestedData, IngestStatistics
from odfpy.ingest.write import WrittenSlice

if TYPE_CHECKING:
    from pathlib import Path

    from odfpy.engine.client import SparkEngine

JOB = "odfpy.ingest.lanes.spark:ingest"


def ingest_on_spark(engine: SparkEngine, request: LaneRequest, folder: Path) -> IngestedData:
    """Turn a file into data slices, in the engine's worker.

    Args:
        engine: where to.
        request: what.
        folder: that of `request.out`, which is emptied if the worker breaks down.

    Raises:
        OdfError: as `odfpy.ingest.pipeline.ingest_rows` and `odfpy.ingest.read.read`.
        EngineUnavailable: the worker does not start, or dies.
    """
    answer = engine.run_job(JOB, json.dumps(to_tree(request)), folder)
    return ingested_data(from_tree(LaneResult, json.loads(answer)), request)


def ingested_data(result: LaneResult, request: LaneRequest) -> IngestedData:
    """The result of the lane in the form of the local one."""
    from pathlib import Path

    counts = result.counts
    statistics = IngestStatistics(
        counts.read, counts.appended, counts.corrected, counts.retracted, counts.dropped, counts.repeated, counts.late
    )
    slices = tuple(WrittenSlice(Path(item.path), _info(item)) for item in result.slices)
    changed = result.schema is not None and (
        request.schema is None or (bool(slices) and result.schema != request.schema)
    )
    schema = result.schema if slices or request.schema is None else request.schema
    return IngestedData(slices, schema, changed, statistics)


def _info(item: LaneSlice) -> SliceInfo:
    return SliceInfo(
        physical_hash=item.physical_hash,
        logical_hash=item.logical_hash,
        offset_start=item.offset_start,
        offset_end=item.offset_end,
        size=item.size,
        num_rows=item.num_rows,
        min_event_time=item.min_event_time,
        max_event_time=item.max_event_time,
    )
