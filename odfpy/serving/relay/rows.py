"""Streams of a relay: batches, and at the end a statement about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pyarrow as pa

from odfpy.serving.flight.errors import as_client_errors
from odfpy.serving.flight.streams import CallBatches

Item: TypeAlias = "pa.RecordBatch | tuple[pa.RecordBatch, bytes]"
"""A batch, perhaps with metadata."""


class StatedRows:
    """The batches of a stream, followed by one empty batch whose metadata is the signed statement.

    Rights may end in the middle of it, wherever the rows are from: each batch is looked at.

    Not a generator: one that nobody has begun to read would not learn of its end.
    """

    def __init__(self, batches: CallBatches, statement: Callable[[], str | None], check: Callable[[], object]) -> None:
        """
        Args:
            batches: of the stream.
            statement: makes the statement when all of them went out, None if there is to be none.
            check: raises an error if whoever reads them is to have no more.
        """
        self._batches = batches
        self._check = check
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
        try:
            with as_client_errors():
                self._check()
        except BaseException:
            self._batches.close()
            raise
        self._statement = statement
        return found
