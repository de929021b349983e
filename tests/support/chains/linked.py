"""Workspaces with datasets whose rows link to objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
from support.chains.workspaces import workspace_with

from odfpy.chain.events import AddData, DataSlice, MetadataEvent, SetDataSchema
from odfpy.chain.link_summary import LinkedObjects
from odfpy.chain.slices import slice_paths, slices_of
from odfpy.coordinator.storage.commit import commit_events, commit_time
from odfpy.coordinator.storage.results import PullResult
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import BLAKE3, Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas.evolution import with_attributes
from odfpy.data.timestamp import Timestamp
from odfpy.ingest.pipeline import IngestTarget, ingest_rows
from odfpy.state.current import ScannedState

LINK = "{opendatafabric.org/type: {kind: ObjectLink, linkType: {kind: Multihash}}"
FULL = f"{LINK}, org.odfpy/sizeColumn: size, org.odfpy/removedColumn: removed}}"
BARE = f"{LINK}}}"

FILES = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: NdJson
        schema:
          fields:
            - {{name: event_time, type: Timestamp}}
            - {{name: id, type: Int64}}
            - {{name: what, type: {{kind: Option, inner: String}}}}
            - {{name: content, type: {{kind: Option, inner: String}}, extra: {extra}}}
            - {{name: size, type: {{kind: Option, inner: Int64}}}}
            - {{name: removed, type: {{kind: Option, inner: Timestamp}}}}
      merge: {merge}
"""

UPSERT = "{kind: UpsertStream, primaryKey: [id]}"
SNAPSHOT = "{kind: Snapshot, primaryKey: [id]}"
APPEND = "{kind: Append}"


def files_manifest(name: str = "files", merge: str = UPSERT, extra: str = FULL) -> str:
    """Return the manifest of a root dataset: event_time, id, what, content (a link), size and removed."""
    return FILES.format(name=name, merge=merge, extra=extra)


def files_workspace(folder: Path, *, merge: str = UPSERT, extra: str = FULL) -> Workspace:
    """Return a workspace with an empty dataset `files`."""
    return workspace_with(folder, files_manifest(merge=merge, extra=extra))


def name_of(data: bytes) -> Multihash:
    """Return the name of an object."""
    return Multihash.of(data, BLAKE3)


def put(workspace: Workspace, *objects: bytes, name: str = "files") -> list[Multihash]:
    """Put objects into a dataset; nothing links to them yet."""
    store = workspace.storage.get(name).layout.data
    return [store.insert(data, BLAKE3) for data in objects]


def row(key: int, data: bytes | None, *, day: int = 1, **more: Any) -> dict[str, Any]:
    """Return a row that links to an object."""
    link = {} if data is None else {"content": str(name_of(data)), "size": len(data)}
    return {"event_time": f"2024-01-{day:02d}T00:00:00Z", "id": key, "what": "log", **link, **more}


def ingest(workspace: Workspace, rows: Iterable[Mapping[str, Any]], name: str = "files") -> PullResult:
    """Ingest rows whose objects are in the dataset."""
    file = workspace.root / "rows.ndjson"
    file.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    (result,) = workspace.ingest(name, [file])
    return result


def add(workspace: Workspace, *rows: tuple[int, bytes], name: str = "files", day: int = 1, **more: Any) -> PullResult:
    """Put objects, and ingest a row for each, given with its key."""
    put(workspace, *(data for _, data in rows), name=name)
    return ingest(workspace, [row(key, data, day=day, **more) for key, data in rows], name)


def summary(workspace: Workspace, name: str = "files") -> LinkedObjects:
    """Return the summary of all blocks' links."""
    blocks = workspace.storage.get(name).chain.iter_blocks()
    return sum((LinkedObjects.of(block.block.event) for block in blocks), LinkedObjects())


def objects_in(workspace: Workspace, name: str = "files") -> set[Multihash]:
    """Return the objects of a dataset that are not slices."""
    dataset = workspace.storage.get(name)
    events = [hashed.block.event for hashed in dataset.chain.iter_blocks()]
    slices = {event.new_data.physical_hash for event in events if isinstance(event, AddData) and event.new_data}
    return set(dataset.layout.data) - slices


def commit_with_files(workspace: Workspace, rows: list[tuple[int, bytes]], name: str = "files") -> None:
    """Commit rows together with their objects, as a program of the coordinator does it."""
    with workspace.storage.get(name).writing() as dataset, workspace.storage.scratch() as scratch:
        objects = {}
        for _, data in rows:
            objects[name_of(data)] = scratch / f"object-{len(objects)}"
            objects[name_of(data)].write_bytes(data)
        said = [(key, str(name_of(data)), len(data)) for key, data in rows]
        events, written, time = _written(dataset, scratch, said)
        commit_events(dataset, dataset.state, events, time, written, objects)


def commit_unchecked(workspace: Workspace, rows: list[tuple[int, str, int | None]], name: str = "files") -> None:
    """Commit rows without validation: keys, any text as a link, any size."""
    with workspace.storage.get(name).writing() as dataset, workspace.storage.scratch() as scratch:
        events, written, time = _written(dataset, scratch, rows)
        for physical_hash, path in written.items():
            dataset.layout.data.insert_file(path, physical_hash)
        dataset.chain.commit(dataset.chain.prepare(dataset.state, events, time))


def _written(
    dataset: StoredDataset, scratch: Path, rows: list[tuple[int, str, int | None]]
) -> tuple[list[MetadataEvent], dict[Multihash, Path], Timestamp]:
    """Events with slices in a scratch folder."""
    state = dataset.state
    source = state.push_sources[0]
    times = pa.array([datetime(2024, 1, 1, tzinfo=timezone.utc)] * len(rows), pa.timestamp("ms", "UTC"))
    table = pa.table(
        {
            "event_time": times,
            "id": pa.array([key for key, _, _ in rows], pa.int64()),
            "what": pa.array(["log"] * len(rows), pa.string()),
            "content": pa.array([text for _, text, _ in rows], pa.string()),
            "size": pa.array([size for _, _, size in rows], pa.int64()),
            "removed": pa.array([None] * len(rows), pa.timestamp("ms", "UTC")),
        }
    )
    time = commit_time(state)
    slices = slice_paths(dataset.layout.data, slices_of(dataset.chain.in_order()))
    target = IngestTarget(
        vocab=state.vocab,
        schema=state.schema,
        next_offset=state.next_offset,
        state=lambda schema: ScannedState(slices, schema, state.vocab),
    )
    ingested = ingest_rows(
        table,
        target,
        source.merge,
        system_time=time,
        source_event_time=time,
        out=scratch / "slice",
    )
    events: list[MetadataEvent] = []
    if ingested.schema_changed and ingested.schema is not None:
        events.append(SetDataSchema(schema=with_attributes(ingested.schema, state.schema, source.read.schema)))
    last = state.last_offset
    for item in ingested.slices:
        info = item.info
        interval = OffsetInterval(info.offset_start, info.offset_end)
        slice_ = DataSlice(info.logical_hash, info.physical_hash, interval, info.size)
        events.append(AddData(prev_offset=last, new_data=slice_, new_watermark=state.watermark))
        last = info.offset_end
    return events, {item.info.physical_hash: item.path for item in ingested.slices}, time
