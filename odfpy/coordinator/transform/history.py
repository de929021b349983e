"""The past runs of a derivative dataset, reconstructed from its chain as requests to an engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import ExecuteTransform, SetTransform
from odfpy.chain.state import ChainState
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.transform.intervals import InputInterval, recorded_intervals
from odfpy.coordinator.transform.run import make_request, require_transform, with_history
from odfpy.data.offset_interval import OffsetInterval
from odfpy.engine import contract


@dataclass(frozen=True)
class TransformRun:
    """One run of a derivative.

    Attributes:
        storage: the workspace of dataset and inputs.
        dataset: the derivative.
        block: the block committed by the run.
        event: the event of that block.
        before: the chain state before the block.
    """

    storage: Storage
    dataset: StoredDataset
    block: HashedBlock
    event: ExecuteTransform
    before: ChainState

    @property
    def set_transform(self) -> SetTransform:
        """Return the transform of the run."""
        return require_transform(self.dataset, self.before)

    @cached_property
    def inputs(self) -> list[InputInterval]:
        """Return the input intervals that the run has read.

        Raises:
            DatasetNotFound: an input is not in the workspace.
            InputDiverged: an input no longer contains the interval.
        """
        return recorded_intervals(self.storage, self.dataset, self.set_transform, self.event)

    def request(self, scratch: Path) -> contract.TransformRequest:
        """Return the request of the run, with the history of its inputs and without a checkpoint."""
        time = self.block.block.system_time
        request = make_request(self.dataset, self.set_transform, self.before, self.inputs, time, scratch, None)
        needed = contract.TransformResponseNeedsHistory(tuple(range(len(self.inputs))))
        return with_history(request, self.inputs, needed, self.dataset, self.before)

    def has(self, offset: int) -> bool:
        """Return whether the run added the row at an offset."""
        data = self.event.new_data
        return data is not None and data.offset_interval.start <= offset <= data.offset_interval.end

    def has_read(self, number: int, offset: int) -> bool:
        """Return whether a row of an input existed at the time of the run."""
        end = self.event.query_inputs[number].last_offset
        return end is not None and offset <= end

    def is_new(self, number: int, offset: int) -> bool:
        """Return whether a row of an input was new in the run."""
        item = self.event.query_inputs[number]
        first = 0 if item.prev_offset is None else item.prev_offset + 1
        return item.new_offset is not None and first <= offset <= item.new_offset


def runs_of(storage: Storage, dataset: StoredDataset) -> list[TransformRun]:
    """Return the runs of a derivative, oldest first."""
    runs, state = [], ChainState()
    for hashed in dataset.chain.in_order():
        event = hashed.block.event
        if isinstance(event, ExecuteTransform):
            runs.append(TransformRun(storage, dataset, hashed, event, state))
        state = state.after(hashed)
    return runs


def together(runs: Sequence[TransformRun], scratch: Path) -> tuple[contract.TransformRequestInput, ...]:
    """Return the inputs of several runs of a row-by-row query, combined as if read by a single run."""
    each = [run.request(scratch).query_inputs for run in runs]
    return tuple(_together(parts) for parts in zip(*each, strict=True))


def _together(parts: Sequence[contract.TransformRequestInput]) -> contract.TransformRequestInput:
    intervals = [part.offset_interval for part in parts if part.offset_interval is not None]
    if not intervals:
        return parts[-1]
    return replace(
        parts[-1],
        offset_interval=OffsetInterval(min(i.start for i in intervals), max(i.end for i in intervals)),
        data_paths=tuple(dict.fromkeys(path for part in parts for path in part.data_paths)),
        arrivals=tuple({arrival.path: arrival for part in parts for arrival in part.arrivals}.values()),
        history_paths=None,
        prev_offset=None,
    )
