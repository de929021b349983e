"""The key index of a dataset, in which merges look up keys: stored in its cache, bound to the head of its chain.

The index is opened before a merge and extended after the commit. If it is missing or unusable, it is rebuilt from the
slices. If it is out of date, it is extended with the missing slices: those of the blocks between the chain's head and
the block that the index belongs to. If all that fails, keys are looked up in the slices themselves.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.chain.slices import slice_paths, slices_of
from odfpy.chain.sources import MergeStrategy
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.schema import DataSchema
from odfpy.errors import OdfError
from odfpy.state.database import SharedDatabase

if TYPE_CHECKING:
    from typing_extensions import Self

    from odfpy.ingest.pipeline import IngestTarget
    from odfpy.state.current import KeyedState, ScannedState
    from odfpy.state.indexed import IndexedState
    from odfpy.state.key_index import IndexPurpose, KeyIndex


class DatasetKeys:
    """The keys of a dataset, for lookups by a merge strategy; requires the dataset's lock.

    Attributes:
        database: the database for lookups, shared by the merge and the update of the index.
    """

    def __init__(self, dataset: StoredDataset, strategy: MergeStrategy, scratch: Path) -> None:
        """
        Args:
            dataset: the dataset.
            strategy: its merge strategy.
            scratch: folder for data that does not fit into memory.
        """
        self._dataset = dataset
        self.database = SharedDatabase(scratch=scratch / "database")
        self._purpose = _purpose(dataset, strategy)
        self._answering: IndexedState | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.database.close()

    def state(self, schema: DataSchema) -> KeyedState:
        """Return the state at the head of the dataset.

        Args:
            schema: schema of the dataset, including columns of the new rows.

        Raises:
            OdfError: the index is not available, and a slice is missing.
        """
        from odfpy.state.current import ScannedState

        recorded = self._dataset.state.schema
        if self._purpose is None or self._dataset.state.last_offset is None:
            return ScannedState([], schema, self._dataset.state.vocab)  # no rows, or a strategy without lookups
        index = self._up_to_date(self._dataset.state.head, recorded)
        if index is None:
            return self._scanned(schema)
        from odfpy.state.indexed import IndexedState

        self._answering = IndexedState(index, schema, lambda: self._scanned(schema))
        return self._answering

    def target(self, schema: DataSchema | None = None) -> IngestTarget:
        """Return the dataset as the target of an ingest, with its keys.

        Args:
            schema: the schema after the commit; None for the current one.
        """
        from odfpy.ingest.pipeline import IngestTarget

        state = self._dataset.state
        return IngestTarget(
            vocab=state.vocab,
            schema=schema or state.schema,
            next_offset=state.next_offset,
            watermark=state.watermark,
            state=self.state,
            database=self.database,
        )

    def extend(self, head: Multihash | None, schema: DataSchema | None) -> None:
        """Extend the index after a commit. If that fails, the next merge repairs it.

        Args:
            head: the new head.
            schema: the schema of the dataset after the commit.
        """
        if self._purpose is None:
            return
        from odfpy.state.key_index import INDEX

        if self._answering is not None and self._answering.has_failed:
            (self._folder(self._purpose) / INDEX).unlink(missing_ok=True)
        self._up_to_date(head, schema)

    def _scanned(self, schema: DataSchema) -> ScannedState:
        from odfpy.state.current import ScannedState

        blocks = self._dataset.chain.in_order(self._dataset.state.head)
        return ScannedState(
            slice_paths(self._dataset.layout.data, slices_of(blocks)), schema, self._dataset.state.vocab
        )

    def _up_to_date(self, head: Multihash | None, schema: DataSchema | None) -> KeyIndex | None:
        """Return the index with all slices up to a block, None if that fails."""
        if self._purpose is None or head is None or schema is None:
            return None
        if not set(self._purpose.keys) <= set(schema.names):
            return None  # no stored row has the key columns: the rows of this merge add them
        from odfpy.state.key_index import KeyIndex
        from odfpy.state.run_file import StateDamaged

        nothing = KeyIndex(self._folder(self._purpose), self._purpose)
        try:
            try:
                return self._caught_up(KeyIndex.open(nothing.folder, nothing.purpose), head, schema)
            except StateDamaged:
                return self._caught_up(nothing, head, schema)
        except (OdfError, OSError, StateDamaged):
            return None

    def _caught_up(self, index: KeyIndex, head: Multihash, schema: DataSchema) -> KeyIndex:
        """Return the index, extended with missing slices.

        Raises:
            StateDamaged: the index cannot be extended, or belongs to a block that is not in the chain.
        """
        from odfpy.state.run_file import StateDamaged

        if index.token == str(head):
            return index
        blocks = []
        for hashed in self._dataset.chain.iter_blocks(head):
            if str(hashed.hash) == index.token:
                break
            blocks.append(hashed)
        else:
            if index.token is not None:
                raise StateDamaged("The index belongs to another chain")
        paths = slice_paths(self._dataset.layout.data, slices_of(reversed(blocks)))
        return index.extended(paths, schema, str(head), self.database)

    def _folder(self, purpose: IndexPurpose) -> Path:
        digest = Multihash.of(json.dumps([purpose.keys, purpose.keeps_rows]).encode()).digest
        return self._dataset.cache / "keys" / digest.hex()[:16]


def _purpose(dataset: StoredDataset, strategy: MergeStrategy) -> IndexPurpose | None:
    """Return the purpose of an index, None for strategies without lookups."""
    from odfpy.ingest.merge import StateNeed, merge_of
    from odfpy.ingest.normalize import primary_key

    need = merge_of(strategy).needs_state
    if need is StateNeed.NOTHING:
        return None
    from odfpy.state.key_index import IndexPurpose  # loads the database, which other strategies do not need

    return IndexPurpose(primary_key(strategy), need is StateNeed.CURRENT_ROWS, dataset.state.vocab)
