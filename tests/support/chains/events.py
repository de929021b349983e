"""Short ways to write metadata events and chains."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from odfpy.chain.block import HashedBlock, MetadataBlock
from odfpy.chain.encoding import hash_block
from odfpy.chain.events import (
    AddData,
    AddPushSource,
    Checkpoint,
    DataSlice,
    ExecuteTransform,
    ExecuteTransformInput,
    MetadataEvent,
    Seed,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
    SourceState,
    TransformInput,
)
from odfpy.chain.read_steps import ReadNdJson
from odfpy.chain.sources import FetchUrl, MergeAppend
from odfpy.data.multihash import Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas import schema
from odfpy.data.schemas.schema import DataField, DataSchema, DataType
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.transform import SqlQueryStep, TransformSql

NOW = Timestamp.parse("2024-01-01T00:00:00Z")


def id_of(name: str) -> DatasetId:
    """Derive an id from a name."""
    return DatasetId(Multihash.of(name.encode()).digest)


def hash_of(name: str) -> Multihash:
    """Derive a hash from a name."""
    return Multihash.of(name.encode())


def day(number: int) -> Timestamp:
    """Return a day of January 2000, as a watermark."""
    return Timestamp.parse(f"2000-01-{number:02d}")


ROOT = Seed(id_of("root"), DatasetKind.ROOT)
DERIVATIVE = Seed(id_of("derivative"), DatasetKind.DERIVATIVE)


def columns(**types: DataType) -> DataSchema:
    """Return a schema with the system columns and some more."""
    moment = schema.Timestamp()
    system = {"offset": schema.UInt64(), "op": schema.Int32(), "system_time": moment, "event_time": moment}
    return DataSchema(tuple(DataField(name, type_) for name, type_ in {**system, **types}.items()))


CITIES = columns(city=schema.String(), population=schema.Option(schema.Int64()))
RAW_ARROW = base64.b64decode(
    "DAAAAAgACAAAAAQACAAAAAQAAAACAAAAQAAAAAQAAADY////GAAAAAwAAAAAAAAGEAAAAAAAAAAEAAQABAAAAAEAAABiAAAAEAAUABAAAAAPAAQA"
    "AAAIABAAAAAYAAAAIAAAAAAAAAIcAAAACAAMAAQACwAIAAAAQAAAAAAAAAEAAAAAAQAAAGEAAAA="
)
"""A schema as the reference recorded it in older blocks: `a` is an int64, `b` a bool, both required."""

SCHEMA = SetDataSchema(schema=CITIES)


def rows(start: int, end: int) -> DataSlice:
    """Return a slice with rows from `start` to `end`, both inclusive."""
    return DataSlice(hash_of(f"rows {start} {end}"), hash_of(f"file {start} {end}"), OffsetInterval(start, end), 100)


def checkpoint(name: str) -> Checkpoint:
    """Return a checkpoint of that content."""
    return Checkpoint(hash_of(name), len(name))


def source_state(value: str, source: str = "default") -> SourceState:
    """Return how far a source is."""
    return SourceState(source, "odf/etag", value)


def add(start: int | None = None, end: int | None = None, *, after: int | None = None, **rest: Any) -> AddData:
    """AddData with rows `start` to `end`, or without rows and with the last offset in `after`."""
    previous = start - 1 if start else after
    new_data = None if start is None or end is None else rows(start, end)
    return AddData(**{"prev_offset": previous, "new_data": new_data, **rest})


def sql(query: str = "SELECT * FROM a") -> TransformSql:
    """Return a normalized transform."""
    return TransformSql("spark", queries=(SqlQueryStep(query=query),))


def set_transform(*names: str, **changes: Any) -> SetTransform:
    """Return a transform of datasets of those names."""
    inputs = tuple(TransformInput(id_of(name), name) for name in names)
    return SetTransform(**{"inputs": inputs, "transform": sql(), **changes})


def taken(name: str, **interval: Any) -> ExecuteTransformInput:
    """Return the interval of an input that a run read; blocks are given by name."""
    blocks = {key: hash_of(value) for key, value in interval.items() if key.endswith("_hash")}
    return ExecuteTransformInput(id_of(name), **{**interval, **blocks})


def execute(
    *inputs: ExecuteTransformInput, start: int | None = None, end: int | None = None, **rest: Any
) -> ExecuteTransform:
    """Return a run with rows `start` to `end`."""
    return ExecuteTransform(inputs, **{**{f: getattr(add(start, end), f) for f in ("prev_offset", "new_data")}, **rest})


def polling(**changes: Any) -> SetPollingSource:
    """Return a polling source."""
    return SetPollingSource(
        **{"fetch": FetchUrl("https://example.com"), "read": ReadNdJson(), "merge": MergeAppend(), **changes}
    )


def push(name: str = "default", **changes: Any) -> AddPushSource:
    """Return a push source."""
    return AddPushSource(**{"source_name": name, "read": ReadNdJson(), "merge": MergeAppend(), **changes})


def unchecked(events: Iterable[MetadataEvent], **changes: Any) -> list[HashedBlock]:
    """Return a chain of blocks with the given events, without checking rules; `changes` are for the last block."""
    blocks: list[HashedBlock] = []
    events = list(events)
    for number, event in enumerate(events):
        parts: dict[str, Any] = {
            "system_time": NOW,
            "prev_block_hash": blocks[-1].hash if blocks else None,
            "sequence_number": number,
            "event": event,
        }
        if number == len(events) - 1:
            parts |= changes
        blocks.append(hash_block(MetadataBlock(**parts))[0])
    return blocks
