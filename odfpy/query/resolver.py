"""The interface of dataset resolvers, by which the query service looks up datasets at a block by name.

There is one for a workspace (`odfpy.coordinator.reading.read`), and one per caller of a server.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.metadata_chain import MetadataChain
from odfpy.chain.state import ChainState
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.schema import DataSchema
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import DatasetAlias


class Handle(Protocol):
    """The identity of a dataset."""

    @property
    def id(self) -> DatasetId:
        """The id of the dataset."""

    @property
    def alias(self) -> DatasetAlias:
        """The local name of the dataset."""


class Dataset(Protocol):
    """A dataset at a block or at its head."""

    @property
    def handle(self) -> Handle:
        """The identity of the dataset."""

    @property
    def layout(self) -> DatasetLayout:
        """The stores of the dataset."""

    @property
    def chain(self) -> MetadataChain:
        """The metadata chain up to that block."""

    @property
    def state(self) -> ChainState:
        """The state of the chain."""


class DatasetResolver(Protocol):
    """Lookup of datasets by name or id, and provision of temporary files."""

    def find(self, name: str | DatasetId) -> Dataset:
        """Return the dataset with a name or id; `NAME@BLOCK` is the dataset at a block, tag or branch.

        Raises:
            DatasetNotFound: the dataset does not exist; the hint suggests one.
            BlockNotFound: the dataset has no such block.
        """

    def at(self, dataset: Dataset, block: Multihash) -> Dataset:
        """Return the dataset at a block."""

    def find_block(self, dataset: Dataset, text: str) -> Multihash:
        """Return the block for a tag, branch, hash, prefix of a hash, or number.

        Raises:
            BlockNotFound: the dataset has no such block.
        """

    def owner(self, block: Multihash) -> str | None:
        """Return the name of the dataset that has a block; None if there is none."""

    def names(self) -> list[str]:
        """Return the names of all datasets."""

    @property
    def listing(self) -> str:
        """The names of the datasets, as the beginning of a sentence for hints."""

    def scratch(self) -> AbstractContextManager[Path]:
        """Provide a new folder, which is removed afterwards."""

    def schema_file(self, schema: DataSchema) -> Path:
        """Return a Parquet file without rows, with the given schema."""
