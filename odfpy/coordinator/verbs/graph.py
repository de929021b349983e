"""`Workspace.graph`: the lineage of datasets, and inputs that hold back watermarks."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from odfpy.coordinator.lineage.lineage import Lineage
from odfpy.coordinator.storage.results import DatasetHandle, LineageNode
from odfpy.coordinator.verbs.arguments import with_checked_arguments
from odfpy.coordinator.verbs.context import WorkspaceContext
from odfpy.dataset.identity import DatasetId
from odfpy.errors import OdfError

if TYPE_CHECKING:
    from odfpy.coordinator.lineage.graph import DependencyCycle


@with_checked_arguments
class Graph:
    """The graph of a workspace's datasets."""

    def __init__(self, context: WorkspaceContext) -> None:
        self._storage = context.storage

    def lineage(self, ref: str) -> LineageNode:
        """Return the tree of a dataset and its inputs in the workspace, recursively, with watermarks."""
        return Lineage(self._storage).tree(self._storage.get(ref).handle.id)

    def inputs(self, ref: str) -> list[DatasetHandle | DatasetId]:
        """Return the direct inputs of a dataset; only the id of inputs that are not in the workspace."""
        return [self._handle_of(item) for item in self._storage.get(ref).input_ids]

    def dependents(self, ref: str) -> list[DatasetHandle]:
        """Return the datasets that are directly derived from a dataset."""
        return Lineage(self._storage).dependents_of(self._storage.get(ref).handle.id)

    def cycle_above(self, ref: str) -> DependencyCycle | None:
        """Return an error for a cycle among a dataset and its inputs, with a hint for a fix; None if there is none."""
        return Lineage(self._storage).cycle_above(self._storage.get(ref).handle.id)

    def held_back(self) -> dict[DatasetId, tuple[DatasetHandle, ...]]:
        """Return, for each derivative, the datasets that hold back its watermark, recursively; see `LineageNode`."""
        by_id = {}
        lineage = Lineage(self._storage)
        for dataset in self._storage.datasets():
            with suppress(OdfError):  # `DatasetRegistry.survey` reports damaged datasets
                by_id[dataset.handle.id] = lineage.tree(dataset.handle.id).held_back_by
        return by_id

    def _handle_of(self, dataset_id: DatasetId) -> DatasetHandle | DatasetId:
        try:
            return self._storage.get(dataset_id).handle
        except OdfError:
            return dataset_id
