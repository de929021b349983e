"""Planned datasets: those that the manifests of one `add` will create, and their inputs."""

from __future__ import annotations

from collections.abc import Iterable

from odfpy.chain.state import ChainState
from odfpy.coordinator.storage.storage import Storage
from odfpy.data.schemas.schema import DataSchema
from odfpy.dataset.identity import DatasetId, KeyPair
from odfpy.dataset.names import DatasetAlias, DatasetRef, did_you_mean_dataset
from odfpy.errors import DatasetNotFound


class PlannedDatasets:
    """Datasets that the manifests of one `add` will create, together with existing ones.

    Attributes:
        absent: remarks on missing inputs, by the placeholder ids that stand for them in a dry run.
        schemas: current or future schemas of inputs, as far as they are known.
    """

    def __init__(self, storage: Storage, *, may_lack_inputs: bool) -> None:
        self.storage = storage
        self.states: dict[DatasetId, ChainState] = {}
        self.names: dict[DatasetAlias, DatasetId] = {}
        self.absent: dict[DatasetId, str] = {}
        self.schemas: dict[DatasetId, DataSchema | None] = {}
        self._may_lack_inputs = may_lack_inputs

    def id_of(self, ref: DatasetRef, wanted_by: DatasetAlias) -> DatasetId:
        """Return the id of a planned or existing input; in a dry run, return a placeholder for a missing one.

        Raises:
            DatasetNotFound: the input is neither planned nor existing.
        """
        planned = ref if isinstance(ref, DatasetId) else self.names.get(ref)
        if planned in self.states or planned in self.absent:
            return planned
        try:
            return self.storage.get(ref).handle.id
        except DatasetNotFound:
            if not self._may_lack_inputs:
                raise
            stand_in = ref if isinstance(ref, DatasetId) else KeyPair.generate().dataset_id
            planned_names = (name for name, known in self.names.items() if known in self.states)
            meant = similar_input(self.storage, ref, wanted_by, planned_names)
            self.absent[stand_in] = " ".join(filter(None, (f"{absent(ref)}, and has to be added first.", meant)))
            if isinstance(ref, DatasetAlias):
                self.names[ref] = stand_in
            return stand_in

    def state_of(self, dataset_id: DatasetId) -> ChainState:
        """Return the state of a planned or existing dataset.

        Raises:
            DatasetNotFound: the dataset is neither planned nor existing.
        """
        return self.states[dataset_id] if dataset_id in self.states else self.storage.get(dataset_id).state

    def put(self, alias: DatasetAlias, state: ChainState) -> None:
        """Add a planned dataset."""
        self.names[alias] = state.dataset_id
        self.states[state.dataset_id] = state


def absent(ref: DatasetRef) -> str:
    """Return the remark on a missing input."""
    return f"the input {str(ref)!r} is neither in the workspace nor among the manifests"


def similar_input(
    storage: Storage, ref: DatasetRef, wanted_by: DatasetAlias, planned: Iterable[DatasetAlias]
) -> str | None:
    """Return a hint with similar names, without the dataset that names the input.

    Args:
        storage: the workspace.
        ref: the missing input.
        wanted_by: the dataset that names it.
        planned: names of planned datasets.
    """
    names = {str(dataset.handle) for dataset in storage.datasets()} | {str(name) for name in planned}
    return did_you_mean_dataset(str(ref), sorted(names - {str(wanted_by)}))
