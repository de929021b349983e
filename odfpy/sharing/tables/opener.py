"""Opening shared tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.storage.references import find_block
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.data.lru_cache import LruCache
from odfpy.dataset.identity import DatasetId
from odfpy.errors import DatasetNotFound, NotFound, OdfError
from odfpy.extras import needs_extra
from odfpy.query.service import QueryService
from odfpy.sharing.errors import CannotShare
from odfpy.sharing.model import SharedView, SourceKind, TableSource
from odfpy.sharing.tables.contract import ReadableTable
from odfpy.sharing.tables.dataset import DatasetTable
from odfpy.sharing.tables.numbering import VersionNumbers

_MAX_KEPT: Final = 200


class TableOpener:
    """Opens the shared tables of workspaces, and caches those of unchanged datasets. Thread-safe."""

    def __init__(
        self, storages: Sequence[Storage], queries: Sequence[QueryService], numbers: VersionNumbers | None = None
    ) -> None:
        """
        Args:
            storages: the workspaces.
            queries: the query service of each workspace.
            numbers: version numbers of datasets; None if no numbers are shown to clients.
        """
        self._numbers = numbers
        self._places = tuple(zip(storages, queries, strict=True))
        self._kept: LruCache[tuple[object, ...], DatasetTable] = LruCache(_MAX_KEPT)

    def open(self, source: TableSource) -> ReadableTable:
        """Return the current table of a source.

        Raises:
            CannotShare: the source does not exist, or no longer.
        """
        if source.kind is SourceKind.DATASET:
            return self._dataset(source)
        return open_files(source.kind, source.location)

    def _dataset(self, source: TableSource) -> DatasetTable:
        for storage, queries in self._places:
            try:
                dataset = storage.get(DatasetId.parse(source.location))
                seen = _at(dataset, source.at)
                head = seen.chain.head() if seen.block is None else seen.block
            except DatasetNotFound:
                continue
            except NotFound as error:
                raise CannotShare(f"The dataset has no tag or branch {source.at!r} any more") from error
            except OdfError as error:
                raise CannotShare(f"The dataset cannot be read: {error.message}", hint=error.hint) from error
            base = 0 if self._numbers is None else self._numbers.base(dataset, head, _name(source.at) or "")
            key = (dataset.folder, source.shown, head, base)
            return self._kept.get(key, partial(DatasetTable, seen.at(head), source.shown, queries, base))
        raise CannotShare(f"The dataset {source.location} is not in this workspace any more")


def open_files(kind: SourceKind, location: str) -> ReadableTable:
    """Return a table of files.

    Args:
        kind: kind of the table.
        location: its location, as in `TableSource`.

    Raises:
        CannotShare: the table does not exist, cannot be read, or its library is not installed.
    """
    if kind is SourceKind.PARQUET:
        from odfpy.sharing.tables.parquet import ParquetTable

        return ParquetTable(location)
    if kind is SourceKind.DELTA:
        with needs_extra("delta", "Delta tables", CannotShare):
            from odfpy.sharing.tables.delta import DeltaTable
        return DeltaTable(location)
    with needs_extra("iceberg", "Iceberg tables", CannotShare):
        from odfpy.sharing.tables.iceberg import IcebergTable
    return IcebergTable(location)


def shared_dataset(dataset: StoredDataset, shown: SharedView, at: str | None) -> TableSource:
    """Return a dataset as the source of a shared table.

    Args:
        dataset: the dataset.
        shown: whether to show its current state, or its changelog.
        at: a tag or branch; None for the head.

    Raises:
        BlockNotFound, UsageError: the tag or branch does not exist.
    """
    _at(dataset, at)
    return TableSource(SourceKind.DATASET, str(dataset.handle.id), shown, at)


def _at(dataset: StoredDataset, at: str | None) -> StoredDataset:
    name = _name(at)
    return dataset if name is None else dataset.at(find_block(dataset, name))


def _name(at: str | None) -> str | None:
    """Return the tag or branch; None for the head, which also has a name."""
    return None if at == HEAD else at
