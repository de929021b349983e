"""The dataset resolver: how the query service finds a dataset at a block by its name.

There is one for a workspace (`odfpy.coordinator.reading.read`), and one for each caller of a server.
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
        """Return the id of the dataset."""

    @property
    def alias(self) -> DatasetAlias:
        """Return the local name of the dataset."""


class Dataset(Protocol):
    """A dataset as it was at some block, or as it is now."""

    @property
    def handle(self) -> Handle:
        """Return which dataset."""

    @property
    def layout(self) -> DatasetLayout:
        """Return the stores of the dataset."""

    @property
    def chain(self) -> MetadataChain:
        """Return the metadata chain up to that block."""

    @property
    def state(self) -> ChainState:
        """Return the state of the chain."""


class DatasetResolver(Protocol):
    """Names and ids resolved to datasets at a block, and places for files."""

    def find(self, name: str | DatasetId) -> Dataset:
        """Return the dataset of a name or id; `NAME@BLOCK` is the dataset at a block, tag or branch.

        Raises:
            DatasetNotFound: with a suggestion.
            BlockNotFound: it has no such block.
        """

    def at(self, dataset: Dataset, block: Multihash) -> Dataset:
        """Return the dataset as it was at a block."""

    def find_block(self, dataset: Dataset, text: str) -> Multihash:
        """Return the block that a tag, branch, hash, prefix of a hash or number names.

        Raises:
            BlockNotFound: it has no such block.
        """

    def owner(self, block: Multihash) -> str | None:
        """Return the name of a dataset that has a block."""

    def names(self) -> list[str]:
        """Return the names of all datasets."""

    @property
    def listing(self) -> str:
        """Return which datasets there are, for hints: the beginning of a sentence."""

    def scratch(self) -> AbstractContextManager[Path]:
        """Provide a new folder, which is removed afterwards."""

    def schema_file(self, schema: DataSchema) -> Path:
        """Return a Parquet file without rows that has a schema."""
