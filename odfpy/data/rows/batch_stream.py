"""Streams of rows, in batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class BatchStream(Protocol):
    """A stream of rows, such as the result of a query."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the rows."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches as they arrive."""
