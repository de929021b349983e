"""`odf gc`: garbage collection.

In a dataset, the garbage is: objects that no reference reaches, left-overs of killed writers and, if requested,
superseded checkpoints and the content of its cache. It is collected under the dataset's lock, and not during pushes
to it. In the workspace, the garbage is: caches of deleted datasets, unfinished copies, scratch files of processes
that have ended, and files for shared tables that have not been used for a day.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Protocol

from odfpy.coordinator.maintenance.reachable import (
    Garbage,
    UnusedPath,
    reachable_blocks,
    size_of,
    temporary,
    unreferenced_objects,
)
from odfpy.coordinator.maintenance.removable_objects import RemovalPolicy, removable_objects
from odfpy.coordinator.storage.locks import no_pushes, writer_lock
from odfpy.coordinator.storage.results import Progress, ProgressSink, silent
from odfpy.coordinator.storage.storage import Storage, StoredDataset, is_folder_name
from odfpy.errors import DatasetLocked, OdfError

_UNUSED: Final = 24 * 3600


@dataclass(frozen=True, slots=True)
class GcOptions:
    """Options of a garbage collection.

    Attributes:
        checkpoints: whether to remove checkpoints that later ones have superseded.
        caches: whether to remove caches that are in use.
        dry_run: whether only to report.
        may_remove: permits the removal of linked objects whose rows record it; None never to remove them.
    """

    checkpoints: bool = False
    caches: bool = False
    dry_run: bool = False
    may_remove: RemovalPolicy | None = None


class GarbageItem(Protocol):
    """A file, folder or object that can be removed."""

    @property
    def path(self) -> Path | str:
        """Return its path, or its URL if it is in a bucket."""

    @property
    def size(self) -> int:
        """Return its size in bytes."""

    @property
    def why(self) -> Garbage:
        """Return the kind of garbage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GcReport:
    """The garbage that was, or would be, removed.

    Attributes:
        name: name of the dataset, None for garbage outside of all datasets.
        found: the garbage.
        seconds: duration in seconds.
        error: the error if nothing was removed.
    """

    name: str | None
    found: tuple[GarbageItem, ...] = ()
    seconds: float = 0.0
    error: OdfError | None = None

    @property
    def size(self) -> int:
        """Return the total size in bytes."""
        return sum(item.size for item in self.found)

    @property
    def counts(self) -> dict[Garbage, int]:
        """Return the number of files and folders by kind."""
        return dict(Counter(item.why for item in self.found))


@dataclass(frozen=True)
class GarbageCollector:
    """The garbage collector of one workspace."""

    storage: Storage
    options: GcOptions
    progress: ProgressSink = silent

    def collect(self, datasets: list[StoredDataset], *, everything: bool) -> Iterator[GcReport]:
        """Collect the garbage of datasets one by one; with `everything`, also garbage outside of all datasets."""
        for number, dataset in enumerate(datasets):
            self.progress(Progress(str(dataset.handle), "looking for unneeded files", number, len(datasets)))
            yield self._timed(str(dataset.handle), lambda dataset=dataset: self._dataset(dataset))  # type: ignore[misc]
        if everything:
            yield self._timed(None, self._workspace)

    def _timed(self, name: str | None, work: Callable[[], list[UnusedPath]]) -> GcReport:
        started = time.monotonic()
        try:
            report = GcReport(name=name, found=tuple(work()))
        except OdfError as error:
            report = GcReport(name=name, error=error)
        return replace(report, seconds=time.monotonic() - started)

    # --- A dataset ---

    def _dataset(self, dataset: StoredDataset) -> list[UnusedPath]:
        dataset = self.storage.get(dataset.handle.id)  # its head, even if a block or branch was requested
        lock = self.storage.lock_of(dataset.folder)
        with self._locked(no_pushes(lock, f"Dataset {dataset.handle}")), self._locked(dataset.writing()):
            try:
                useless = list(self._useless(dataset))
            except OdfError as error:
                raise error.with_message(
                    f"{error.message}: unneeded files cannot be identified",
                    hint=f"`odf verify {dataset.handle}` says what is damaged; nothing of the dataset was removed.",
                ) from error
            return self._removed(useless)

    def _useless(self, dataset: StoredDataset) -> Iterator[UnusedPath]:
        known = reachable_blocks(dataset.layout)
        yield from unreferenced_objects(dataset.folder, known)
        if self.options.may_remove is not None:
            yield from removable_objects(dataset, known, self.options.may_remove)
        yield from temporary(dataset.folder)
        if self.options.checkpoints:
            store = dataset.layout.checkpoints
            for name in sorted(known.checkpoints - known.last_checkpoints, key=str):
                path = store.local_path(name)
                if path is not None and path.is_file():
                    yield UnusedPath(path, size_of(path), Garbage.CHECKPOINT, name)
        if self.options.caches:
            yield from _caches([self.storage.cache_of(dataset.handle.id)])

    # --- Outside of all datasets ---

    def _workspace(self) -> list[UnusedPath]:
        with self._locked(
            self.storage.editing()
        ):  # under the lock: otherwise the cache of a dataset that is being created would look like an orphan
            folders = {path.name for path in self.storage.entries()}
            caches = (path for path in _children(self.storage.cache) if is_folder_name(path.name))
            orphans = [path for path in caches if path.name not in folders]
            shared = _unused(self.storage, 0 if self.options.caches else _UNUSED)
            removed = self._removed([*_caches(orphans), *_scratch(self.storage), *shared])
        return [*removed, *self._incoming()]

    def _incoming(self) -> Iterator[UnusedPath]:
        """Remove incomplete copies from other locations that no process continues, and yield their paths."""
        for path in _children(self.storage.incoming):
            lock, what = self.storage.lock_of(path), f"The copy in {path}"
            with (
                suppress(DatasetLocked),
                self._locked(no_pushes(lock, what)),
                self._locked(writer_lock(lock, what)),
            ):
                yield from self._removed(list(_caches([path])))

    @contextmanager
    def _locked(self, lock: AbstractContextManager[object]) -> Iterator[None]:
        """Hold a lock during the block. A dry run continues without it if the folder is not writable.

        Raises:
            DatasetLocked: another process holds the lock.
        """
        with ExitStack() as held:
            try:
                held.enter_context(lock)
            except OdfError as error:
                if isinstance(error, DatasetLocked) or not self.options.dry_run:
                    raise
            yield

    def _removed(self, unused: list[UnusedPath]) -> list[UnusedPath]:
        if not self.options.dry_run:
            for item in unused:
                remove(item.path)
        return unused


def _scratch(storage: Storage) -> Iterator[UnusedPath]:
    return (UnusedPath(path, size_of(path), Garbage.TEMPORARY) for path in storage.abandoned())


def _unused(storage: Storage, seconds: int) -> Iterator[UnusedPath]:
    """Yield files for shared tables that have not been used for a number of seconds; servers touch a file on use.

    Also yield unfinished files of killed servers (`*.new`).
    """
    for pattern in ("shared-files/??/*.parquet", "shared-files/??/*.new", "shared-files/shown/*", "*/live/*.live"):
        for path in sorted(storage.cache.glob(pattern)):
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime >= seconds:
                    yield UnusedPath(path, size_of(path), Garbage.CACHE)


def _caches(folders: list[Path]) -> Iterator[UnusedPath]:
    return (UnusedPath(path, size_of(path), Garbage.CACHE) for path in folders if path.is_dir())


def _children(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


def remove(path: Path) -> None:
    """Remove a file or folder, if it exists.

    Raises:
        OdfError: the file or folder cannot be removed.
    """
    try:
        # Remove only a link, not its target, which may be outside of the workspace.
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise OdfError(f"Cannot delete {error.filename or path}: {error.strerror}") from error
