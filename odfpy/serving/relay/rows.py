"""Streams of a relay: batches, followed by a signed statement about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pyarrow as pa

from odfpy.serving.flight.errors import as_client_errors
from odfpy.serving.flight.streams import CallBatches

Item: TypeAlias = "pa.RecordBatch | tuple[pa.RecordBatch, bytes]"
"""A batch, perhaps with metadata."""


class RowsWithStatement:
    """The batches of a stream, followed by an empty batch whose metadata is the signed statement.

    Access may end in the middle of a stream, wherever the rows come from: it is checked for each batch.

    Not a generator: one that was never started would not be closed.
    """

    def __init__(self, batches: CallBatches, statement: Callable[[], str | None], check: Callable[[], object]) -> None:
        """
        Args:
            batches: batches of the stream.
            statement: creates the statement after all batches were sent, None for no statement.
            check: raises an error if the caller's access has ended.
        """
        self._batches = batches
        self._check = check
        self._statement: Callable[[], str | None] | None = statement

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        statement, self._statement = self._statement, None
        try:
            batch = next(self._batches)
        except StopIteration:
            with as_client_errors():
                text = None if statement is None else statement()
            if text is None:
                raise
            return pa.RecordBatch.from_pylist([], schema=self._batches.schema), text.encode()
        try:
            with as_client_errors():
                self._check()
        except BaseException:
            self._batches.close()
            raise
        self._statement = statement
        return batch
