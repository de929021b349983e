"""Ingest of rows created by a program, together with their linked files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.chain.events import AddPushSource, MetadataEvent
from odfpy.coordinator.ingest.ingest import events_of
from odfpy.coordinator.ingest.keyed_state import DatasetKeys
from odfpy.coordinator.ingest.watermarks import policy_of
from odfpy.coordinator.storage.commit import commit_events, commit_time
from odfpy.coordinator.storage.results import PullResult
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.schema import DataSchema

if TYPE_CHECKING:
    import pyarrow as pa


def commit_rows(
    dataset: StoredDataset,
    source: AddPushSource,
    rows: pa.Table,
    scratch: Path,
    *,
    schema: DataSchema | None = None,
    first: Sequence[MetadataEvent] = (),
    objects: Mapping[Multihash, Path] | None = None,
) -> PullResult:
    """Merge rows into a dataset and commit them; the caller holds the dataset's lock.

    Args:
        dataset: the dataset.
        source: the push source, whose merge strategy is used.
        rows: the rows, with the columns of the dataset.
        scratch: a folder for the slices, on the file system of the dataset.
        schema: the schema of the dataset, if `first` sets it.
        first: events that are committed before the rows, atomically with them.
        objects: the new files that the rows link to; see `commit_events`.

    Raises:
        OdfError: nothing was committed.
    """
    from odfpy.ingest.pipeline import ingest_rows

    state = dataset.state
    system_time = commit_time(state)
    with DatasetKeys(dataset, source.merge, scratch) as keys:
        ingested = ingest_rows(
            rows,
            keys.target(schema),
            source.merge,
            system_time=system_time,
            source_event_time=system_time,
            out=scratch / "data",
        )
        events = [*first, *events_of(state, ingested, None, policy_of(dataset), source.read.schema)]
        written = {item.info.physical_hash: item.path for item in ingested.slices}
        result = commit_events(dataset, state, events, system_time, written, objects)
        keys.extend(result.new_head, ingested.schema)
        return result
