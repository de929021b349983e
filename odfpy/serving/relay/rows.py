"""Rows on their way out of a relay: its own, hashed where they are to be signed, and those of others as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pyarrow as pa

from odfpy.data.multihash import Multihash
from odfpy.data.rows.rows_hash import RowsHasher
from odfpy.serving.flight.errors import as_client_errors
from odfpy.serving.flight.streams import Batches, Rows

Item: TypeAlias = "pa.RecordBatch | tuple[pa.RecordBatch, bytes]"
"""A batch, perhaps with metadata."""


class HashedRows:
    """Rows that are hashed as they go by.

    Attributes:
        found: their number and hash, when all have gone by.
    """

    def __init__(self, rows: Rows) -> None:
        self.schema: pa.Schema = rows.schema
        self.found: tuple[int, Multihash] | None = None
        self._rows = rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        with RowsHasher() as hasher:
            for batch in self._rows:
                hasher.update(batch)
                yield batch
            self.found = hasher.num_rows, hasher.finish()


class PassedRows:
    """The rows of another relay, which go on as they come.

    Attributes:
        statement: what the other one says of them, when all have come.
    """

    def __init__(self, reader: Any) -> None:
        self.schema: pa.Schema = reader.schema
        self.statement: str | None = None
        self._reader = reader

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for chunk in self._reader:
            if chunk.app_metadata is not None:
                self.statement = chunk.app_metadata.to_pybytes().decode("ascii", "replace")
            if chunk.data is not None and chunk.data.num_rows:
                yield chunk.data


class StatedRows:
    """The batches of a stream, and at the end, with an empty one, a statement about them.

    Not a generator: one that nobody has begun to read would not learn of its end.
    """

    def __init__(self, batches: Batches, statement: Callable[[], str | None]) -> None:
        """
        Args:
            batches: of the stream.
            statement: makes the statement when all of them went out, None if there is to be none.
        """
        self._batches = batches
        self._statement: Callable[[], str | None] | None = statement

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        statement, self._statement = self._statement, None
        try:
            found = next(self._batches)
        except StopIteration:
            with as_client_errors():
                text = None if statement is None else statement()
            if text is None:
                raise
            return pa.RecordBatch.from_pylist([], schema=self._batches.schema), text.encode()
        self._statement = statement
        return found
