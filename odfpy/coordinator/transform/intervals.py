"""The input intervals of a derivative's runs, validated against the history of the inputs."""

from __future__ import annotations

from collections.abc import Iterable

from odfpy.chain.events import ExecuteTransform, ExecuteTransformInput, SetTransform, TransformInput
from odfpy.chain.state import ChainState
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import DatasetNotFound, EngineError
from odfpy.values import dataclass


class InputDiverged(EngineError, code="E640"):
    """An input no longer has the history that a derivative has read."""


@dataclass(frozen=True, slots=True)
class InputInterval:
    """An input dataset, and the interval of it that a run processes."""

    dataset: StoredDataset
    alias: str
    interval: ExecuteTransformInput


def input_of(storage: Storage, item: TransformInput) -> StoredDataset:
    """Return the dataset of an input of a transform.

    Raises:
        DatasetNotFound: the dataset is not in the workspace.
    """
    try:
        return storage.get(item.dataset_ref)
    except DatasetNotFound as error:
        raise DatasetNotFound(
            f"The input {item.alias} ({item.dataset_ref}) is not in the workspace",
            hint="Pull it from a repository that has it: `odf pull REPOSITORY/NAME`, or a URL; `odf search` looks. If"
            f" another dataset {item.alias} replaces it, run `odf add --replace` with this manifest.",
        ) from error


def new_intervals(
    storage: Storage, dataset: StoredDataset, set_transform: SetTransform, state: ChainState
) -> list[InputInterval]:
    """Return the new interval of each input since the last run.

    Args:
        storage: the workspace.
        dataset: the derivative.
        set_transform: the transform of the derivative.
        state: the state of its chain.

    Raises:
        DatasetNotFound: an input is not in the workspace.
        InputDiverged: the history of an input no longer contains the last block that was read.
    """
    previous = {item.dataset_id: item for item in state.query_inputs}
    intervals = []
    for item in set_transform.inputs:
        source = input_of(storage, item)
        before = previous.get(source.handle.id)
        last_block = before.last_block_hash if before else None
        last_offset = before.last_offset if before else None
        head, offset = source.state.head, source.state.last_offset
        if last_block is not None and last_block != head and source.number_in_history(last_block) is None:
            raise _diverged(dataset, source, last_block)
        interval = ExecuteTransformInput(
            source.handle.id,
            prev_block_hash=last_block,
            new_block_hash=head if head != last_block else None,
            prev_offset=last_offset,
            new_offset=offset if offset is not None and offset != last_offset else None,
        )
        intervals.append(InputInterval(source, item.alias or str(source.handle), interval))
    return intervals


def without_data(inputs: Iterable[InputInterval]) -> list[str]:
    """Return the names of inputs without a schema: nothing can be derived before their first data."""
    return [str(item.dataset.handle) for item in inputs if item.dataset.state.schema is None]


def have_new_blocks(inputs: Iterable[InputInterval]) -> bool:
    """Return whether any input has new blocks."""
    return any(item.interval.new_block_hash is not None for item in inputs)


def recorded_intervals(
    storage: Storage, dataset: StoredDataset, set_transform: SetTransform, event: ExecuteTransform
) -> list[InputInterval]:
    """Return the input intervals that a run has processed; the inputs must still have them.

    Args:
        storage: the workspace of dataset and inputs.
        dataset: the dataset.
        set_transform: the transform of the dataset.
        event: the event of the run.

    Raises:
        DatasetNotFound: an input is not in the workspace.
        InputDiverged: an input no longer has its interval.
    """
    intervals = [
        InputInterval(input_of(storage, declared), declared.alias or "", item)
        for item, declared in zip(event.query_inputs, set_transform.inputs, strict=True)
    ]
    for covered in intervals:
        last = covered.interval.last_block_hash
        # It suffices that the block exists: the interval can be read until `odf gc` runs, even if the head has another
        # history. `odf verify` reports that.
        if last is not None and last not in covered.dataset.layout.blocks:
            raise _diverged(dataset, covered.dataset, last)
    return intervals


def _diverged(dataset: StoredDataset, source: StoredDataset, block: Multihash) -> InputDiverged:
    return InputDiverged(
        f"{dataset.handle} cannot continue: its input {source.handle} was compacted, reset or overwritten since, or is"
        f" an older copy (block {block} is no longer in its history)",
        hint=f"`odf pull {source.handle}` updates an older copy. Otherwise recompute the derivative from the"
        f" first row: `odf pull {dataset.handle} --reset-derivatives-on-diverged-input`",
    )
