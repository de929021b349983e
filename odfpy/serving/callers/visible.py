"""The datasets of a server as one caller sees them, for the query service."""

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
from odfpy.dataset.names import parse_ref
from odfpy.errors import DatasetNotFound, InvalidValue
from odfpy.query.registry import Dataset
from odfpy.serving.callers.access import Caller, is_readable
from odfpy.serving.callers.datasets import ServedDatasets
from odfpy.serving.callers.reachable_objects import Reaches


@dataclass(frozen=True, slots=True)
class VisibleDatasets:
    """The datasets that a caller may read; others do not exist for them. Errors name no folders.

    Attributes:
        served: what the server has.
        reaches: which blocks the references of datasets lead to: others are not read.
        caller: who asks.
    """

    served: ServedDatasets
    reaches: Reaches
    caller: Caller

    def find(self, name: str | DatasetId) -> StoredDataset:
        """Implement `Catalogue`."""
        text, at, block = (name, "", "") if isinstance(name, DatasetId) else name.partition("@")
        ref = parse_ref(text) if isinstance(text, str) else text
        found = self._with_id(ref) if isinstance(ref, DatasetId) else self.served.find(ref)
        if found is None or not is_readable(found, self.caller):
            raise DatasetNotFound(f"No dataset {str(text)!r}", hint=f"{self.listing}.")
        return found.at(self.find_block(found, block)) if at else found

    def at(self, dataset: Dataset, block: Multihash) -> StoredDataset:
        """Implement `Catalogue`."""
        found = self.find(dataset.handle.id)
        self._require(found, block)
        return found.at(block)

    def find_block(self, dataset: Dataset, text: str) -> Multihash:
        """Implement `Catalogue`."""
        found = self.find(dataset.handle.id)
        block = find_block(found, text)
        self._require(found, block)
        return block

    def owner(self, block: Multihash) -> str | None:
        """Implement `Catalogue`."""
        return next((str(one.handle) for one in self._all() if self._has(one, block)), None)

    def names(self) -> list[str]:
        """Implement `Catalogue`."""
        return [str(one.handle) for one in self._all() if self.served.is_first(one)]

    @property
    def listing(self) -> str:
        """Implement `Catalogue`."""
        if self.caller.token is None:
            return "Without an access token, only public datasets are here"
        return "Public datasets are here, and those of the workspace that the access token is for"

    def scratch(self) -> AbstractContextManager[Path]:
        """Implement `Catalogue`."""
        return self.served.storages[0].scratch()

    def schema_file(self, schema: DataSchema) -> Path:
        """Implement `Catalogue`."""
        return schema_file(self.served.storages[0], schema)

    def _all(self) -> list[StoredDataset]:
        return [one for one in self.served.all() if is_readable(one, self.caller)]

    def _with_id(self, dataset_id: DatasetId) -> StoredDataset | None:
        for storage in self.served.storages:
            try:
                found = storage.get(dataset_id)
            except (DatasetNotFound, InvalidValue):
                continue
            if is_readable(found, self.caller):
                return found
        return None

    def _has(self, dataset: StoredDataset, block: Multihash) -> bool:
        return self.reaches.of(dataset.folder).has(dataset.on(None).layout, None, block)

    def _require(self, dataset: StoredDataset, block: Multihash) -> None:
        if not self._has(dataset, block):
            raise BlockNotFound(
                f"{dataset.handle} has no block {block}", hint="Its references lead to none of that name."
            )
