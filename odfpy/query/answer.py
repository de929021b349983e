"""What comes back of a query: batches of rows, as they are made, and which datasets they were made from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol

from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import DatasetAlias

if TYPE_CHECKING:
    import pyarrow as pa


Path = Literal["chain", "slices", "spark", "datafusion"]
"""How a query was answered: from the metadata chain, from the slices themselves, or by an engine."""


@dataclass(frozen=True, slots=True)
class Input:
    """A dataset that a query has read, and as of which block.

    Attributes:
        alias: the name it goes by here.
    """

    id: DatasetId
    alias: DatasetAlias
    block_hash: Multihash


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a query would give.

    Attributes:
        num_parameters: how many `?` it has.
    """

    schema: pa.Schema
    inputs: tuple[Input, ...]
    num_parameters: int = 0


class Rows(Protocol):
    """Where the rows of an answer come from."""

    @property
    def schema(self) -> pa.Schema:
        """Their columns."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows, once."""

    def cancel(self) -> None:
        """Make no more of them; from any thread."""

    def close(self) -> None:
        """Nobody wants more of them."""


class Answer:
    """The rows of a query, to be read once; a context manager.

    Attributes:
        schema: their columns.
        inputs: the datasets it was made from, in the order in which the query names them.
        path: how the query was answered.
    """

    def __init__(self, rows: Rows, inputs: tuple[Input, ...], path: Path) -> None:
        self.schema = rows.schema
        self.inputs = inputs
        self.path = path
        self._rows = rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows as they are made.

        Raises:
            OdfError: the query has failed, was cancelled, or has gone over a limit.
        """
        return iter(self._rows)

    def read_all(self) -> pa.Table:
        """All rows; errors as while iterating."""
        import pyarrow as pa

        return pa.Table.from_batches(self, self.schema)

    def cancel(self) -> None:
        """Stop the query, from any thread: whoever iterates gets `QueryCancelled`."""
        self._rows.cancel()

    def close(self) -> None:
        """Stop the query if it is still running, and remove its files."""
        self._rows.close()

    def __enter__(self) -> Answer:  # noqa: PYI034
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
