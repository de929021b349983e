"""The catalog of a server: a summary of each dataset, cached so that lists of many thousands open no chains.

An entry is valid for a head, a modification time of the folder next to the chain, and one of the signatures. Listing
again only checks these, some microseconds for each dataset, and reads what has changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Lock
from typing import TypeVar

from odfpy.archive.rows import is_archive
from odfpy.chain.events import SetInfo
from odfpy.coordinator.maintenance.last_verification import LastVerification, last_verification
from odfpy.coordinator.schedules.file import load_schedule
from odfpy.coordinator.schedules.schedule import DatasetSchedule
from odfpy.coordinator.storage.last_failure import LastFailure, last_failure
from odfpy.coordinator.storage.signers import Signers
from odfpy.coordinator.storage.storage import Storage, StoredDataset, is_folder_name
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.errors import OdfError
from odfpy.serving.callers.access import Caller, is_listed
from odfpy.serving.callers.visibility import Visibility, visibility_of

_Stamp = tuple[int, ...]
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogEntry:
    """A dataset as lists show it.

    Attributes:
        dataset: the dataset, as it was then.
        data_size: bytes of all slices.
        linked_files: files that rows link to, counted as often as rows do.
        linked_size: bytes of these.
        updated_at: time of the last block that carried rows.
        signed_by: signers with valid signatures on the last block.
        inputs: ids of the datasets that it is directly derived from.
        verification: the last verification on this machine, None for none.
        failure: the last pull on this machine, if it failed.
        schedule: when the scheduler works for it, None for never, or where that cannot be read.
        schedule_fault: why the schedule cannot be read, None if it can, or if there is none.
        is_archive: whether it is an archive of files.
    """

    dataset: StoredDataset
    kind: DatasetKind
    head: Multihash
    num_blocks: int
    num_records: int
    data_size: int
    linked_files: int
    linked_size: int
    watermark: Timestamp | None
    updated_at: Timestamp | None
    description: str | None
    keywords: tuple[str, ...]
    visibility: Visibility
    signed_by: tuple[str, ...]
    inputs: tuple[DatasetId, ...]
    verification: LastVerification | None
    failure: LastFailure | None
    schedule: DatasetSchedule | None
    schedule_fault: str | None
    is_archive: bool = False

    def is_late(self, now: Timestamp) -> bool:
        """Return whether its latest rows are older than its schedule promises.

        Args:
            now: the time.
        """
        return self.schedule is not None and self.schedule.is_late(self.updated_at, now)

    @property
    def name(self) -> str:
        """Return the name of the dataset."""
        return str(self.dataset.handle)


_Known = tuple[_Stamp, CatalogEntry | None]


class Catalog:
    """The datasets of some workspaces; of several of the same name, that of the first workspace. For all threads."""

    def __init__(self, storages: Sequence[Storage]) -> None:
        self._storages = tuple(storages)
        self._known: dict[str, _Known] = {}
        self._ordered: list[CatalogEntry] | None = None
        self._lock = Lock()

    def entries(self) -> list[CatalogEntry]:
        """Return all readable datasets, sorted by name."""
        with self._lock:  # two concurrent first requests need not read everything twice
            by_folder = {folder: self._entry(folder, storage) for folder, storage in self._folders()}
            if self._ordered is None or list(map(id, by_folder.values())) != list(map(id, self._known.values())):
                self._known, self._ordered = by_folder, _in_order(entry for _, entry in by_folder.values())
            return list(self._ordered)

    def warm_up(self, stop: Event) -> None:
        """Read all datasets ahead, so that the first list of many thousands need not wait for it.

        Args:
            stop: stops it early.
        """
        for folder, storage in self._folders():
            if stop.is_set():
                return
            with self._lock:  # one at a time: concurrent requests reuse what was read so far
                if folder not in self._known:
                    self._known[folder] = self._entry(folder, storage)
                    self._ordered = None

    def visible_to(self, caller: Caller) -> list[CatalogEntry]:
        """Return the datasets that the caller may read, whose token was just verified."""
        return self.visible_among(self.entries(), caller)

    @staticmethod
    def visible_among(entries: Iterable[CatalogEntry], caller: Caller) -> list[CatalogEntry]:
        """Return those of some datasets that the caller may read, whose token was just verified.

        Args:
            entries: the datasets.
            caller: the caller.
        """
        return [entry for entry in entries if is_listed(entry.dataset, entry.visibility, caller)]

    def _folders(self) -> Iterator[tuple[str, Storage]]:
        for storage in self._storages:
            with suppress(OSError), os.scandir(storage.odf / "datasets") as entries:
                names = sorted(entry.name for entry in entries)
                above = f"{storage.odf}/datasets"  # strings: creating that many paths is slow
                yield from ((f"{above}/{name}", storage) for name in names if is_folder_name(name))

    def _entry(self, folder: str, storage: Storage) -> _Known:
        stamp = _stamp(folder)
        known = self._known.get(folder)
        if known is not None and known[0] == stamp:
            return known
        try:
            return stamp, entry_of(StoredDataset.load(Path(folder), storage))
        except OdfError:  # damaged, or being created
            return stamp, None


def _in_order(entries: Iterable[CatalogEntry | None]) -> list[CatalogEntry]:
    """Return the datasets sorted by name; of several with the same name, the first."""
    named: dict[str, CatalogEntry] = {}
    for entry in entries:
        if entry is not None:
            named.setdefault(entry.name, entry)
    return sorted(named.values(), key=lambda entry: entry.name.lower())


def _stamp(folder: str) -> _Stamp:
    """Return a value that changes with the head and with every file next to the chain: all are replaced by renaming."""
    stamp: list[int] = []
    for part in ("refs/head", "info", "info/signatures", "info/revocations"):
        with suppress(OSError):
            status = os.stat(f"{folder}/{part}")  # noqa: PTH116 - a Path would take twice as long
            stamp += (status.st_ino, status.st_mtime_ns)
    return tuple(stamp)


def entry_of(dataset: StoredDataset) -> CatalogEntry | None:
    """Return the list entry of a dataset; None for an empty chain.

    Raises:
        OdfError: the dataset is damaged.
    """
    state = dataset.state
    if state.head is None:
        return None
    info = state.info or SetInfo()
    schedule, fault = _schedule_of(dataset)
    return CatalogEntry(
        dataset=dataset,
        kind=state.kind,
        head=state.head,
        num_blocks=state.sequence_number + 1,
        num_records=state.num_records,
        data_size=state.data_bytes,
        linked_files=state.linked_count,
        linked_size=state.linked_bytes,
        watermark=state.watermark,
        updated_at=state.last_data_time,
        description=info.description,
        keywords=tuple(info.keywords or ()),
        visibility=visibility_of(dataset.folder),
        signed_by=_signers(dataset),
        inputs=tuple(dataset.input_ids),
        verification=_or_none(last_verification, dataset),
        failure=_or_none(last_failure, dataset),
        schedule=schedule,
        schedule_fault=fault,
        is_archive=is_archive(state),
    )


def _schedule_of(dataset: StoredDataset) -> tuple[DatasetSchedule | None, str | None]:
    try:
        return load_schedule(dataset.folder), None
    except OdfError as error:
        return None, error.message


def _signers(dataset: StoredDataset) -> tuple[str, ...]:
    assert dataset.state.head is not None  # noqa: S101 - checked by the caller
    signatures = Signers(dataset).get(dataset.chain.block(dataset.state.head))
    return tuple(dict.fromkeys(signer.name for signer in signatures.signers))


def _or_none(find: Callable[[StoredDataset], _Found | None], dataset: StoredDataset) -> _Found | None:
    """Read a record that is stored next to the chain; `odf verify` reports damaged ones."""
    with suppress(OdfError):
        return find(dataset)
    return None
