"""The archives of a server: which one a path refers to, who may access it, and its uploads in progress.

/{name}/v0/archive/...      the archive of that name
/v0/archive/...             the one that the setting `archive.name` names, or else the only one that the caller
                            may read
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import anyio
from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from odfpy.archive.local import LocalArchive
from odfpy.archive.opening import is_url
from odfpy.archive.rows import is_archive
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.workspace import Workspace
from odfpy.data.lru_cache import LruCache
from odfpy.data.multihash import Multihash
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import InvalidValue, ObjectNotFound, OdfError
from odfpy.serving.archive.refusals import no_archive
from odfpy.serving.archive.tallies import Tallies
from odfpy.serving.archive.uploads import Uploads
from odfpy.serving.callers.access import (
    AnyCaller,
    Caller,
    alias_in,
    is_readable,
    readable,
    registry_of,
    require_writable,
    unauthorized_error,
    writable,
)
from odfpy.serving.callers.registry import ServedRegistry
from odfpy.settings.sections import ArchiveSection

_PARALLEL = 4
_UPLOADING = 64
_FRESH = 2.0
_KEPT = 200


@dataclass(frozen=True, slots=True)
class ServedArchive:
    """An archive as requested by a client.

    Attributes:
        archive: the archive.
        base: its URL for clients.
        uploads: uploaded files, complete or not, that are in no record yet.
    """

    archive: LocalArchive
    base: str
    uploads: Uploads

    def url(self, id: str) -> str:  # noqa: A002 - the field's name
        """Return the URL of the bytes of a file."""
        return f"{self.base}/v0/archive/files/{id}/data"

    def has(self, name: Multihash) -> bool:
        """Return whether the archive has the bytes of a file; protects them from garbage collection for a while."""
        return self.size_of(name) is not None

    def size_of(self, name: Multihash) -> int | None:
        """Return the size of a stored file, None if it is missing; protects it from garbage collection for a while."""
        store = self.archive.dataset.layout.data
        try:
            size = store.size(name)
        except ObjectNotFound:
            return None
        store.touch(name)
        return size

    def scratch(self) -> AbstractContextManager[Path]:
        """Create a temporary folder on the file system of the archive."""
        return self.archive.scratch()


@dataclass(slots=True)
class Archives:
    """The archives of one server; thread-safe.

    Attributes:
        committing: limits the threads that write records.
        uploading: limits the threads that receive uploads.
        tallies: counts of the stored files.
        days: files per day, cached by archive, head and query: counting ten million files takes a second.
    """

    workspaces: Sequence[Workspace]
    registry: ServedRegistry
    most: int
    committing: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_PARALLEL))
    uploading: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_UPLOADING))
    tallies: Tallies = field(default_factory=Tallies)
    days: LruCache[object, dict[int, int]] = field(default_factory=lambda: LruCache(_KEPT))
    _uploads: dict[Path, Uploads] = field(default_factory=dict)
    _open: dict[Path, LocalArchive] = field(default_factory=dict)
    _locks: dict[Path, threading.Lock] = field(default_factory=dict)
    _all: tuple[float, list[StoredDataset]] | None = None
    _seen: dict[Path, tuple[Multihash | None, bool]] = field(default_factory=dict)

    def get(self, dataset: StoredDataset) -> LocalArchive:
        """Return the archive in a dataset.

        Raises:
            Refused: it is not a valid archive.
        """
        if not self._is_archive(dataset):
            raise no_archive(f"{dataset.handle} is not an archive of files")
        known = self._open.get(dataset.folder)
        if known is None or known.name != str(dataset.handle):  # it may have been renamed
            root = dataset.workspace_folder.root
            workspace = next(candidate for candidate in self.workspaces if candidate.storage.root == root)
            known = LocalArchive(workspace, dataset, asks_elsewhere=False)
            self._open[dataset.folder] = known
        return known

    def uploads_of(self, dataset: StoredDataset) -> Uploads:
        """Return the uploads of an archive."""
        known = self._uploads.get(dataset.folder)
        return known or self._uploads.setdefault(dataset.folder, Uploads(dataset.cache / "uploads", self.most))

    def lock_of(self, dataset: StoredDataset) -> threading.Lock:
        """Return the lock that serializes this server's commits to an archive."""
        return self._locks.setdefault(dataset.folder, threading.Lock())

    def named(self) -> DatasetAlias | None:
        """Return the archive that the setting names, None if it names none."""
        for workspace in self.workspaces:
            name = workspace.config.section(ArchiveSection).name
            if name is not None and not is_url(name):
                try:
                    return DatasetAlias.parse(name)
                except InvalidValue:
                    continue
        return None

    def all(self) -> list[StoredDataset]:
        """Return all archives of the server; cached briefly, since checking ten thousand datasets takes a second."""
        now = time.monotonic()
        if self._all is None or now - self._all[0] > _FRESH:
            self._all = (now, [candidate for candidate in self.registry.refresh() if self._is_archive(candidate)])
        return [dataset.reloaded() for dataset in self._all[1]]

    def sweep(self) -> None:
        """Remove what is left of uploads abandoned long ago."""
        for workspace in self.workspaces:
            for dataset in workspace.storage.datasets():
                if (dataset.cache / "uploads").is_dir():
                    self.uploads_of(dataset).sweep()

    def _is_archive(self, dataset: StoredDataset) -> bool:
        """Return whether a dataset is an archive, without reading its chain if its head is known."""
        try:
            head = dataset.layout.refs.get("head")
            known = self._seen.get(dataset.folder)
            if known is None or known[0] != head:
                known = self._seen[dataset.folder] = (head, is_archive(dataset.state))
        except OdfError:  # a damaged dataset must not affect requests for others
            return False
        return known[1]


def archives_of(connection: HTTPConnection) -> Archives:
    """Return the archives of the server."""
    archives = connection.app.state.archives
    assert isinstance(archives, Archives)  # noqa: S101 - set by `create_app`
    return archives


def readable_archive(request: Request, caller: AnyCaller) -> ServedArchive:
    """Return the archive that the path refers to.

    Raises:
        HTTPException: 401 or 404, there is none that the caller may read.
        Refused: 404, the dataset is not an archive.
    """
    dataset = readable(request, caller) if _names_one(request) else _at_the_root(request, caller)
    return _served(request, dataset)


def writable_archive(request: Request, caller: AnyCaller) -> ServedArchive:
    """Return the archive that the path refers to, for a token with scope write.

    Raises:
        HTTPException: 401, 403 or 404, the caller may not write there.
        Refused: 404, the dataset is not an archive.
    """
    if _names_one(request):
        dataset = writable(request, caller).dataset
        if dataset is None:
            raise no_archive("There is no archive of that name")
    else:
        dataset = _at_the_root(request, caller)
        require_writable(dataset, caller)
    return _served(request, dataset)


ReadableArchive = Annotated[ServedArchive, Depends(readable_archive)]
WritableArchive = Annotated[ServedArchive, Depends(writable_archive)]


def _served(request: Request, dataset: StoredDataset) -> ServedArchive:
    archives = archives_of(request)
    base = (request.app.state.settings.base_url or str(request.base_url)).rstrip("/")
    if _names_one(request):
        base = f"{base}/{alias_in(request)}"
    return ServedArchive(archives.get(dataset), base, archives.uploads_of(dataset))


def _names_one(connection: HTTPConnection) -> bool:
    return "name" in connection.path_params


def _at_the_root(connection: HTTPConnection, caller: Caller) -> StoredDataset:
    """Return the archive of paths without a name; datasets that the caller may not read do not count."""
    archives = archives_of(connection)
    name = archives.named()
    if name is not None:
        named = registry_of(connection).find(name)
        candidates = [] if named is None else [named]
    else:
        candidates = archives.all()
    shown = [dataset for dataset in candidates if is_readable(dataset, caller)]
    if len(shown) == 1:
        return shown[0]
    if shown:
        names = ", ".join(str(dataset.handle) for dataset in shown)
        raise no_archive(f"There are several archives here: {names}\nAsk for /NAME/v0/archive/...")
    if caller.token is None:
        raise unauthorized_error("There is no public archive here; others need an access token")
    raise no_archive("Archive not found, or this token may not read it")
