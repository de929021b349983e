"""A dataset of a workspace, with its stores, chain and lock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.metadata_chain import MetadataChain
from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.chain.state import ChainState
from odfpy.chain.stores.checked_files import CheckedFiles
from odfpy.coordinator.storage.locks import no_pushes, writer_lock
from odfpy.coordinator.storage.results import DatasetHandle
from odfpy.coordinator.storage.workspace_folder import WorkspaceFolder
from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import DID_ODF_PREFIX, DatasetId
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import DatasetLocked, HashMismatch, IntegrityError, InvalidValue, OdfError, UsageError
from odfpy.files import read_regular
from odfpy.stages import stage
from odfpy.values import dataclass

if TYPE_CHECKING:
    from odfpy.chain.new_blocks import NewBlocks

_RESTORE = (
    "`odf verify {} --repair` fetches it from a repository that has the dataset. Or restore the dataset from a backup."
)


def inputs_in(state: ChainState) -> list[DatasetId]:
    """Return the ids of the direct inputs of a dataset in a given state."""
    inputs = state.set_transform.inputs if state.set_transform else ()
    return [item.dataset_ref for item in inputs if isinstance(item.dataset_ref, DatasetId)]


@dataclass(frozen=True)
class StoredDataset:
    """A dataset in the workspace's folder, opened at its head, on a branch, or at an earlier block.

    Attributes:
        branch: the branch, None for the head.
        block: the earlier block, None for the latest.
    """

    handle: DatasetHandle
    folder: Path
    workspace_folder: WorkspaceFolder
    branch: ReferenceName | None = None
    block: Multihash | None = None

    @classmethod
    def load(cls, folder: Path, workspace_folder: WorkspaceFolder) -> StoredDataset:
        """Return the dataset in a folder, with its local name.

        Raises:
            IntegrityError: the dataset has no readable name, or the folder is not that of a dataset.
        """
        path = folder / "info" / "alias"
        try:
            dataset_id = DatasetId.parse(DID_ODF_PREFIX + folder.name)
        except InvalidValue as error:
            raise IntegrityError(
                f"Damaged workspace: {folder} is not named by the id of a dataset", hint="Move it out of the workspace."
            ) from error
        try:
            alias = DatasetAlias.parse(read_regular(path).decode().strip())
        except (OSError, InvalidValue, UnicodeDecodeError) as error:
            raise IntegrityError(
                f"Damaged workspace: {path} does not hold the name of a dataset",
                hint=f"`odf rename {dataset_id} NAME` gives it a name; `odf verify --repair {dataset_id}` restores"
                " the name of its last pull or push.",
            ) from error
        return cls(DatasetHandle(dataset_id, alias), folder, workspace_folder)

    @property
    def layout(self) -> DatasetLayout:
        """Return the stores of the dataset."""
        layout = DatasetLayout.local(self.folder, packs=self._packs, checked=self.checked_files)
        if self.block is not None:
            return layout.at(self.block)
        return layout if self.branch is None else layout.on(self.branch)

    @cached_property
    def checked_files(self) -> CheckedFiles:
        """Return the record of slices that need not be hashed again before they are read."""
        return CheckedFiles(self.workspace_folder.readers_cache / self.handle.id.multibase / "checked-files")

    def _packs(self) -> bool:
        from odfpy.coordinator.storage.config import Config
        from odfpy.settings.sections import ArchiveSection

        return Config.load(self.workspace_folder.root).section(ArchiveSection).compression != "plain"

    @property
    def cache(self) -> Path:
        """Return the folder for data that can be recomputed; each branch has its own."""
        folder = self.workspace_folder.cache_of(self.handle.id)
        return folder if self.branch is None else folder / "branches" / self.branch.name

    def on(self, branch: str | None) -> StoredDataset:
        """Return the dataset opened on a branch, or at its head if the branch is None; a new branch begins at the head.

        Raises:
            InvalidValue: the name is invalid.
        """
        name = None if branch is None else ReferenceName.there(ReferenceKind.BRANCH, branch)
        return replace(self, branch=name, block=None)

    def at(self, block: Multihash) -> StoredDataset:
        """Return the dataset as of a block, for reading."""
        return replace(self, branch=None, block=block)

    @property
    def chain(self) -> MetadataChain:
        """Return the metadata chain; commits to it are signed."""
        folder, layout = self.workspace_folder, self.layout
        return layout.witnessed(lambda new: folder.signing.sign(layout, lambda: folder.keys.get(self.handle.id), new))

    def sign_blocks(self, new: NewBlocks) -> None:
        """Sign blocks that will be followed by others, before the head moves."""
        folder = self.workspace_folder
        folder.signing.sign(self.layout, lambda: folder.keys.get(self.handle.id), new, with_head=False)

    def sign_head(self, block: HashedBlock) -> None:
        """Sign the move of the head to an already signed block."""
        folder = self.workspace_folder
        folder.signing.sign_head(self.layout, self.handle.id, lambda: folder.keys.get(self.handle.id), block)

    @cached_property
    def state(self) -> ChainState:
        """Return the state of the chain as of the first access; use `reloaded` to see later commits."""
        try:
            # Do not use the cache for an older block: its state could replace that of the head in the only file.
            with stage("read chain"):
                if self.block:
                    return self.chain.state()
                return self.workspace_folder.chain_cache.summed_up(self.chain, self.cache / "chain-state")
        except OdfError as error:
            raise self.named(error) from error

    def named(self, error: OdfError) -> OdfError:
        """Return the error with the dataset's name before its message, and with a hint."""
        hint = error.hint if error.hint and not isinstance(error, HashMismatch) else _RESTORE.format(self.handle)
        return error.with_message(f"{self.handle}: {error.message}", hint=hint)

    @property
    def input_ids(self) -> list[DatasetId]:
        """Return the ids of the inputs; none for a root dataset."""
        return inputs_in(self.state)

    def number_in_history(self, block: Multihash) -> int | None:
        """Return the sequence number of a block in the dataset's history, None if the history does not contain it."""
        if block not in self.layout.blocks:
            return None
        # The block may be left over from another history, so walk back from the head.
        number = self.chain.block(block).block.sequence_number
        for hashed in self.chain.iter_blocks():
            if hashed.block.sequence_number <= number:
                return number if hashed.hash == block else None
        return None

    def reloaded(self) -> StoredDataset:
        """Return the dataset without cached state."""
        return replace(self)

    @contextmanager
    def writing(self) -> Iterator[StoredDataset]:
        """Hold the dataset's lock during the block; yield the reloaded dataset.

        Raises:
            DatasetLocked: another process is writing.
            UsageError: the dataset is opened at an earlier block.
        """
        if self.block is not None:
            raise UsageError(
                f"{self.handle} as of block {self.block} cannot be changed",
                hint="Omit @ and the text after it.",
            )
        lock = self.workspace_folder.lock_of(self.folder)
        with writer_lock(lock, f"Dataset {self.handle}", self.workspace_folder.lock_patience) as was_abandoned:
            if was_abandoned:
                # Running pushes have temporary files, too; left-overs then remain until `odf gc`.
                with suppress(DatasetLocked), no_pushes(lock, f"Dataset {self.handle}"):
                    self._tidy_up()
            yield self.reloaded()

    def _tidy_up(self) -> None:
        """Remove files left by a killed writer; requires the dataset's lock."""
        DatasetLayout.local(self.folder).clean()
        self.workspace_folder.sweep()
