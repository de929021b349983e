"""`odf gc --repo`: removing what nobody needs from a repository that we may write to: a folder or a bucket.

Nobody has a lock there. What a push brings is of no use until its head moves, and must not be taken for garbage until
then. So only what was written, or found to be of use by a push, a good while ago goes; the references are looked at
again before each removal, and after the last.
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
from odfpy.repository.objects import run_all
from odfpy.repository.places.listing import ListedDataset, list_datasets
from odfpy.repository.places.open import is_writable, open_dataset

GOOD_WHILE = Duration.parse("2w")
"""How old garbage is by default; no push that is still at work has begun before."""

_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class StrayObject:
    """An object that no reference reaches.

    Attributes:
        store: what it is in.
        name: its hash.
        size: its bytes.
    """

    store: ObjectStore
    name: Multihash
    size: int

    @property
    def path(self) -> str:
        """Return where it is."""
        return self.store.describe(self.name)

    @property
    def why(self) -> Garbage:
        """Return what it is."""
        return Garbage.OBJECT


@dataclass(frozen=True)
class RepositoryGarbage:
    """Collects in one repository.

    Attributes:
        url: where it is.
        older_than: how long ago what is removed was written.
        dry_run: only find out.
    """

    url: str
    older_than: Duration = GOOD_WHILE
    dry_run: bool = False
    progress: ProgressSink = silent

    def collect(self, names: Iterable[str] = ()) -> Iterator[GcReport]:
        """Some datasets, by names and patterns, or all.

        Raises:
            UsageError: nothing can be removed there from here.
            DatasetNotFound: a name or pattern fits nothing.
            NotFound, TransferError: the repository is not there, cannot be reached or read.
        """
        if not is_writable(self.url):
            raise UsageError(
                f"{without_user(self.url)}: this place can only be read from here",
                hint="A folder or a bucket can be tidied up; on a node, `odf gc` does it in its workspace.",
            )
        datasets = _chosen(list_datasets(self.url), names)
        for number, dataset in enumerate(datasets):
            name = str(dataset.alias)
            self.progress(Progress(name, "looking for what is of no use", number, len(datasets)))
            started = time.monotonic()
            report = self._dataset(name, dataset.url)
            yield replace(report, seconds=time.monotonic() - started)

    def _dataset(self, name: str, url: str) -> GcReport:
        removed: list[StrayObject | UnusedPath] = []
        try:
            layout = open_dataset(url)
            limit = time.time() - self.older_than.seconds
            known, tips = _references(layout)
            found = list(self._useless(layout, known, limit))
            if self.dry_run:
                return GcReport(name=name, found=tuple(found))
            left = iter(found)
            while some := list(islice(left, _AT_ONCE)):
                if _tips(layout) != tips:
                    _require_all(layout, name, removed)  # who runs it again does not learn what is missing
                    raise ConcurrentUpdate(f"{name} was written to meanwhile", hint="Run the command again.")
                stays: set[int] = set()
                run_all([partial(_remove, layout, item, limit, stays) for item in some])
                removed += [item for item in some if id(item) not in stays]
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
    """Return what references lead to, and where they are; whoever moves one meanwhile has to be looked at again."""
    # Before the walk: a reference that moves during it then differs at the next look, and nothing is removed.
    tips = _tips(layout)
    try:
        return reachable_blocks(layout), tips
    except OdfError as error:
        raise error.with_message(
            f"{error.message}: what is of no use cannot be told from what is",
            hint="Nothing of the dataset was removed. Push it again from where it is whole.",
        ) from error


def _tips(layout: DatasetLayout) -> frozenset[tuple[str, Multihash | None]]:
    return frozenset((name, layout.refs.get(name)) for name in layout.refs.names())


def _stores(layout: DatasetLayout) -> tuple[ObjectStore, ...]:
    return layout.data, layout.checkpoints, layout.blocks


def _remove(layout: DatasetLayout, item: StrayObject | UnusedPath, limit: float, stays: set[int]) -> None:
    """Remove something, unless a push has found it to be of use since it was listed.

    Args:
        layout: the dataset.
        item: what goes.
        limit: seconds since 1970; what was written later stays.
        stays: takes the `id` of what does not go.
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
    """Return whether a push has found an object to be there, and relies on it: then it counts as written now."""
    path = store.file_of(name) if isinstance(store, LocalObjectStore) else None
    try:
        return path is not None and path.stat().st_mtime > limit
    except OSError:  # it has gone
        return False


def _require_all(layout: DatasetLayout, name: str, removed: list[StrayObject | UnusedPath]) -> None:
    """Make sure that nothing was removed that somebody has come to refer to in that very moment."""
    hint = "Push the dataset again from where the last push came from: what is missing is sent then."
    problem = f"{name} was pushed to in the moment of the removal"
    try:
        known = reachable_blocks(layout)
    except OdfError as error:
        raise ConcurrentUpdate(f"{problem}: {error.message}", hint=hint) from error
    # A missing block has failed the walk above. Other objects have not: it reads their names, and not them.
    for item in removed:
        if isinstance(item, StrayObject) and (known.needs_data(item.name) or item.name in known.checkpoints):
            raise ConcurrentUpdate(f"{problem}: {item.path} is missing", hint=hint)


def _chosen(listed: list[ListedDataset], names: Iterable[str]) -> list[ListedDataset]:
    found: dict[DatasetAlias, ListedDataset] = {}
    for name in names:
        fits = DatasetPattern(name).matches if is_pattern(name) else DatasetAlias.parse(name).__eq__
        fitting = {item.alias: item for item in listed if fits(item.alias)}
        if not fitting:
            raise DatasetNotFound(f"There is no dataset {name!r}", hint="`odf search --repo` shows what is there.")
        found |= fitting
    return [item for item in listed if item.alias in found] if found else listed
