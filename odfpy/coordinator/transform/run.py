"""Runs of a derivative dataset's query: find new input data, run the engine, commit its output.

A pull and a verification create the same request for the same input intervals, so that a replay can be compared with
the recorded result.

    1. determine the new blocks and rows of each input
    2. describe them in a request to the engine, together with the last checkpoint
    3. run the engine in a scratch folder
    4. commit slice, checkpoint, schema and ExecuteTransform in one step
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from odfpy.chain.events import SetTransform
from odfpy.chain.slices import SliceOfBlock, newest_blocks, overlapping, slice_paths, slices_of
from odfpy.chain.state import ChainState
from odfpy.coordinator.storage.commit import commit_time, up_to_date
from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.transform.arrangements import arrangement_at, take_over
from odfpy.coordinator.transform.commit import checkpoint_of, commit_run
from odfpy.coordinator.transform.empty_runs import has_unapplied_query, unread_inputs
from odfpy.coordinator.transform.intervals import InputInterval, new_intervals, without_data
from odfpy.coordinator.transform.preload import preload_commit_modules
from odfpy.coordinator.transform.slices import columns_changed, schema_file, watermark_times, watermarks_before
from odfpy.data.multihash import Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.transform import TransformSql
from odfpy.engine import contract
from odfpy.engine.registry import Engine
from odfpy.engine.responses import as_error
from odfpy.errors import (
    EngineError,
    HashMismatch,
    InternalError,
)
from odfpy.stages import stage

OUR_ENGINES = "odfpy-"
"""Prefix of the version strings of odfpy's engines."""

EngineFor = Callable[[TransformSql], Engine]


class InputNotReady(EngineError, code="E506"):
    """An input has no schema yet, since it has no data."""


def transform_dataset(
    storage: Storage,
    dataset: StoredDataset,
    engine_for: EngineFor,
    *,
    state: ChainState | None = None,
    replacing: Multihash | None = None,
) -> PullResult:
    """Update a derivative dataset from its inputs; requires the dataset's lock.

    Args:
        storage: the workspace.
        dataset: the derivative.
        engine_for: returns the engine of a query.
        state: the state that the run follows; that of the head by default.
        replacing: the current head, if the run follows another block.

    Raises:
        InputDiverged: the history of an input no longer contains the last block that was read.
        OdfError: nothing was committed.
    """
    state = state or dataset.state
    set_transform = require_transform(dataset, state)
    with stage("what is new"):
        inputs = new_intervals(storage, dataset, set_transform, state)
    if not has_unapplied_query(dataset, state) and not unread_inputs(dataset, state, inputs):
        return up_to_date(dataset)
    if waiting := without_data(inputs):
        return replace(up_to_date(dataset), notes=(f"waiting for the first data of {', '.join(waiting)}",))
    engine = engine_for(set_transform.transform)
    with storage.scratch() as scratch:
        with stage("request"):
            request = make_request(
                dataset, set_transform, state, inputs, commit_time(state), scratch, last_checkpoint(dataset, state)
            )
            prev_arrangement = arrangement_at(dataset, state.head)
            new_arrangement = scratch / "arrangement"
            request = replace(
                request,
                prev_arrangement_path=str(prev_arrangement) if prev_arrangement else None,
                new_arrangement_path=str(new_arrangement),
            )
        preload_commit_modules()
        response = run(engine, request, inputs, dataset, state)
        versioned = with_version(set_transform, engine.version)
        with stage("commit"):
            result = commit_run(dataset, state, inputs, request, response, versioned, replacing)
            if result.outcome is PullOutcome.UPDATED and result.new_head is not None:
                take_over(dataset, new_arrangement, prev_arrangement, result.new_head)
            return result


def with_version(set_transform: SetTransform, version: str) -> SetTransform:
    """Return the transform with the version of the engine that runs it, unless the manifest requests a version."""
    recorded = set_transform.transform.version
    if recorded is not None and not recorded.startswith(OUR_ENGINES):
        return set_transform
    return replace(set_transform, transform=replace(set_transform.transform, version=version))


def require_transform(dataset: StoredDataset, state: ChainState) -> SetTransform:
    """Return the current transform.

    Raises:
        EngineError: there is no transform.
    """
    if state.set_transform is None:
        raise EngineError(
            f"{dataset.handle} is a derivative, but has no SetTransform in its chain",
            hint="It may have been reset to a block before its query: `odf add MANIFEST --replace` gives it one.",
        )
    return state.set_transform


def make_request(
    dataset: StoredDataset,
    set_transform: SetTransform,
    state: ChainState,
    inputs: list[InputInterval],
    system_time: Timestamp,
    scratch: Path,
    checkpoint: Path | None,
) -> contract.TransformRequest:
    """Return the request for a run on top of a state of the dataset.

    Args:
        dataset: the dataset.
        set_transform: the transform of the dataset.
        state: the state of the chain before the run.
        inputs: the input intervals to process.
        system_time: system time of the run.
        scratch: a folder for temporary files.
        checkpoint: the checkpoint before the run, None if it is not available.
    """
    return contract.TransformRequest(
        dataset_id=dataset.handle.id,
        dataset_alias=str(dataset.handle),
        system_time=system_time,
        vocab=state.vocab,
        transform=set_transform.transform,
        query_inputs=tuple(_request_input(item) for item in inputs),
        next_offset=state.next_offset,
        prev_checkpoint_path=str(checkpoint) if checkpoint else None,
        new_checkpoint_path=str(scratch / "checkpoint"),
        new_data_path=str(scratch / "data"),
        recorded_schema=state.schema,
        query_changed=state.query_changed or any(columns_changed(item.dataset.chain, item.interval) for item in inputs),
    )


def _request_input(item: InputInterval) -> contract.TransformRequestInput:
    """Describe an interval of an input for the engine.

    Raises:
        InputNotReady: the input has no schema yet.
    """
    interval, chain = item.interval, item.dataset.chain
    at_head = item.dataset.state.head == interval.last_block_hash
    state = item.dataset.state if at_head else chain.state(interval.last_block_hash)
    if state.schema is None:
        raise InputNotReady(f"The input {item.dataset.handle} has no schema yet", hint="Pull it first.")
    rows = start = None
    paths: list[Path] = []
    arrivals: tuple[contract.Arrival, ...] = ()
    before = interval.prev_block_hash
    earlier = watermark_times(newest_blocks(chain.iter_blocks(before), None, watermark=True)) if before else []
    prev_watermark = earlier[-1][1] if earlier else None
    if interval.new_offset is not None:
        start = 0 if interval.prev_offset is None else interval.prev_offset + 1
        rows = OffsetInterval(start, interval.new_offset)
    blocks = newest_blocks(chain.iter_blocks(interval.last_block_hash), start, watermark=True)
    if start is not None and interval.new_offset is not None:
        slices = overlapping(slices_of(blocks), start, interval.new_offset)
        paths = slice_paths(item.dataset.layout.data, slices, of=item.dataset.handle)
        new_blocks = chain.in_order(interval.last_block_hash, after=before)
        arrivals = _arrivals(slices, paths, watermarks_before(new_blocks, prev_watermark))
    # Include the last watermark before the interval, so that engines need not store it.
    watermarks = tuple(contract.Watermark(system, event) for system, event in watermark_times(blocks)[-1:])
    return contract.TransformRequestInput(
        dataset_id=item.dataset.handle.id,
        dataset_alias=str(item.dataset.handle),
        query_alias=item.alias,
        vocab=state.vocab,
        offset_interval=rows,
        data_paths=tuple(map(str, paths)),
        schema_file=str(schema_file(item.dataset.workspace_folder, state.schema)),
        explicit_watermarks=watermarks,
        prev_offset=interval.prev_offset,
        prev_watermark=prev_watermark,
        arrivals=arrivals,
        primary_key=state.primary_key,
    )


def _arrivals(
    slices: Sequence[SliceOfBlock], paths: Sequence[Path], watermarks: Mapping[Multihash, Timestamp]
) -> tuple[contract.Arrival, ...]:
    """Return the watermarks at the arrival of slices, for the engine."""
    pairs = zip(paths, (watermarks.get(item.data.physical_hash) for item in slices), strict=True)
    return tuple(contract.Arrival(str(path), watermark) for path, watermark in pairs if watermark is not None)


def last_checkpoint(dataset: StoredDataset, state: ChainState) -> Path | None:
    """Return the checkpoint of the last run; None if it does not exist, since it can be recomputed.

    Raises:
        HashMismatch: the checkpoint is damaged.
    """
    recorded = state.checkpoint
    path = dataset.layout.checkpoints.local_path(recorded.physical_hash) if recorded else None
    if recorded is None or path is None or not path.is_file():
        return None
    if checkpoint_of(path) != recorded:
        raise HashMismatch(
            f"Damaged checkpoint: {path} is not what the chain says",
            hint="Delete the file: the next pull recomputes its content from the history of the inputs.",
        )
    return path


def with_history(
    request: contract.TransformRequest,
    inputs: list[InputInterval],
    needed: contract.TransformResponseNeedsHistory,
    dataset: StoredDataset,
    state: ChainState,
) -> contract.TransformRequest:
    """Return the request with the slices before the intervals of inputs and, if requested, those of the output.

    Args:
        request: the request without history.
        inputs: the input intervals to process.
        needed: the response that requests history.
        dataset: the dataset.
        state: the state of its chain.
    """
    described = list(request.query_inputs)
    for at in needed.inputs:
        last, item = described[at].prev_offset, inputs[at]
        blocks = item.dataset.chain.in_order(item.interval.prev_block_hash)
        slices = overlapping(slices_of(blocks), 0, last) if last is not None else []
        paths = slice_paths(item.dataset.layout.data, slices, of=item.dataset.handle)
        arrivals = (*_arrivals(slices, paths, watermarks_before(blocks, None)), *described[at].arrivals)
        described[at] = replace(described[at], history_paths=tuple(map(str, paths)), arrivals=arrivals)
    output = output_so_far(dataset, state) if needed.output else None
    return replace(request, query_inputs=tuple(described), output_so_far=output)


def output_so_far(dataset: StoredDataset, state: ChainState) -> contract.OutputSoFar | None:
    """Return the output of a dataset up to a state; None if it has no schema yet."""
    if state.schema is None:
        return None
    slices = slices_of(reversed(list(dataset.chain.iter_blocks(state.head))))
    paths = slice_paths(dataset.layout.data, slices, of=dataset.handle)
    return contract.OutputSoFar(str(schema_file(dataset.workspace_folder, state.schema)), tuple(map(str, paths)))


def run(
    engine: Engine,
    request: contract.TransformRequest,
    inputs: list[InputInterval],
    dataset: StoredDataset,
    state: ChainState,
) -> contract.TransformResponseSuccess:
    """Run the engine; if it requests earlier rows, provide them and run it again.

    Args:
        engine: the engine.
        request: the request, from `make_request`.
        inputs: the input intervals of the request.
        dataset: the dataset of the request.
        state: the state of the chain before the run.

    Raises:
        InvalidQuery, UnsupportedQuery, NondeterministicQuery, EngineError: the engine rejects the query, or fails.
    """
    response = engine.transform(request)
    if isinstance(response, contract.TransformResponseNeedsHistory):
        with stage("request"):
            request = with_history(request, inputs, response, dataset, state)
        response = engine.transform(request)
    if isinstance(response, contract.TransformResponseNeedsHistory):
        raise InternalError("The engine has asked twice for the same rows")
    if isinstance(response, contract.TransformResponseProgress):
        raise InternalError("The engine has answered before it was done")
    if isinstance(response, contract.TransformResponseSuccess):
        return response
    raise as_error(response)
