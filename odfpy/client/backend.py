"""Backends that execute queries: a local workspace, a server over REST, a server over Flight."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from odfpy.data.schemas.schema import DataSchema
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, DatasetVocabulary
from odfpy.query.query import Query

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.coordinator.storage.results import LineageNode
    from odfpy.provenance.model import Provenance
    from odfpy.query.moments import PointInTime
    from odfpy.query.stored_rows import StoredRows


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFacts:
    """Facts about a dataset that need no rows; None where the backend does not report them.

    Attributes:
        name: name of the dataset in the backend.
        id: id of the dataset.
        kind: Root or Derivative.
        head: hash of the last block.
        num_records: number of rows in the log.
        watermark: event time up to which the data is complete, except for late rows.
        schema: the columns; None if there is no data yet.
        vocabulary: names of the system columns.
        description: description of the dataset.
    """

    name: str
    id: str | None = None
    kind: str | None = None
    head: str | None = None
    num_records: int | None = None
    watermark: str | None = None
    schema: DataSchema | None = None
    vocabulary: DatasetVocabulary = DEFAULT_VOCABULARY
    description: str | None = None


class RowStream(Protocol):
    """A stream of result rows."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows in batches."""


class Backend(Protocol):
    """A location with datasets, which executes queries. Methods raise errors of queries, transfers or HTTP."""

    @property
    def place(self) -> str:
        """The location, for display."""

    def ask(self, query: Query) -> AbstractContextManager[RowStream]:
        """Start a query and stream its rows."""

    def stored_rows(self, query: Query) -> StoredRows | None:
        """Return the local files that store the rows of a query unchanged, None if there are none."""

    def as_at(self, query: Query, moment: PointInTime) -> Query:
        """Return the query with its datasets read as at a moment.

        Raises:
            NotYetThen, NotFound: a dataset did not exist, or has no such block.
            UsageError: the backend does not support this; the hint names alternatives.
        """

    def datasets(self) -> list[DatasetFacts]:
        """Return the datasets, sorted by name, without their schemas."""

    def dataset(self, name: str) -> DatasetFacts:
        """Return a dataset.

        Raises:
            DatasetNotFound: the dataset does not exist; the message has a suggestion if possible.
        """

    def lineage(self, name: str) -> LineageNode:
        """Return a dataset and its inputs, recursively."""

    def provenance(self, name: str, offset: int, column: str | None, depth: int | None, check: bool) -> Provenance:
        """Return the provenance of a row.

        Args:
            name: name or id of the dataset.
            offset: offset of the row.
            column: name of a column, None for whole rows.
            depth: maximum number of hops, None for no limit.
            check: whether to run the query over the cited rows only, to check that they reproduce the row.

        Raises:
            UsageError: the backend does not support provenance.
        """

    def close(self) -> None:
        """Close connections."""
