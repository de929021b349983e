"""Ingests for a lane, and their results in the local lane."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from odfpy.chain.read_steps import ReadStep
from odfpy.chain.sources import MergeStrategy
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.ingest.lanes.request import LaneRequest
from odfpy.ingest.lanes.source import open_table
from odfpy.ingest.normalize import coerce_inferred_event_time
from odfpy.ingest.pipeline import IngestedData, IngestTarget, ingest_rows
from odfpy.ingest.read import read, schema_of
from odfpy.state.current import ScannedState

SYSTEM_TIME, SOURCE_TIME = Timestamp.parse("2025-01-01T00:00:00Z"), Timestamp.parse("2024-01-03T12:00:00Z")


def lane_request(step: ReadStep, path: Path, strategy: MergeStrategy, out: Path, **more: Any) -> LaneRequest:
    """Return the first ingest of a dataset; the caller chooses the parts."""
    return LaneRequest(
        read=step,
        path=str(path),
        name=path.name,
        strategy=strategy,
        vocab=DEFAULT_VOCABULARY,
        schema=None,
        slices=(),
        next_offset=0,
        system_time=SYSTEM_TIME,
        source_event_time=SOURCE_TIME,
        watermark=SOURCE_TIME,
        out=str(out),
        **more,
    )


def locally(request: LaneRequest) -> IngestedData:
    """Return the result of the local lane."""
    if request.read is None:
        rows = open_table(request.path)
    else:
        rows = read(request.read, Path(request.path), name=request.name)
        rows = rows if schema_of(request.read) else coerce_inferred_event_time(rows, request.vocab)
    target = IngestTarget(
        vocab=request.vocab,
        schema=request.schema,
        next_offset=request.next_offset,
        watermark=request.watermark,
        state=lambda schema: ScannedState([Path(path) for path in request.slices], schema, request.vocab),
    )
    return ingest_rows(
        rows,
        target,
        request.strategy,
        system_time=request.system_time,
        source_event_time=request.source_event_time,
        out=Path(request.out),
        limit=request.limit,
        slice_rows=request.slice_rows,
    )


def following(request: LaneRequest, after: IngestedData) -> LaneRequest:
    """Return the same request for a dataset that has the given result."""
    slices = tuple(str(item.path) for item in after.slices)
    rows_now = request.next_offset + sum(item.info.num_rows for item in after.slices)
    return replace(request, schema=after.schema, slices=slices, next_offset=rows_now)
