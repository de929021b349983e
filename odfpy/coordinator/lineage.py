"""Who is derived from whom in a workspace."""

from __future__ import annotations

from dataclasses import replace

from odfpy.chain.events import AddData, ExecuteTransform
from odfpy.chain.state import ChainState
from odfpy.coordinator.graph import in_dependency_order
from odfpy.coordinator.results import DatasetHandle, LineageNode
from odfpy.coordinator.storage import Storage, StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.errors import ObjectNotFound, OdfError


class Lineage:
    """The graph of a workspace's datasets, as it is when this is made."""

    def __init__(self, storage: Storage) -> None:
        self._datasets = {dataset.handle.id: dataset for dataset in storage.datasets()}
        self._trees: dict[DatasetId, LineageNode] = {}

    def inputs_of(self, dataset_id: DatasetId) -> list[DatasetId]:
        """The inputs that are in the workspace."""
        return [item for item in _inputs(self._datasets[dataset_id]) if item in self._datasets]

    def dependents_of(self, dataset_id: DatasetId) -> list[DatasetHandle]:
        """The datasets that are directly derived from one."""
        return [dataset.handle for dataset in self._datasets.values() if dataset_id in _inputs(dataset)]

    def with_dependents(self, datasets: list[StoredDataset]) -> list[StoredDataset]:
        """The datasets, and everything that is derived from them, directly or by way of others."""
        found = {dataset.handle.id: dataset for dataset in datasets}
        waiting = list(found)
        while waiting:
            for handle in self.dependents_of(waiting.pop()):
                if handle.id not in found:
                    found[handle.id] = self._datasets[handle.id]
                    waiting.append(handle.id)
        return list(found.values())

    def in_order(self, datasets: list[StoredDataset], *, with_inputs: bool) -> list[StoredDataset]:
        """The datasets, inputs first; `with_inputs` adds everything they are derived from."""
        wanted = {dataset.handle.id: dataset for dataset in datasets}
        ordered = in_dependency_order(wanted, self.inputs_of, lambda item: str(self._datasets[item].handle))
        return [wanted.get(item, self._datasets[item]) for item in ordered if with_inputs or item in wanted]

    def tree(self, dataset_id: DatasetId) -> LineageNode:
        """A dataset over everything it is derived from, with watermarks."""
        if dataset_id not in self._trees:
            dataset = self._datasets[dataset_id]
            state = dataset.state
            inputs = tuple(self._input(state, item) for item in self.inputs_of(dataset_id))
            marked = _with_holders(inputs, state) if state.query_inputs else inputs
            self._trees[dataset_id] = LineageNode(dataset.handle, state.kind, marked, state.watermark)
        return self._trees[dataset_id]

    def _input(self, state: ChainState, input_id: DatasetId) -> LineageNode:
        """An input of the dataset that has a state."""
        node = self.tree(input_id)
        last = next((item.last_block_hash for item in state.query_inputs if item.dataset_id == input_id), None)
        if last is None:
            return node
        return replace(node, taken_in=_watermark_at(self._datasets[input_id], last))


def _with_holders(inputs: tuple[LineageNode, ...], state: ChainState) -> tuple[LineageNode, ...]:
    """The inputs, with the mark of those that hold back the watermark: the ones that it has come the least far in."""
    marks = [item.taken_in for item in inputs]
    least = None if None in marks else min((mark for mark in marks if mark is not None), default=None)
    if least is not None and state.watermark is None:
        return inputs  # the query passes none on, whatever the inputs have
    return tuple(replace(item, holds_back=item.taken_in == least) for item in inputs)


def _watermark_at(dataset: StoredDataset, block: Multihash) -> Timestamp | None:
    """The watermark as it was at a block."""
    if block == dataset.state.head:
        return dataset.state.watermark
    try:
        events = (hashed.block.event for hashed in dataset.chain.iter_blocks(block))
        return next((event.new_watermark for event in events if isinstance(event, AddData | ExecuteTransform)), None)
    except ObjectNotFound:  # of a copy that is behind what somebody else has derived from the original
        return dataset.state.watermark


def _inputs(dataset: StoredDataset) -> list[DatasetId]:
    """The inputs, none of a damaged dataset: it stands alone, so that the others can still be worked with."""
    try:
        return dataset.input_ids
    except OdfError:
        return []
