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
        name: the name it goes by there.
        id: its id.
        kind: Root or Derivative.
        head: hash of the last block.
        num_records: rows of the log.
        watermark: no row with an event time at or before it comes later, except late.
        schema: the columns; None also where there is no data yet.
        vocabulary: names of the system columns.
        description: what the dataset says of itself.
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
    """Streamed rows of a result."""

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows."""


class Backend(Protocol):
    """A location with datasets that executes queries. Raises errors of queries, transfers or HTTP."""

    @property
    def place(self) -> str:
        """Return where it is, for people."""

    def ask(self, query: Query) -> AbstractContextManager[RowStream]:
        """Begin to answer a query."""

    def stored_rows(self, query: Query) -> StoredRows | None:
        """The files in which the rows of a query lie as they are; None if there are none, or none here."""

    def as_at(self, query: Query, moment: PointInTime) -> Query:
        """The same query of datasets as they were.

        Raises:
            NotYetThen, NotFound: a dataset has no such moment.
            UsageError: this place cannot do that; the hint says what can be done.
        """

    def datasets(self) -> list[DatasetFacts]:
        """The datasets by name, without their schemas."""

    def dataset(self, name: str) -> DatasetFacts:
        """One of them.

        Raises:
            DatasetNotFound: with a suggestion, as far as that is possible.
        """

    def lineage(self, name: str) -> LineageNode:
        """A dataset and what it is derived from."""

    def provenance(self, name: str, offset: int, column: str | None, depth: int | None, check: bool) -> Provenance:
        """Return where a row comes from.

        Args:
            name: name or id of the dataset.
            offset: offset of the row.
            column: a column, None for whole rows.
            depth: most hops, None for all.
            check: whether cited rows are replayed.

        Raises:
            UsageError: this place cannot tell.
        """

    def close(self) -> None:
        """Give connections back."""
