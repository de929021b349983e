"""The dataset resolver of one caller: of the server's datasets, those that the caller may read."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from odfpy.coordinator.storage.references import BlockNotFound, find_block
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.transform.slices import schema_file
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.schema import DataSchema
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import DatasetAlias, DatasetPattern, parse_ref
from odfpy.errors import DatasetNotFound, InvalidValue
from odfpy.query.resolver import Dataset
from odfpy.serving.callers.access import Caller, is_listed, is_readable
from odfpy.serving.callers.reachable_objects import ReachableObjectsCache
from odfpy.serving.callers.registry import ServedRegistry
from odfpy.serving.callers.visibility import visibility_of


@dataclass(frozen=True, slots=True)
class CallerResolver:
    """The dataset resolver of a caller: datasets that they may not read do not exist. Errors contain no paths of
    folders.

    Attributes:
        served: the server's datasets.
        reaches: the reachable blocks of datasets: others are not read.
        caller: the caller.
        only: names and patterns that restrict the datasets; empty for all that the caller may read.
    """

    served: ServedRegistry
    reaches: ReachableObjectsCache
    caller: Caller
    only: tuple[DatasetPattern | DatasetAlias, ...] = ()

    def find(self, name: str | DatasetId) -> StoredDataset:
        """Implement `DatasetResolver`."""
        text, at, block = (name, "", "") if isinstance(name, DatasetId) else name.partition("@")
        ref = parse_ref(text) if isinstance(text, str) else text
        dataset = self._with_id(ref) if isinstance(ref, DatasetId) else self.served.find(ref)
        if dataset is None or not self.is_shown(dataset):
            raise DatasetNotFound(f"No dataset {str(text)!r}", hint=f"{self.listing}.")
        return dataset.at(self.find_block(dataset, block)) if at else dataset

    def at(self, dataset: Dataset, block: Multihash) -> StoredDataset:
        """Implement `DatasetResolver`."""
        known = self.find(dataset.handle.id)
        self._require(known, block)
        return known.at(block)

    def find_block(self, dataset: Dataset, text: str) -> Multihash:
        """Implement `DatasetResolver`."""
        known = self.find(dataset.handle.id)
        block = find_block(known, text)
        self._require(known, block)
        return block

    def owner(self, block: Multihash) -> str | None:
        """Implement `DatasetResolver`."""
        return next((str(dataset.handle) for dataset in self._all() if self._has(dataset, block)), None)

    def names(self) -> list[str]:
        """Implement `DatasetResolver`."""
        listed = (dataset for dataset in self.served.refresh() if self.is_meant(dataset))
        return [
            str(dataset.handle) for dataset in listed if is_listed(dataset, visibility_of(dataset.folder), self.caller)
        ]

    @property
    def listing(self) -> str:
        """Implement `DatasetResolver`."""
        if self.caller.token is None:
            return "Without an access token, only public datasets are available"
        return "Only public datasets and those of the workspace of the access token are available"

    def scratch(self) -> AbstractContextManager[Path]:
        """Implement `DatasetResolver`."""
        return self.served.storages[0].scratch()

    def schema_file(self, schema: DataSchema) -> Path:
        """Implement `DatasetResolver`."""
        return schema_file(self.served.storages[0], schema)

    def is_shown(self, dataset: StoredDataset) -> bool:
        """Return whether a dataset exists for the caller."""
        return self.is_meant(dataset) and is_readable(dataset, self.caller)

    def is_meant(self, dataset: StoredDataset) -> bool:
        """Return whether a dataset matches the names and patterns, regardless of permissions."""
        alias = dataset.handle.alias
        fits = (
            allowed.matches(alias) if isinstance(allowed, DatasetPattern) else allowed == alias for allowed in self.only
        )
        return not self.only or any(fits)

    def _all(self) -> list[StoredDataset]:
        return [dataset for dataset in self.served.all() if self.is_shown(dataset)]

    def _with_id(self, dataset_id: DatasetId) -> StoredDataset | None:
        for storage in self.served.storages:
            try:
                dataset = storage.get(dataset_id)
            except (DatasetNotFound, InvalidValue):
                continue
            if self.is_shown(dataset):
                return dataset
        return None

    def _has(self, dataset: StoredDataset, block: Multihash) -> bool:
        return self.reaches.get(dataset.folder).has(dataset.on(None).layout, None, block)

    def _require(self, dataset: StoredDataset, block: Multihash) -> None:
        if not self._has(dataset, block):
            raise BlockNotFound(f"{dataset.handle} has no block {block}", hint="No reference reaches such a block.")
