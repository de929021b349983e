"""`odf gc --repo`: garbage collection in a writable repository: a folder or a bucket.

A repository has no locks. Objects uploaded by a push are unreachable until the push moves the head, and must not be
removed before. So objects are only removed if they have not been written, or used by a push, for a long time. The
references are read again before each batch of removals, and after the last one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.signatures import path_of
from odfpy.chain.stores.object_store import LocalObjectStore, ObjectStore
from odfpy.coordinator.maintenance.gc import GcReport, remove
from odfpy.coordinator.maintenance.reachable import (
    Garbage,
    Reached,
    UnusedPath,
    is_left_since,
    reachable_blocks,
    temporary,
)
from odfpy.coordinator.storage.results import Progress, ProgressSink, silent
from odfpy.data.duration import Duration
from odfpy.data.multihash import Multihash
from odfpy.dataset.names import DatasetAlias, DatasetPattern, is_pattern
from odfpy.errors import ConcurrentUpdate, DatasetNotFound, OdfError, UsageError
from odfpy.http.url import without_user
from odfpy.repository.locations.listing import ListedDataset, list_datasets
from odfpy.repository.locations.open import is_writable, open_dataset
from odfpy.repository.objects import run_all

GOOD_WHILE = Duration.parse("2w")
"""Default minimum age of garbage; pushes are assumed to take less time."""

_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class StrayObject:
    """An object that no reference reaches.

    Attributes:
        store: the store of the object.
        name: hash of the object.
        size: size in bytes.
    """

    store: ObjectStore
    name: Multihash
    size: int

    @property
    def path(self) -> str:
        """Return its path or URL."""
        return self.store.describe(self.name)

    @property
    def why(self) -> Garbage:
        """Return the kind of garbage."""
        return Garbage.OBJECT


@dataclass(frozen=True)
class RepositoryGarbage:
    """The garbage collector of one repository.

    Attributes:
        url: the URL of the repository.
        older_than: the minimum age of objects to remove.
        dry_run: whether only to report.
    """

    url: str
    older_than: Duration = GOOD_WHILE
    dry_run: bool = False
    progress: ProgressSink = silent

    def collect(self, names: Iterable[str] = ()) -> Iterator[GcReport]:
        """Collect the garbage of datasets by name or pattern, or of all.

        Raises:
            UsageError: objects of the repository cannot be removed.
            DatasetNotFound: a name or pattern matches nothing.
            NotFound, TransferError: the repository does not exist, or cannot be reached or read.
        """
        if not is_writable(self.url):
            raise UsageError(
                f"{without_user(self.url)}: this repository is read-only from here",
                hint="Only folders and buckets can be cleaned up; on a node, run `odf gc` in its workspace.",
            )
        datasets = _chosen(list_datasets(self.url), names)
        for number, dataset in enumerate(datasets):
            name = str(dataset.alias)
            self.progress(Progress(name, "looking for unneeded files", number, len(datasets)))
            started = time.monotonic()
            report = self._dataset(name, dataset.url)
            yield replace(report, seconds=time.monotonic() - started)

    def _dataset(self, name: str, url: str) -> GcReport:
        removed: list[StrayObject | UnusedPath] = []
        try:
            layout = open_dataset(url)
            limit = time.time() - self.older_than.seconds
            known, tips = _references(layout)
            unused = list(self._useless(layout, known, limit))
            if self.dry_run:
                return GcReport(name=name, found=tuple(unused))
            left = iter(unused)
            while batch := list(islice(left, _AT_ONCE)):
                if _tips(layout) != tips:
                    _require_all(layout, name, removed)  # a second run would not detect the missing objects
                    raise ConcurrentUpdate(f"{name} was written to at the same time", hint="Run the command again.")
                stays: set[int] = set()
                run_all([partial(_remove, layout, item, limit, stays) for item in batch])
                removed += [item for item in batch if id(item) not in stays]
            if _tips(layout) != tips:
                _require_all(layout, name, removed)
        except OdfError as error:
            return GcReport(name=name, found=tuple(removed), error=error)
        return GcReport(name=name, found=tuple(removed))

    def _useless(self, layout: DatasetLayout, known: Reached, limit: float) -> Iterator[StrayObject | UnusedPath]:
        needed_in = (known.needs_data, known.checkpoints.__contains__, known.blocks.__contains__)
        for store, is_needed in zip(_stores(layout), needed_in, strict=True):
            for item in store.stored():
                if item.written <= limit and not is_needed(item.name):
                    yield StrayObject(store, item.name, item.size)
        if isinstance(layout.blocks, LocalObjectStore):
            for leftover in temporary(layout.blocks.folder.parent):
                if is_left_since(limit, leftover.path):
                    yield leftover


def _references(layout: DatasetLayout) -> tuple[Reached, frozenset[tuple[str, Multihash | None]]]:
    """Return the reachable objects and the targets of all references, to detect concurrent changes."""
    # Read before the walk: if a reference moves during the walk, the next comparison detects it, and nothing is
    # removed.
    tips = _tips(layout)
    try:
        return reachable_blocks(layout), tips
    except OdfError as error:
        raise error.with_message(
            f"{error.message}: unneeded files cannot be identified",
            hint="Nothing of the dataset was removed. Push it again from an intact copy.",
        ) from error


def _tips(layout: DatasetLayout) -> frozenset[tuple[str, Multihash | None]]:
    return frozenset((name, layout.refs.get(name)) for name in layout.refs.names())


def _stores(layout: DatasetLayout) -> tuple[ObjectStore, ...]:
    return layout.data, layout.checkpoints, layout.blocks


def _remove(layout: DatasetLayout, item: StrayObject | UnusedPath, limit: float, stays: set[int]) -> None:
    """Remove an object or file, unless a push has used it since it was listed.

    Args:
        layout: the dataset.
        item: the object or file.
        limit: time in seconds since 1970; objects written later are retained.
        stays: receives the `id` of retained items.
    """
    if isinstance(item, UnusedPath):
        remove(item.path)
    elif _is_of_use_again(item.store, item.name, limit):
        stays.add(id(item))
    else:
        item.store.delete(item.name)
        if item.store is layout.blocks and layout.side is not None:
            layout.side.delete(path_of(item.name))


def _is_of_use_again(store: ObjectStore, name: Multihash, limit: float) -> bool:
    """Return whether a push relies on an existing object; the push has then updated its modification time."""
    path = store.file_of(name) if isinstance(store, LocalObjectStore) else None
    try:
        return path is not None and path.stat().st_mtime > limit
    except OSError:  # it no longer exists
        return False


def _require_all(layout: DatasetLayout, name: str, removed: list[StrayObject | UnusedPath]) -> None:
    """Check that no removed object is reachable, as it would be if a push referred to it concurrently."""
    hint = "Push the dataset again from where the last push came from: what is missing is sent then."
    problem = f"{name} was pushed to at the moment of the removal"
    try:
        known = reachable_blocks(layout)
    except OdfError as error:
        raise ConcurrentUpdate(f"{problem}: {error.message}", hint=hint) from error
    # A missing block would have failed the walk above; other objects would not, since the walk only reads their names.
    for item in removed:
        if isinstance(item, StrayObject) and (known.needs_data(item.name) or item.name in known.checkpoints):
            raise ConcurrentUpdate(f"{problem}: {item.path} is missing", hint=hint)


def _chosen(listed: list[ListedDataset], names: Iterable[str]) -> list[ListedDataset]:
    chosen: dict[DatasetAlias, ListedDataset] = {}
    for name in names:
        fits = DatasetPattern(name).matches if is_pattern(name) else DatasetAlias.parse(name).__eq__
        fitting = {item.alias: item for item in listed if fits(item.alias)}
        if not fitting:
            raise DatasetNotFound(f"There is no dataset {name!r}", hint="`odf search --repo` shows what is there.")
        chosen |= fitting
    return [item for item in listed if item.alias in chosen] if chosen else listed
