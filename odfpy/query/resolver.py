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
        """Its id."""

    @property
    def alias(self) -> DatasetAlias:
        """The name it goes by here."""


class Dataset(Protocol):
    """A dataset as it was at some block, or as it is now."""

    @property
    def handle(self) -> Handle:
        """Return which dataset."""

    @property
    def layout(self) -> DatasetLayout:
        """Its stores."""

    @property
    def chain(self) -> MetadataChain:
        """Its metadata chain, up to that block."""

    @property
    def state(self) -> ChainState:
        """Return the state of the chain."""


class DatasetResolver(Protocol):
    """Names and ids resolved to datasets at a block, and places for files."""

    def find(self, name: str | DatasetId) -> Dataset:
        """The dataset of that name or id; `NAME@BLOCK` is what it was at a block, tag or branch.

        Raises:
            DatasetNotFound: with a suggestion.
            BlockNotFound: it has no such block.
        """

    def at(self, dataset: Dataset, block: Multihash) -> Dataset:
        """The dataset as it was at a block."""

    def find_block(self, dataset: Dataset, text: str) -> Multihash:
        """The block that a tag, branch, hash, beginning of a hash or number means.

        Raises:
            BlockNotFound: it has no such block.
        """

    def owner(self, block: Multihash) -> str | None:
        """The name of a dataset that has a block."""

    def names(self) -> list[str]:
        """The names of all datasets."""

    @property
    def listing(self) -> str:
        """Return which datasets there are, for hints: the beginning of a sentence."""

    def scratch(self) -> AbstractContextManager[Path]:
        """A new folder, removed at the end."""

    def schema_file(self, schema: DataSchema) -> Path:
        """A Parquet file without rows that has a schema."""
