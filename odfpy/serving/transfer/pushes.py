"""Targets of pushes: an existing dataset, or a staging folder until a new dataset is complete."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceName
from odfpy.coordinator.storage.locks import push_lock, writer_lock
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.transfer.files import choice_of, save_choice
from odfpy.data.link_filter import AVAILABLE
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import NANOS_PER_SECOND, Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import AlreadyExists, ConcurrentUpdate, DatasetNotFound
from odfpy.files import make_folder
from odfpy.repository.smart_transfer.messages import (
    VERSION,
    VERSION_HEADER,
    HeaderRow,
    NameCollision,
    ObjectFile,
    RefCollision,
    TransferUrl,
)
from odfpy.repository.smart_transfer.messages import Visibility as WireVisibility
from odfpy.repository.smart_transfer.session import Refusal
from odfpy.repository.smart_transfer.signed_urls import LIFETIME, Grant, UrlSigner
from odfpy.serving.callers.registry import ServedRegistry
from odfpy.serving.callers.visibility import Visibility, set_visibility


@dataclass(frozen=True, slots=True)
class SignedUrls:
    """A factory of signed URLs for objects of one dataset.

    Attributes:
        signer: signs the URLs.
        base: the URL of the dataset, as clients reach it.
        place: index of the server's workspace.
    """

    signer: UrlSigner
    base: str
    place: int

    def to_get(self, dataset_id: DatasetId, file: ObjectFile) -> TransferUrl:
        """Return the URL to download an object."""
        expires = _expiry()
        kind, name = file.object_type, file.physical_hash
        return self._url(Grant("GET", self.place, dataset_id, kind, name, file.size, expires))

    def to_put(self, dataset_id: DatasetId, file: ObjectFile) -> TransferUrl:
        """Return the URL to upload an object."""
        expires = _expiry()
        kind, name = file.object_type, file.physical_hash
        return self._url(Grant("PUT", self.place, dataset_id, kind, name, file.size, expires))

    def _url(self, grant: Grant) -> TransferUrl:
        headers = (HeaderRow(VERSION_HEADER, str(VERSION)),)
        expires_at = Timestamp(grant.expires * NANOS_PER_SECOND)
        return TransferUrl(f"{self.base}/{self.signer.path(grant)}", headers, expires_at)


def _expiry() -> int:
    return int(time.time()) + LIFETIME


def staged_folder(storage: Storage, alias: DatasetAlias, dataset_id: DatasetId) -> Path:
    """Return the staging folder of a new dataset; an interrupted push continues there.

    Args:
        storage: the workspace.
        alias: name of the dataset.
        dataset_id: id of the dataset.
    """
    return storage.cache / "incoming" / str(Multihash.of(f"push {alias} {dataset_id}".lower().encode()))


class ServedTarget:
    """A dataset name in a workspace, as the push protocol's target."""

    def __init__(
        self,
        served: ServedRegistry,
        storage: Storage,
        alias: DatasetAlias,
        urls: SignedUrls,
        reference: ReferenceName | None = None,
        *,
        must_be_new: bool = False,
    ) -> None:
        """
        Args:
            served: datasets of the server.
            storage: the workspace.
            alias: the name of the dataset there.
            urls: creates URLs for its objects.
            reference: the branch or tag that is pushed, for an existing dataset; None for the head.
            must_be_new: whether the reference may only be created, not moved.
        """
        self._must_be_new = must_be_new
        self._served = served
        self._storage = storage
        self._alias = alias
        self._urls = urls
        self._reference = reference

    def existing(self) -> DatasetLayout | None:
        """Return the current dataset of that name, seen from the pushed reference."""
        dataset = self._dataset()
        if dataset is None:
            return None
        return dataset.layout if self._reference is None else dataset.layout.on(self._reference)

    def stage(self, dataset_id: DatasetId) -> DatasetLayout:
        """Return the staging folder for a new dataset.

        Raises:
            Refusal: the workspace has the dataset under another name.
        """
        self._refuse_known(dataset_id)
        folder = staged_folder(self._storage, self._alias, dataset_id)
        make_folder(folder)
        return DatasetLayout.local(folder)

    def locate(self, dataset_id: DatasetId, file: ObjectFile) -> TransferUrl:
        """Return the URL to upload an object."""
        return self._urls.to_put(dataset_id, file)

    @contextmanager
    def receiving(self, dataset_id: DatasetId) -> Iterator[None]:
        """Protect uploaded objects that are in no chain yet from `odf gc`; the writer's lock is only taken for the
        commit.
        """
        dataset = self._dataset()
        folder = staged_folder(self._storage, self._alias, dataset_id) if dataset is None else dataset.folder
        with push_lock(self._storage.lock_of(folder), str(self._alias)):
            yield

    @contextmanager
    def writing(self, dataset_id: DatasetId) -> Iterator[None]:
        """Hold the dataset's lock."""
        dataset = self._dataset()
        if dataset is not None:
            with dataset.writing() as locked:
                self._require_new(locked)
                yield
            return
        folder = staged_folder(self._storage, self._alias, dataset_id)
        with writer_lock(self._storage.lock_of(folder), f"The new dataset {self._alias}"):
            yield

    def note_lacking(self, dataset_id: DatasetId) -> None:
        """Record that the dataset only has some of its files."""
        dataset = self._dataset()
        folder = staged_folder(self._storage, self._alias, dataset_id) if dataset is None else dataset.folder
        if choice_of(folder).is_whole:
            save_choice(folder, AVAILABLE)

    def publish(self, layout: DatasetLayout, dataset_id: DatasetId, visibility: WireVisibility) -> None:
        """Publish the new dataset under its name.

        Args:
            layout: the staging folder.
            dataset_id: id of the dataset.
            visibility: visibility of the new dataset.

        Raises:
            Refusal: the name or the dataset was taken in the meantime.
        """
        del layout
        folder = staged_folder(self._storage, self._alias, dataset_id)
        is_public = visibility is WireVisibility.PUBLIC
        # Set before the dataset appears, even if private, the default: a refused push may have left `public` behind.
        #
        set_visibility(folder, Visibility.PUBLIC if is_public else Visibility.PRIVATE)
        with self._storage.editing():
            try:
                self._storage.create(self._alias, dataset_id, folder)
            except AlreadyExists as error:
                self._refuse_known(dataset_id)
                raise Refusal(NameCollision(self._alias)) from error

    def _require_new(self, dataset: StoredDataset) -> None:
        name, refs = self._reference, dataset.layout.refs
        if name is None:
            return
        is_there = refs.get(name.reference) is not None
        created = name if is_there else name.other
        if self._must_be_new if is_there else refs.get(created.reference) is not None:
            raise ConcurrentUpdate(f"{created} was created by another client in the meantime")

    def _refuse_known(self, dataset_id: DatasetId) -> None:
        try:
            self._storage.get(dataset_id)
        except DatasetNotFound:
            return
        raise Refusal(RefCollision(dataset_id))

    def _dataset(self) -> StoredDataset | None:
        dataset = self._served.find(self._alias)
        return dataset if dataset is not None and dataset.workspace_folder is self._storage else None


def store_of(served: ServedRegistry, alias: DatasetAlias, grant: Grant) -> DatasetLayout | None:
    """Return the dataset that a URL refers to, complete or staged; None if it no longer exists.

    Args:
        served: datasets of the server.
        alias: name of the dataset.
        grant: the permission that the URL carries.
    """
    if not 0 <= grant.place < len(served.storages):
        return None
    storage = served.storages[grant.place]
    dataset = served.find(alias)
    if dataset is not None and dataset.workspace_folder is storage:
        # A URL may outlive its dataset, and another dataset may have the name by now.
        return dataset.layout if dataset.handle.id == grant.dataset_id else None
    folder = staged_folder(storage, alias, grant.dataset_id)
    return DatasetLayout.local(folder) if folder.is_dir() else None
