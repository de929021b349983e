"""Where the parts of a dataset are (ODF specification, "Dataset Layout").

A dataset is a folder, in a workspace and in a repository alike:

    refs/head            the last block
    blocks/<hash>        metadata
    data/<hash>          slices
    checkpoints/<hash>   engine states
    info/                local extras, unknown and harmless to others
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from odfpy.chain.metadata_chain import MetadataChain
from odfpy.chain.object_store import LocalObjectStore, MemoryObjectStore, ObjectStore
from odfpy.chain.ref_store import LocalRefStore, MemoryRefStore, RefStore


@dataclass(frozen=True, slots=True)
class DatasetLayout:
    """The stores of one dataset."""

    refs: RefStore
    blocks: ObjectStore
    data: ObjectStore
    checkpoints: ObjectStore

    @classmethod
    def local(cls, folder: Path) -> DatasetLayout:
        """A dataset in a folder."""
        return cls(
            LocalRefStore(folder / "refs"),
            LocalObjectStore(folder / "blocks"),
            LocalObjectStore(folder / "data"),
            LocalObjectStore(folder / "checkpoints"),
        )

    @classmethod
    def in_memory(cls) -> DatasetLayout:
        """A dataset in memory."""
        return cls(MemoryRefStore(), MemoryObjectStore(), MemoryObjectStore(), MemoryObjectStore())

    @property
    def chain(self) -> MetadataChain:
        """The metadata chain."""
        return MetadataChain(self.blocks, self.refs)
