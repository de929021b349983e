"""The workspace's folder, and which datasets it has.

.odf/version                    version of this layout
.odf/config.yaml                settings
.odf/datasets/<id>/             one dataset each, laid out as in a repository
.odf/datasets/<id>/info/alias   the name it goes by here
.odf/keys/<id>                  private keys, mode 0600
.odf/approved/<id>              which sources may run here
.odf/repos/                     named repositories
.odf/cache/                     what can be rebuilt
.odf/run/                       locks, the engine's socket, scratch files
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.coordinator.storage.key_store import KeyStore
from odfpy.coordinator.storage.locks import writer_lock
from odfpy.coordinator.storage.results import DamagedDataset, DatasetHandle
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.dataset.identity import DID_ODF_PREFIX, DatasetId
from odfpy.dataset.names import DatasetAlias, DatasetPattern, DatasetRef, is_pattern, parse_ref
from odfpy.errors import (
    AlreadyExists,
    DatasetNotFound,
    IntegrityError,
    InvalidValue,
    OdfError,
    UnsupportedVersion,
    UsageError,
    WorkspaceNotFound,
    did_you_mean,
)
from odfpy.files import put_aside, replace_file, sync_folder

if TYPE_CHECKING:
    from odfpy.coordinator.storage.approvals import Approvals
    from odfpy.coordinator.storage.signing import Signing

__all__ = ["Storage", "StoredDataset", "is_folder_name"]

ODF_FOLDER = ".odf"
LAYOUT_VERSION = "1"


class Storage:
    """The folder of a workspace.

    Attributes:
        root: the folder that the person works in.
        odf: the folder `.odf` in it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.odf = root / ODF_FOLDER

    @classmethod
    def find(cls, folder: Path) -> Storage:
        """The workspace that a folder is in.

        Raises:
            WorkspaceNotFound: there is none.
            UnsupportedVersion: a newer release has made it.
        """
        start = folder.resolve()
        for candidate in (start, *start.parents):
            version = candidate / ODF_FOLDER / "version"
            if version.is_file():
                found = _version_in(version)
                if found != LAYOUT_VERSION:
                    raise UnsupportedVersion(
                        f"The workspace in {candidate} has layout version {found!r}, this release knows"
                        f" {LAYOUT_VERSION}",
                        hint="Use a newer release of odfpy.",
                    )
                return cls(candidate)
        raise WorkspaceNotFound(
            f"No workspace in {start} or any folder above it", hint="Make one here with `odf init`."
        )

    @property
    def run(self) -> Path:
        """Folder of locks, sockets and scratch files."""
        return self.odf / "run"

    @property
    def batch_run(self) -> Path:
        """The same of engines that give a second opinion, and end with the verification that has started them."""
        return self.odf / "run-batch"

    @property
    def cache(self) -> Path:
        """Folder of what can be rebuilt."""
        return self.odf / "cache"

    @property
    def incoming(self) -> Path:
        """Folder of copies from elsewhere that are under way; each has a lock of its name."""
        return self.cache / "incoming"

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A new empty folder on the same file system as the datasets, removed at the end."""
        folder = self._scratch / f"{os.getpid()}-{secrets.token_hex(4)}"
        try:
            folder.mkdir(parents=True)
            self.sweep()
            yield folder
        except PermissionError as error:
            raise OdfError(f"No permission to write {error.filename or folder}") from error
        finally:
            _remove(folder)

    def sweep(self) -> None:
        """Remove the scratch folders of processes that were killed."""
        for folder in self.abandoned():
            shutil.rmtree(folder, ignore_errors=True)

    def abandoned(self) -> list[Path]:
        """The scratch folders of processes that were killed, and what is left of datasets that were deleted."""
        folders = sorted(self._scratch.iterdir()) if self._scratch.is_dir() else []
        owners = [(folder, folder.name.partition("-")[0]) for folder in folders]
        return [folder for folder, owner in owners if not owner.isdigit() or not Path("/proc", owner).exists()]

    @property
    def _scratch(self) -> Path:
        return self.run / "scratch"

    # --- Looking up ---

    def datasets(self) -> list[StoredDataset]:
        """All datasets whose names can be read, in the order of their names."""
        return self.scan()[0]

    def scan(self) -> tuple[list[StoredDataset], list[DamagedDataset]]:
        """All datasets in the order of their names, and those that have no readable name.

        Raises:
            OdfError: the folder of the datasets cannot be read.
        """
        found, nameless = [], []
        for entry in self.entries():
            try:
                found.append(self._load(entry))
            except OdfError as error:
                nameless.append(DamagedDataset(entry.name, error))
        by_name = sorted(found, key=lambda dataset: str(dataset.handle).lower())
        return by_name, sorted(nameless, key=lambda dataset: dataset.name)

    def entries(self) -> list[Path]:
        """The folders of all datasets, also of damaged ones.

        Raises:
            OdfError: they cannot be listed.
        """
        folder = self.odf / "datasets"
        try:
            with os.scandir(folder) as entries:
                return [Path(entry.path) for entry in entries if not entry.name.startswith(".")]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise OdfError(f"Cannot read {folder}: {error.strerror}") from error

    def get(self, ref: DatasetRef | str) -> StoredDataset:
        """The dataset of that id or name.

        Raises:
            DatasetNotFound: with a suggestion.
        """
        if isinstance(ref, str) and "@" in ref:
            raise UsageError(
                f"{ref} is what a dataset was at a block, which can be looked at and not be changed",
                hint=f"Leave out @ and what follows it: {ref.partition('@')[0]}",
            )
        parsed = parse_ref(ref) if isinstance(ref, str) else ref
        if isinstance(parsed, DatasetId):
            folder = self._folder(parsed)
            if folder.is_dir():
                return self._load(folder)
            raise self._no_such_id(parsed)
        datasets, nameless = self.scan()
        for dataset in datasets:
            if dataset.handle.alias == parsed:
                return dataset
        if nameless:
            from odfpy.coordinator.storage.lost_names import lost_name_of

            for damaged in nameless:
                if lost_name_of(self.odf / "datasets" / damaged.name) == parsed:
                    raise damaged.error
        names = [str(dataset.handle) for dataset in datasets]
        hint = did_you_mean(str(parsed), names, otherwise="`odf list` shows the datasets of the workspace.")
        if nameless:
            hint = f"{hint} Or has it lost its name? `odf list` shows what is damaged."
        raise DatasetNotFound(f"No dataset {str(parsed)!r} in the workspace {self.root}", hint=hint)

    def look(self, ref: str) -> StoredDataset:
        """The dataset of that id or name, to look at; with `NAME@BLOCK` as it was at a block, tag or branch.

        Raises:
            DatasetNotFound, BlockNotFound: with a suggestion.
        """
        name, at, block = ref.partition("@")
        dataset = self.get(name)
        if not at:
            return dataset
        from odfpy.coordinator.storage.references import find_block

        return dataset.at(find_block(dataset, block))

    def match(self, texts: tuple[str, ...] | list[str], *, to_look_at: bool = False) -> list[StoredDataset]:
        """The datasets of some ids, names and patterns, each once; `to_look_at` allows for `NAME@BLOCK`.

        Raises:
            DatasetNotFound: a name, or a pattern that fits nothing.
        """
        found: dict[DatasetId, StoredDataset] = {}
        for text in texts:
            if is_pattern(text):
                pattern = DatasetPattern(text)
                matching = [dataset for dataset in self.datasets() if pattern.matches(dataset.handle.alias)]
                if not matching:
                    raise DatasetNotFound(f"No dataset fits the pattern {text!r}")
            else:
                matching = [self.look(text) if to_look_at else self.get(text)]
            found.update((dataset.handle.id, dataset) for dataset in matching)
        return list(found.values())

    # --- Making and removing ---

    @contextmanager
    def editing(self) -> Iterator[None]:
        """Hold the lock of the list of datasets: names are given and taken under it."""
        with writer_lock(self.run / "locks" / "workspace", f"The list of datasets in {self.root}"):
            yield

    def create(self, alias: DatasetAlias, dataset_id: DatasetId, staged: Path) -> StoredDataset:
        """Move a complete dataset from a scratch folder into the workspace; call it under `editing`.

        Raises:
            AlreadyExists: name or id are taken.
        """
        self.check_free(alias, dataset_id)
        self._write_alias(staged, alias)
        folder = self._folder(dataset_id)
        folder.parent.mkdir(parents=True, exist_ok=True)
        staged.rename(folder)
        sync_folder(folder.parent)
        return self._load(folder)

    def check_free(self, alias: DatasetAlias, dataset_id: DatasetId | None = None) -> None:
        """Check that a name and an id are not taken.

        Raises:
            AlreadyExists: one of them is.
        """
        for dataset in self.datasets():
            if dataset.handle.alias == alias:
                raise AlreadyExists(
                    f"A dataset {str(dataset.handle)!r} is there already",
                    hint="Choose another name, or change the existing one with `odf add --replace`.",
                )
            if dataset.handle.id == dataset_id:
                raise AlreadyExists(
                    f"The dataset {dataset_id} is there already, as {str(dataset.handle)!r}",
                    hint=f"`odf pull {dataset.handle}` brings that up to date, `odf rename` gives it another name.",
                )

    def rename(self, dataset: StoredDataset, alias: DatasetAlias) -> StoredDataset:
        """Give a dataset another name; call it under `editing`."""
        if alias != dataset.handle.alias:
            self.check_free(alias)
        self._write_alias(dataset.folder, alias)
        return self._load(dataset.folder)

    def name_again(self, dataset_id: DatasetId, alias: DatasetAlias) -> StoredDataset:
        """Give a name to a dataset that has lost its own; call it under `editing`.

        Raises:
            AlreadyExists: the name is taken.
        """
        folder = self._folder(dataset_id)
        if not folder.is_dir():
            raise self._no_such_id(dataset_id)
        self.check_free(alias)
        self._write_alias(folder, alias)
        return self._load(folder)

    def has_lost_its_name(self, ref: str) -> bool:
        """Return whether that is the id of a dataset without a readable name."""
        return ref.startswith(DID_ODF_PREFIX) and any(
            f"{DID_ODF_PREFIX}{damaged.name}" == ref for damaged in self.scan()[1]
        )

    def delete(self, dataset: StoredDataset) -> None:
        """Remove a dataset, its cache and its key; call it under `editing` and the dataset's lock."""
        doomed = self._scratch / f"deleted-{secrets.token_hex(4)}"
        doomed.parent.mkdir(parents=True, exist_ok=True)
        dataset.folder.rename(doomed)  # gone at once for everybody, then removed at leisure
        sync_folder(dataset.folder.parent)  # or a power loss would bring back what is half removed
        shutil.rmtree(doomed, ignore_errors=True)
        shutil.rmtree(self.cache_of(dataset.handle.id), ignore_errors=True)
        self.keys.delete(dataset.handle.id)
        self.approvals.withdraw(dataset.handle.id)

    def cache_of(self, dataset_id: DatasetId) -> Path:
        """Folder for what can be rebuilt about a dataset."""
        return self.cache / dataset_id.multibase

    @property
    def keys(self) -> KeyStore:
        """The private keys of the datasets."""
        return KeyStore(self.odf / "keys")

    @property
    def approvals(self) -> Approvals:
        """Return which sources may run."""
        from odfpy.coordinator.storage.approvals import Approvals  # only who runs sources pays for importing it

        return Approvals(self)

    @cached_property
    def signing(self) -> Signing:
        """Return what signs commits."""
        from odfpy.coordinator.storage.signing import Signing  # only writers pay for importing it

        return Signing(self.root)

    # --- Pieces ---

    def _no_such_id(self, dataset_id: DatasetId) -> DatasetNotFound:
        return DatasetNotFound(
            f"No dataset with the id {dataset_id} in the workspace {self.root}", hint="`odf list --wide` shows the ids."
        )

    def _folder(self, dataset_id: DatasetId) -> Path:
        return self.odf / "datasets" / dataset_id.multibase

    def _load(self, folder: Path) -> StoredDataset:
        path = folder / "info" / "alias"
        try:
            dataset_id = DatasetId.parse(DID_ODF_PREFIX + folder.name)
        except InvalidValue as error:
            raise IntegrityError(
                f"Damaged workspace: {folder} is not named by the id of a dataset", hint="Move it elsewhere."
            ) from error
        try:
            alias = DatasetAlias.parse(path.read_text(encoding="utf-8").strip())
        except (OSError, InvalidValue, UnicodeDecodeError) as error:
            raise IntegrityError(
                f"Damaged workspace: {path} does not hold the name of a dataset",
                hint=f"`odf rename {dataset_id} NAME` gives it a name again; `odf verify --repair {dataset_id}` the one"
                " by which it was pulled or pushed last.",
            ) from error
        return StoredDataset(DatasetHandle(dataset_id, alias), folder, self)

    @staticmethod
    def _write_alias(folder: Path, alias: DatasetAlias) -> None:
        file = folder / "info" / "alias"
        try:
            put_aside(file)
        except OSError as error:
            raise OdfError(f"Cannot write {file}: {error.strerror}") from error
        replace_file(file, f"{alias}\n".encode())


def _remove(folder: Path) -> None:
    """Remove a folder, even if the person interrupts that."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except KeyboardInterrupt:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _version_in(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError as error:
        raise OdfError(f"Cannot read {file}: {error.strerror}") from error


def is_folder_name(name: str) -> bool:
    """Return whether that could be the folder of a dataset, or of its cache."""
    try:
        DatasetId.parse(DID_ODF_PREFIX + name)
    except InvalidValue:
        return False
    return True
