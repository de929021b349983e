"""Reading of datasets: the last rows, directly from the slices; and the workspace as seen by the query service."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.chain.slices import SliceOfBlock, newest_blocks, overlapping, slices_of
from odfpy.coordinator.storage.references import find_block
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.transform.slices import schema_file
from odfpy.data.multihash import Multihash
from odfpy.data.scalars import count_given
from odfpy.data.schemas.schema import DataSchema
from odfpy.dataset.identity import DatasetId
from odfpy.engine.scans import ScanRequest, scan
from odfpy.query.resolver import Dataset
from odfpy.query.slice_rows import scan_of
from odfpy.values import dataclass

if TYPE_CHECKING:
    import pyarrow as pa


def tail(dataset: StoredDataset, num_records: int, skip: int) -> pa.Table:
    """Return the last rows by offset, in ascending order, with all columns of the current schema.

    Args:
        dataset: the dataset.
        num_records: maximum number of rows.
        skip: number of rows to skip at the end.

    Raises:
        UsageError: `num_records` or `skip` is not a non-negative integer.
    """
    import pyarrow as pa

    request = tail_scan(dataset, count_given(num_records, "num_records"), count_given(skip, "skip"))
    return pa.Table.from_batches(scan(request), request.arrow_schema())


def tail_scan(dataset: StoredDataset, num_records: int, skip: int, max_bytes: int | None = None) -> ScanRequest:
    """Return the scan request for the rows of `tail`, with a limit on their size.

    Args:
        dataset: the dataset.
        num_records: number of rows.
        skip: number of rows to skip at the end.
        max_bytes: maximum size of the rows in bytes, None for no limit.
    """
    from odfpy.data.schemas.arrow import to_arrow

    state = dataset.state
    schema = to_arrow(state.require_schema(dataset.handle))
    end = state.num_records - 1 - skip
    start = max(0, end - num_records + 1)
    slices: list[SliceOfBlock] = []
    if end >= start:
        slices = overlapping(slices_of(newest_blocks(dataset.chain.iter_blocks(state.head), start)), start, end)
    name, store = str(dataset.handle), dataset.layout.data
    return scan_of(name, store, slices, state.vocab, (start, end), schema.names, schema, max_bytes=max_bytes)


@dataclass(frozen=True, slots=True)
class WorkspaceResolver:
    """The dataset resolver of a workspace."""

    storage: Storage

    def find(self, name: str | DatasetId) -> StoredDataset:
        """Implement `DatasetResolver`."""
        return self.storage.get(name) if isinstance(name, DatasetId) else self.storage.get_at(name)

    def at(self, dataset: Dataset, block: Multihash) -> StoredDataset:
        """Implement `DatasetResolver`."""
        return self.storage.get(dataset.handle.id).at(block)

    def find_block(self, dataset: Dataset, text: str) -> Multihash:
        """Implement `DatasetResolver`."""
        return find_block(self.storage.get(dataset.handle.id), text)

    def owner(self, block: Multihash) -> str | None:
        """Implement `DatasetResolver`."""
        having = (dataset for dataset in self.storage.datasets() if block in dataset.layout.blocks)
        return next((str(owning.handle) for owning in having), None)

    def names(self) -> list[str]:
        """Implement `DatasetResolver`."""
        return [str(dataset.handle) for dataset in self.storage.datasets()]

    @property
    def listing(self) -> str:
        """Implement `DatasetResolver`."""
        return "`odf list` shows the datasets"

    def scratch(self) -> AbstractContextManager[Path]:
        """Implement `DatasetResolver`."""
        return self.storage.scratch()

    def schema_file(self, schema: DataSchema) -> Path:
        """Implement `DatasetResolver`."""
        return schema_file(self.storage, schema)
