"""The datasets of a workspace: looked up, created, renamed and removed in its folder."""

from __future__ import annotations

import os
import secrets
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.coordinator.storage.locks import writer_lock
from odfpy.coordinator.storage.results import DamagedDataset
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.coordinator.storage.workspace_folder import WorkspaceFolder
from odfpy.dataset.identity import DID_ODF_PREFIX, DatasetId
from odfpy.dataset.names import (
    DatasetAlias,
    DatasetPattern,
    DatasetRef,
    all_of,
    did_you_mean_dataset,
    is_pattern,
    parse_ref,
)
from odfpy.errors import (
    AlreadyExists,
    DatasetNotFound,
    IntegrityError,
    InvalidValue,
    OdfError,
    UsageError,
)
from odfpy.files import make_way_for, replace_file, sync_folder

if TYPE_CHECKING:
    from odfpy.coordinator.storage.approvals import Approvals

__all__ = ["Storage", "StoredDataset", "is_folder_name"]


class Storage(WorkspaceFolder):
    """The folder of a workspace, with its datasets; used by most of the coordinator."""

    # --- Lookup ---

    def datasets(self) -> list[StoredDataset]:
        """Return all datasets whose names can be read, sorted by name."""
        return self.scan()[0]

    def scan(self) -> tuple[list[StoredDataset], list[DamagedDataset]]:
        """Return all datasets, sorted by name, and those without a readable or unique name.

        Raises:
            OdfError: the folder of the datasets cannot be read.
        """
        datasets, nameless = [], []
        for entry in self.entries():
            try:
                datasets.append(StoredDataset.load(entry, self))
            except OdfError as error:
                nameless.append(DamagedDataset(entry.name, error))
        counts = Counter(dataset.handle.alias for dataset in datasets)
        if len(counts) < len(datasets):
            twice = [dataset for dataset in datasets if counts[dataset.handle.alias] > 1]
            nameless += (DamagedDataset(dataset.folder.name, _same_name(dataset)) for dataset in twice)
            datasets = [dataset for dataset in datasets if counts[dataset.handle.alias] == 1]
        by_name = sorted(datasets, key=lambda dataset: str(dataset.handle).lower())
        return by_name, sorted(nameless, key=lambda dataset: dataset.name)

    def get(self, ref: DatasetRef | str) -> StoredDataset:
        """Return the dataset with an id or name.

        Raises:
            DatasetNotFound: the dataset does not exist; the message has a suggestion.
            UsageError: the text is neither an id nor a name, or refers to a block.
        """
        if not isinstance(ref, (str, DatasetId, DatasetAlias)):
            raise _no_name(ref)
        if isinstance(ref, str) and "@" in ref:
            raise UsageError(
                f"{ref} names a dataset at a block, which this command does not take",
                hint=f"`odf tail`, `log`, `verify`, `export`, `inspect schema` and `sql` do. Otherwise omit @ and the "
                f"text after it: {ref.partition('@')[0]}",
            )
        parsed = parse_ref(ref) if isinstance(ref, str) else ref
        if isinstance(parsed, DatasetId):
            folder = self.dataset_folder(parsed)
            if folder.is_dir():
                return StoredDataset.load(folder, self)
            raise self._no_such_id(parsed)
        if (again := self._find_cached(parsed)) is not None:
            return again
        datasets, nameless = self.scan()
        self._folders.update((dataset.handle.alias, dataset.folder) for dataset in datasets)
        for dataset in datasets:
            if dataset.handle.alias == parsed:
                return dataset
        for damaged in nameless:
            folder = self.odf / "datasets" / damaged.name
            if parsed in (last_known_name(folder), self._name_in(folder)):
                raise damaged.error
        names = [str(dataset.handle) for dataset in datasets]
        hint = did_you_mean_dataset(str(parsed), names, otherwise="`odf list` shows the datasets of the workspace.")
        if nameless:
            hint = f"{hint} It may also have lost its name: `odf list` shows damaged datasets."
        raise DatasetNotFound(f"No dataset {str(parsed)!r} in the workspace {self.root}", hint=hint)

    def get_at(self, ref: str) -> StoredDataset:
        """Return the dataset with an id or name, for reading; `NAME@BLOCK` is its state at a block, tag or branch.

        Raises:
            DatasetNotFound, BlockNotFound: the dataset or block does not exist; the message has a suggestion.
            UsageError: the reference is not a text.
        """
        if not isinstance(ref, str):
            raise _no_name(ref)
        name, at, block = ref.partition("@")
        dataset = self.get(name)
        if not at:
            return dataset
        from odfpy.coordinator.storage.references import find_block

        return dataset.at(find_block(dataset, block))

    def match(self, texts: str | Iterable[str], *, allow_at_block: bool = False) -> list[StoredDataset]:
        """Return the distinct datasets with the ids, names and patterns; `allow_at_block` permits `NAME@BLOCK`.

        Raises:
            DatasetNotFound: a name, or a pattern, matches nothing.
        """
        by_id: dict[DatasetId, StoredDataset] = {}
        for text in all_of(texts):
            if is_pattern(text):
                pattern = DatasetPattern(text)
                matching = [dataset for dataset in self.datasets() if pattern.matches(dataset.handle.alias)]
                if not matching:
                    hint = "`odf list` shows the datasets of the workspace; `%` stands for any text."
                    raise DatasetNotFound(f"No dataset matches the pattern {text!r}", hint=hint)
            else:
                matching = [self.get_at(text) if allow_at_block else self.get(text)]
            by_id.update((dataset.handle.id, dataset) for dataset in matching)
        return list(by_id.values())

    # --- Creation and removal ---

    @contextmanager
    def editing(self) -> Iterator[None]:
        """Hold the lock of the list of datasets, which is required to assign and remove names."""
        lock = self.run / "locks" / "workspace"
        with writer_lock(lock, f"The list of datasets in {self.root}", self.lock_patience):
            yield

    def create(self, alias: DatasetAlias, dataset_id: DatasetId, staged: Path) -> StoredDataset:
        """Move a complete dataset from a scratch folder into the workspace; requires `editing`.

        Args:
            alias: name of the dataset.
            dataset_id: id of the dataset.
            staged: the scratch folder with the dataset.

        Raises:
            AlreadyExists: the name or id is taken.
        """
        self.check_free(alias, dataset_id)
        # Write the name before the rename that makes the dataset visible: a folder without a name counts as damaged.
        self._write_alias(staged, alias)
        folder = self.dataset_folder(dataset_id)
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            staged.rename(folder)
        except OSError as error:
            hint = "If there is no dataset in it, move it away."
            raise OdfError(f"Cannot make {folder}: {error.strerror}", hint=hint) from error
        sync_folder(folder.parent)
        return StoredDataset.load(folder, self)

    def check_free(self, alias: DatasetAlias, dataset_id: DatasetId | None = None) -> None:
        """Check that a name and an id are not in use.

        Raises:
            AlreadyExists: the name or id is in use.
        """
        for dataset in self.datasets():
            if dataset.handle.alias == alias:
                raise AlreadyExists(
                    f"A dataset {str(dataset.handle)!r} already exists",
                    hint="Choose another name, or change the existing one with `odf add --replace`.",
                )
            if dataset.handle.id == dataset_id:
                raise AlreadyExists(
                    f"The dataset {dataset_id} already exists as {str(dataset.handle)!r}",
                    hint=f"`odf pull {dataset.handle}` updates it, `odf rename` gives it another name.",
                )

    def rename(self, dataset: StoredDataset, alias: DatasetAlias) -> StoredDataset:
        """Rename a dataset; requires `editing`."""
        if alias != dataset.handle.alias:
            self.check_free(alias)
        self._write_alias(dataset.folder, alias)
        self._touch_datasets_folder()
        return StoredDataset.load(dataset.folder, self)

    def restore_name(self, dataset_id: DatasetId, alias: DatasetAlias) -> StoredDataset:
        """Assign a name to a dataset that has lost its own; requires `editing`.

        Raises:
            AlreadyExists: the name is in use.
        """
        folder = self.dataset_folder(dataset_id)
        if not folder.is_dir():
            raise self._no_such_id(dataset_id)
        self.check_free(alias)
        self._write_alias(folder, alias)
        self._touch_datasets_folder()
        return StoredDataset.load(folder, self)

    def has_no_name(self, ref: str) -> bool:
        """Return whether the text is the id of a dataset without a readable name."""
        return ref.startswith(DID_ODF_PREFIX) and any(
            f"{DID_ODF_PREFIX}{damaged.name}" == ref for damaged in self.scan()[1]
        )

    def delete(self, dataset: StoredDataset) -> Path | None:
        """Remove a dataset, its cache and its key; requires `editing` and the dataset's lock.

        Returns:
            The folder of files that could not be removed, although the dataset no longer exists; None if there are
            none.
        """
        # First: after a crash, a dataset remains whose source must be approved again. In another order, an approval
        # could remain for a deleted dataset, and would apply to a later copy of it.
        self.approvals.withdraw(dataset.handle.id)
        doomed = self.scratches / f"deleted-{secrets.token_hex(4)}"
        doomed.parent.mkdir(parents=True, exist_ok=True)
        dataset.folder.rename(doomed)  # becomes invisible atomically, then is removed
        sync_folder(dataset.folder.parent)  # otherwise a power loss could restore an incomplete folder
        shutil.rmtree(doomed, ignore_errors=True)
        shutil.rmtree(self.cache_of(dataset.handle.id), ignore_errors=True)
        # After the folder: a crash in between leaves an unused key. In the other order, it would leave a dataset that
        # cannot sign.
        self.keys.delete(dataset.handle.id)
        return doomed if doomed.exists() else None

    @property
    def approvals(self) -> Approvals:
        """Return the approvals of sources."""
        from odfpy.coordinator.storage.approvals import Approvals  # only needed for sources

        return Approvals(self)

    # --- Helpers ---

    @property
    def names_changed(self) -> int:
        """Return when a name was last assigned or removed, in nanoseconds since 1970; 0 if unknown."""
        try:
            return (self.odf / "datasets").stat().st_mtime_ns
        except OSError:
            return 0

    def _touch_datasets_folder(self) -> None:
        """Update `names_changed` after a change within a dataset's folder; new and removed folders update it anyway."""
        with suppress(OSError):
            os.utime(self.odf / "datasets")

    @cached_property
    def _folders(self) -> dict[DatasetAlias, Path]:
        """Cache of the folders of datasets by name: scanning ten thousand folders takes a second."""
        return {}

    def _find_cached(self, alias: DatasetAlias) -> StoredDataset | None:
        """Return the dataset with a name from its cached folder; None if it is not cached, or has another name now."""
        folder = self._folders.get(alias)
        if folder is not None:
            with suppress(OdfError):
                dataset = StoredDataset.load(folder, self)
                return dataset if dataset.handle.alias == alias else None
        return None

    def _name_in(self, folder: Path) -> DatasetAlias | None:
        with suppress(OdfError):
            return StoredDataset.load(folder, self).handle.alias
        return None

    def _no_such_id(self, dataset_id: DatasetId) -> DatasetNotFound:
        return DatasetNotFound(
            f"No dataset with the id {dataset_id} in the workspace {self.root}", hint="`odf list --wide` shows the ids."
        )

    @staticmethod
    def _write_alias(folder: Path, alias: DatasetAlias) -> None:
        file = folder / "info" / "alias"
        try:
            make_way_for(file)
        except OSError as error:
            raise OdfError(f"Cannot write {file}: {error.strerror}") from error
        replace_file(file, f"{alias}\n".encode())


def is_folder_name(name: str) -> bool:
    """Return whether a name is valid for the folder of a dataset, or of its cache."""
    try:
        DatasetId.parse(DID_ODF_PREFIX + name)
    except InvalidValue:
        return False
    return True


def last_known_name(folder: Path) -> DatasetAlias | None:
    """Return the name of a dataset at its last push or else pull, without an account; None if unknown."""
    from odfpy.repository.registry import Aliases  # only needed for datasets without a name

    with suppress(OdfError):
        known = Aliases.of(folder)
        for place in (*known.list("push"), *known.list("pull")):
            with suppress(OdfError):
                return DatasetAlias.parse(place.rstrip("/").rpartition("/")[2])
    return None


def _same_name(dataset: StoredDataset) -> IntegrityError:
    handle = dataset.handle
    return IntegrityError(
        f"{handle.id} has the name {handle}, which another dataset also has",
        hint=f"Give one of them another name: `odf rename {handle.id} NAME`.",
    )


def _no_name(ref: object) -> UsageError:
    return UsageError(
        f"A dataset is known by its name or id, a text, and {ref!r:.100} is a value of type {type(ref).__name__}",
        hint="`odf list` shows the datasets of the workspace.",
    )
