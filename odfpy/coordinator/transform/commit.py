"""Commit of a run: its slice, checkpoint and schema become the next blocks of the dataset, atomically."""

from __future__ import annotations

from pathlib import Path

from odfpy.chain.events import Checkpoint, DataSlice, ExecuteTransform, MetadataEvent, SetDataSchema, SetTransform
from odfpy.chain.state import ChainState
from odfpy.coordinator.storage.clock import warnings_of_last_block
from odfpy.coordinator.storage.commit import up_to_date
from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.transform.empty_runs import note_empty_run
from odfpy.coordinator.transform.intervals import InputInterval, have_new_blocks
from odfpy.data.multihash import Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas.evolution import extend_with_result, is_equivalent
from odfpy.data.schemas.primary_key import primary_key_of, with_primary_key
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.engine import contract
from odfpy.errors import InternalError
from odfpy.stages import stage
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class _Change:
    """The changes that a run makes to a dataset.

    Attributes:
        events: the new events.
        data: the slice of new rows, None if there are none.
        checkpoint: the checkpoint of the run, None if there is none.
    """

    events: list[MetadataEvent]
    data: DataSlice | None
    checkpoint: Checkpoint | None


def _change(
    state: ChainState,
    inputs: list[InputInterval],
    request: contract.TransformRequest,
    response: contract.TransformResponseSuccess,
    set_transform: SetTransform,
) -> _Change | None:
    """Return the changes that a run makes to a dataset; None if there are none.

    Args:
        state: the state of the dataset.
        inputs: the input intervals that were read.
        request: the request to the engine.
        response: the response of the engine.
        set_transform: the transform, with the version of the engine that ran it.
    """
    # In the chain, the transform with its engine version precedes the data that it has produced.
    events: list[MetadataEvent] = [] if set_transform == state.set_transform else [set_transform]
    schema = _schema_to_set(state.schema, response.output_schema)
    if schema is not None:
        events.append(SetDataSchema(schema=schema))
    data, checkpoint = _new_data(response), checkpoint_of(Path(request.new_checkpoint_path))
    watermark = watermark_after(state, response)
    if data is None and checkpoint is None and (watermark is None or not have_new_blocks(inputs)):
        # A block that only advances the inputs is invalid. A first schema is committed nevertheless, so that queries
        # and derivatives can use a dataset without rows.
        return _Change(events, None, None) if schema is not None and state.schema is None else None
    events.append(
        ExecuteTransform(
            query_inputs=tuple(item.interval for item in inputs),
            prev_checkpoint=state.checkpoint.physical_hash if state.checkpoint else None,
            prev_offset=state.last_offset,
            new_data=data,
            new_checkpoint=checkpoint,
            new_watermark=watermark,
        )
    )
    return _Change(events, data, checkpoint)


def _new_data(response: contract.TransformResponseSuccess) -> DataSlice | None:
    if len(response.slices) > 1:
        raise InternalError("The engine wrote several slices; this release commits one")
    for described in response.slices:
        interval = OffsetInterval(described.offset_interval.start, described.offset_interval.end)
        return DataSlice(described.logical_hash, described.physical_hash, interval, described.size)
    return None


def commit_run(
    dataset: StoredDataset,
    state: ChainState,
    inputs: list[InputInterval],
    request: contract.TransformRequest,
    response: contract.TransformResponseSuccess,
    set_transform: SetTransform,
    replacing: Multihash | None,
) -> PullResult:
    """Commit the result of a run to a dataset.

    Args:
        dataset: the dataset; its lock is required.
        state: the state before the run.
        inputs: the input intervals that were read.
        request: the request to the engine.
        response: the response of the engine.
        set_transform: the transform, with the version of the engine that ran it.
        replacing: the current head, if the run follows another block.
    """
    change = _change(state, inputs, request, response, set_transform)
    if change is None:
        note_empty_run(dataset, state.head, inputs)
        return up_to_date(dataset)
    with stage("checks"):
        new = dataset.chain.prepare(state, change.events, request.system_time)
    with stage("files"):
        if change.data is not None:
            dataset.layout.data.insert_file(Path(response.slices[0].path), change.data.physical_hash)
        if change.checkpoint is not None:
            path = Path(request.new_checkpoint_path)
            dataset.layout.checkpoints.insert_file(path, change.checkpoint.physical_hash)
    with stage("blocks"):
        after = dataset.chain.commit(new, replacing=replacing)
    if not any(isinstance(event, ExecuteTransform) for event in change.events):
        note_empty_run(dataset, after.head, inputs)
    return PullResult(
        name=str(dataset.handle),
        outcome=PullOutcome.UPDATED,
        old_head=state.head,
        new_head=after.head,
        num_blocks=len(new.encoded),
        num_records=after.num_records - state.num_records,
        counts=_counts(request, response),
        watermark=after.watermark,
        warnings=warnings_of_last_block(state.system_time),
        notes=dataset.workspace_folder.signing.remarks(),
    )


def _counts(request: contract.TransformRequest, response: contract.TransformResponseSuccess) -> dict[str, int]:
    """Return the number of input rows that were read, that were late, and that were ignored for being late."""
    intervals = [source.offset_interval for source in request.query_inputs if source.offset_interval is not None]
    read = sum(interval.num_rows for interval in intervals)
    return {"read": read, "late": response.late_rows, "ignored": response.ignored_rows} if read else {}


def _schema_to_set(recorded: DataSchema | None, output: DataSchema | None) -> DataSchema | None:
    """Return the schema to record with this run, None if the recorded one is still valid."""
    if output is None or recorded is None:
        return output
    extended = with_primary_key(extend_with_result(recorded, output), primary_key_of(output))
    return None if is_equivalent(recorded, extended) else extended


def checkpoint_of(path: Path) -> Checkpoint | None:
    """Return hash and size of a checkpoint file, None if the file does not exist."""
    if not path.is_file():
        return None
    with stage("hash"), path.open("rb") as file:
        return Checkpoint(Multihash.of_stream(file), path.stat().st_size)


def watermark_after(state: ChainState, response: contract.TransformResponseSuccess) -> Timestamp | None:
    """Return the watermark to record with a run: the engine's, unless the dataset already has a later one.

    The latter may happen after a change of the query or of an input; watermarks never go back.
    """
    return max((mark for mark in (state.watermark, response.new_watermark) if mark is not None), default=None)
