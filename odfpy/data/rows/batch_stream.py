"""Rows under way, in batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class BatchStream(Protocol):
    """Rows under way, such as those of an answer."""

    @property
    def schema(self) -> pa.Schema:
        """Return their columns."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Return them, as they come."""
