"""Lineage of the datasets of a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from odfpy.chain.events import AddData, ExecuteTransform
from odfpy.chain.state import ChainState
from odfpy.coordinator.lineage.cycles import Before, cycle_error_of, path_of_cycle
from odfpy.coordinator.lineage.graph import DependencyCycle, DependencyOrder, cycle_error
from odfpy.coordinator.lineage.lineage_tree import LineageTrees
from odfpy.coordinator.storage.results import DatasetHandle, LineageNode
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.storage.stored_dataset import inputs_in
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import ObjectNotFound, OdfError


class Lineage:
    """The dependency graph of a workspace's datasets, as of the creation of this object.

    The graph may have cycles: operations continue with the datasets outside of them, and call `cycle_of` for the
    others.
    """

    def __init__(self, storage: Storage) -> None:
        self._datasets = {dataset.handle.id: dataset for dataset in storage.datasets()}
        self._inputs: dict[DatasetId, list[DatasetId]] = {}
        self._cycles = DependencyOrder(self.inputs_of)
        self._before: dict[DatasetId, Before] = {}
        self._trees = LineageTrees(self.inputs_of, self._node)

    def inputs_of(self, dataset_id: DatasetId) -> list[DatasetId]:
        """Return the inputs of a dataset that are in the workspace."""
        if dataset_id not in self._inputs:
            dataset = self._datasets.get(dataset_id)
            self._inputs[dataset_id] = [item for item in _inputs(dataset) if item in self._datasets] if dataset else []
        return self._inputs[dataset_id]

    def name_of(self, dataset_id: DatasetId) -> DatasetAlias | None:
        """Return the name of a dataset, None if it is not in the workspace."""
        dataset = self._datasets.get(dataset_id)
        return dataset.handle.alias if dataset else None

    def names_of_inputs(self, name: DatasetAlias) -> list[DatasetAlias]:
        """Return the names of the inputs of a dataset by its name; empty if it is not in the workspace."""
        dataset_id = self._by_name.get(name)
        return [] if dataset_id is None else [self._datasets[item].handle.alias for item in self.inputs_of(dataset_id)]

    def dependents_of(self, dataset_id: DatasetId) -> list[DatasetHandle]:
        """Return the datasets that are directly derived from a dataset."""
        return [dataset.handle for dataset in self._dependents.get(dataset_id, ())]

    def with_dependents(self, datasets: list[StoredDataset]) -> list[StoredDataset]:
        """Return the datasets and all datasets derived from them, directly or indirectly."""
        reached = {dataset.handle.id: dataset for dataset in datasets}
        waiting = list(reached)
        while waiting:
            for dataset in self._dependents.get(waiting.pop(), ()):
                if dataset.handle.id not in reached:
                    reached[dataset.handle.id] = dataset
                    waiting.append(dataset.handle.id)
        return list(reached.values())

    def in_order(self, datasets: list[StoredDataset], *, with_inputs: bool) -> list[StoredDataset]:
        """Return the datasets, inputs first; `with_inputs` adds all their direct and indirect inputs.

        Datasets of a cycle are adjacent.
        """
        wanted = {dataset.handle.id: dataset for dataset in datasets}
        ordered = DependencyOrder(self.inputs_of, wanted).nodes
        return [wanted.get(item, self._datasets[item]) for item in ordered if with_inputs or item in wanted]

    def cycle_of(self, dataset_id: DatasetId) -> DependencyCycle | None:
        """Return an error that shows the cycle of a dataset and how to fix it; None if it is in no cycle."""
        way = self._cycles.way_round(dataset_id)
        return cycle_error_of([self._datasets[item] for item in way], self.inputs_of, self._before) if way else None

    def cycle_above(self, dataset_id: DatasetId) -> DependencyCycle | None:
        """Return the error for the first cycle among a dataset and all its inputs, None if there is none."""
        cycles = map(self.cycle_of, DependencyOrder(self.inputs_of, [dataset_id]).nodes)
        return next(filter(None, cycles), None)

    def refuse_cycle(self, dataset: StoredDataset, after: ChainState) -> None:
        """Check that a change does not close a cycle; changes to a dataset that already is in a cycle are allowed.

        Args:
            dataset: the dataset.
            after: the state of its chain after the change.

        Raises:
            DependencyCycle: the change would close a cycle.
        """
        inputs = [item for item in inputs_in(after) if item in self._datasets]
        way = path_of_cycle(dataset.handle.id, inputs, self.inputs_of)
        if way and not self._cycles.cycle_of(dataset.handle.id):
            names = [str(self._datasets[item].handle) for item in way]
            raise cycle_error(names, hint=f"First change the inputs of {names[1]}, or delete it.")

    def tree(self, dataset_id: DatasetId) -> LineageNode:
        """Return the tree of a dataset and all its inputs, with watermarks."""
        return self._trees.tree(dataset_id)

    @cached_property
    def _by_name(self) -> dict[DatasetAlias, DatasetId]:
        return {dataset.handle.alias: dataset_id for dataset_id, dataset in self._datasets.items()}

    @cached_property
    def _dependents(self) -> dict[DatasetId, list[StoredDataset]]:
        """Return the directly derived datasets of each dataset."""
        dependents: dict[DatasetId, list[StoredDataset]] = {}
        for dataset in self._datasets.values():
            for item in _inputs(dataset):
                dependents.setdefault(item, []).append(dataset)
        return dependents

    def _node(self, dataset_id: DatasetId, inputs: Sequence[LineageNode]) -> LineageNode:
        dataset = self._datasets[dataset_id]
        state = dataset.state
        taken_in = tuple(self._taken_in(state, item) for item in inputs)
        marked = _with_holders(taken_in, state) if state.query_inputs else taken_in
        return LineageNode(dataset.handle, state.kind, marked, state.watermark)

    def _taken_in(self, state: ChainState, node: LineageNode) -> LineageNode:
        """Return an input with the watermark of the last block that a dataset has read from it."""
        source = node.handle.id
        last = next((item.last_block_hash for item in state.query_inputs if item.dataset_id == source), None)
        return node if last is None else replace(node, taken_in=_watermark_at(self._datasets[source], last))


def _with_holders(inputs: tuple[LineageNode, ...], state: ChainState) -> tuple[LineageNode, ...]:
    """Mark the inputs that hold back the watermark: those that were read up to the earliest watermark."""
    marks = [item.taken_in for item in inputs]
    least = None if None in marks else min((mark for mark in marks if mark is not None), default=None)
    if least is not None and state.watermark is None:
        return inputs  # the query propagates no watermark of its inputs
    return tuple(replace(item, holds_back=item.taken_in == least) for item in inputs)


def _watermark_at(dataset: StoredDataset, block: Multihash) -> Timestamp | None:
    """Return the watermark of a dataset as of a block."""
    if block == dataset.state.head:
        return dataset.state.watermark
    try:
        events = (hashed.block.event for hashed in dataset.chain.iter_blocks(block))
        return next((event.new_watermark for event in events if isinstance(event, AddData | ExecuteTransform)), None)
    except ObjectNotFound:  # the derivative is a copy, and has read newer blocks of the original than this copy has
        return dataset.state.watermark


def _inputs(dataset: StoredDataset) -> list[DatasetId]:
    """Return the inputs of a dataset; none if it is damaged, so that the other datasets remain usable."""
    try:
        return dataset.input_ids
    except OdfError:
        return []
