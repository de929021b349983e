"""Answers of queries: batches of rows, yielded as they are computed, and the input datasets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import DatasetAlias

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.engine.cancellation import CancellationToken
    from odfpy.engine.row_stream import RowStream

AnswerPath = Literal["chain", "slices", "spark", "datafusion"]
"""How a query was answered: from the metadata chain, from the slices themselves, or by an engine."""


@dataclass(frozen=True, slots=True)
class QueryInput:
    """An input dataset of a query, at a block.

    Attributes:
        alias: local name of the dataset.
        name: name in the query, if that determines the block (`rates@v1`); else empty.
    """

    id: DatasetId
    alias: DatasetAlias
    block_hash: Multihash
    name: str = ""


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """The description of an answer without its rows: schema, inputs and parameters.

    Attributes:
        num_parameters: number of `?` parameters.
    """

    schema: pa.Schema
    inputs: tuple[QueryInput, ...]
    num_parameters: int = 0


class Answer:
    """The rows of a query, to be read once; a context manager.

    Attributes:
        schema: schema of the rows.
        inputs: the datasets that were read, in the order in which the query names them.
        path: how the query was answered.
    """

    def __init__(
        self,
        rows: RowStream,
        inputs: tuple[QueryInput, ...],
        path: AnswerPath,
        control: CancellationToken,
        resources: ExitStack,
    ) -> None:
        self.schema = rows.schema
        self.inputs = inputs
        self.path = path
        self._rows = rows
        self._control = control
        self._resources = resources

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they are computed.

        Raises:
            InvalidQuery: the data does not fit the query, for example because of a division by zero.
            ResultTooLarge: the rows have more bytes than allowed.
            QueryCancelled, QueryTimedOut: the query was stopped.
            OdfError: the query has failed.
        """
        return iter(self._rows)

    def read_all(self) -> pa.Table:
        """Return all rows; raises as iteration does."""
        import pyarrow as pa

        return pa.Table.from_batches(self, self.schema)

    def cancel(self) -> None:
        """Cancel the query, from any thread; iteration then raises `QueryCancelled`."""
        self._control.cancel()

    def close(self) -> None:
        """Stop the query if it is still running, and remove its files."""
        self._resources.close()

    def __enter__(self) -> Answer:  # noqa: PYI034
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
