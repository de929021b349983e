"""Rows on their way out of a relay: its own, hashed where they are to be signed, and those of others as they come."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from odfpy.data.multihash import Multihash
from odfpy.data.rows.batch_stream import BatchStream
from odfpy.federation.relay.bounds import Received


class HashedRows:
    """Rows that are hashed as they go by.

    Attributes:
        found: their number and hash, when all have gone by.
    """

    def __init__(self, rows: BatchStream) -> None:
        self.schema: pa.Schema = rows.schema
        self.found: tuple[int, Multihash] | None = None
        self._rows = rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        from odfpy.data.rows.rows_hash import RowsHasher

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

    def __init__(self, reader: Any, received: Received) -> None:
        """
        Args:
            reader: of the stream.
            received: counts the bytes that come, and stops a stream without end.
        """
        self.schema: pa.Schema = reader.schema
        self.statement: str | None = None
        self._reader = reader
        self._received = received

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for chunk in self._reader:
            if chunk.app_metadata is not None:
                self.statement = chunk.app_metadata.to_pybytes().decode("ascii", "replace")
            if chunk.data is not None and chunk.data.num_rows:
                yield self._received.taken("", chunk.data)
