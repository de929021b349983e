"""Who is derived from whom in a workspace."""

from __future__ import annotations

from odfpy.coordinator.graph import in_dependency_order
from odfpy.coordinator.results import DatasetHandle, LineageNode
from odfpy.coordinator.storage import Storage, StoredDataset
from odfpy.dataset.identity import DatasetId
from odfpy.errors import OdfError


class Lineage:
    """The graph of a workspace's datasets, as it is when this is made."""

    def __init__(self, storage: Storage) -> None:
        self._datasets = {dataset.handle.id: dataset for dataset in storage.datasets()}

    def inputs_of(self, dataset_id: DatasetId) -> list[DatasetId]:
        """The inputs that are in the workspace."""
        return [item for item in _inputs(self._datasets[dataset_id]) if item in self._datasets]

    def dependents_of(self, dataset_id: DatasetId) -> list[DatasetHandle]:
        """The datasets that are directly derived from one."""
        return [dataset.handle for dataset in self._datasets.values() if dataset_id in _inputs(dataset)]

    def in_order(self, datasets: list[StoredDataset], *, with_inputs: bool) -> list[StoredDataset]:
        """The datasets, inputs first; `with_inputs` adds everything they are derived from."""
        wanted = dict.fromkeys(dataset.handle.id for dataset in datasets)
        ordered = in_dependency_order(wanted, self.inputs_of, lambda item: str(self._datasets[item].handle))
        return [self._datasets[item] for item in ordered if with_inputs or item in wanted]

    def tree(self, dataset_id: DatasetId) -> LineageNode:
        """A dataset over everything it is derived from."""
        dataset = self._datasets[dataset_id]
        inputs = tuple(self.tree(item) for item in self.inputs_of(dataset_id))
        return LineageNode(dataset.handle, dataset.state.kind, inputs)


def _inputs(dataset: StoredDataset) -> list[DatasetId]:
    """The inputs, none of a damaged dataset: it stands alone, so that the others can still be worked with."""
    try:
        return dataset.input_ids
    except OdfError:
        return []
