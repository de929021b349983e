"""Layout of a dataset: the locations of its parts (ODF specification, "Dataset Layout").

A dataset is a folder, in a workspace and in a repository alike:

    refs/head            the last block
    blocks/<hash>        metadata
    data/<hash>          slices
    checkpoints/<hash>   engine states
    packed/<hash>        linked files, compressed; only in workspaces, see `packed_objects`
    info/                additional files, which other implementations ignore
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.chain.metadata_chain import MetadataChain
from odfpy.chain.references import ReferenceName, ReferencesAtBlock, ReferenceView
from odfpy.chain.stores.checked_files import CheckedFiles
from odfpy.chain.stores.object_store import LocalObjectStore, MemoryObjectStore, ObjectStore
from odfpy.chain.stores.packed_objects import PACKED, PackingObjectStore
from odfpy.chain.stores.ref_store import LocalRefStore, MemoryRefStore, RefStore
from odfpy.chain.stores.side_files import LocalSideFiles, MemorySideFiles, SideFiles
from odfpy.data.multihash import Multihash
from odfpy.values import dataclass

if TYPE_CHECKING:
    from odfpy.chain.new_blocks import NewBlocks


@dataclass(frozen=True, slots=True)
class DatasetLayout:
    """The stores of one dataset.

    Attributes:
        side: files beside the chain, such as signatures; None for stores that do not support them.
    """

    refs: RefStore
    blocks: ObjectStore
    data: ObjectStore
    checkpoints: ObjectStore
    side: SideFiles | None = None

    @classmethod
    def local(
        cls, folder: Path, *, packs: Callable[[], bool] = lambda: False, checked: CheckedFiles | None = None
    ) -> DatasetLayout:
        """Return the layout of a dataset in a folder.

        Args:
            folder: folder of the dataset.
            packs: returns whether to compress linked files that become smaller.
            checked: record of slices that need not be hashed again before they are read.
        """
        return cls(
            LocalRefStore(folder / "refs"),
            LocalObjectStore(folder / "blocks"),
            PackingObjectStore(folder / "data", folder / PACKED, packs=packs, checked=checked),
            LocalObjectStore(folder / "checkpoints"),
            LocalSideFiles(folder),
        )

    @classmethod
    def in_memory(cls) -> DatasetLayout:
        """Return the layout of a dataset in memory."""
        return cls(MemoryRefStore(), MemoryObjectStore(), MemoryObjectStore(), MemoryObjectStore(), MemorySideFiles())

    @property
    def chain(self) -> MetadataChain:
        """The metadata chain."""
        return MetadataChain(self.blocks, self.refs)

    def on(self, name: ReferenceName) -> DatasetLayout:
        """Return the layout with a branch or tag as the head; see `ReferenceView`."""
        return replace(self, refs=ReferenceView(self.refs, name))

    def at(self, block: Multihash) -> DatasetLayout:
        """Return the layout of the dataset at a block."""
        return replace(self, refs=ReferencesAtBlock(self.refs, block))

    def witnessed(self, witness: Callable[[NewBlocks], None]) -> MetadataChain:
        """Return the metadata chain with a witness: a function that is called with blocks before they are committed."""
        return MetadataChain(self.blocks, self.refs, witness)

    def clean(self) -> None:
        """Remove temporary files of interrupted writers. The caller must hold the dataset's lock."""
        for store in (self.refs, self.blocks, self.data, self.checkpoints, self.side):
            if isinstance(store, (LocalRefStore, LocalObjectStore, LocalSideFiles)):
                store.clean()
