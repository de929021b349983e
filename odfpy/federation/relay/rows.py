"""Rows sent by a relay: its own, hashed if they are to be signed, and those of other relays, passed through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from odfpy.data.multihash import Multihash
from odfpy.data.rows.batch_stream import BatchStream
from odfpy.federation.relay.bounds import Received


class HashedRows:
    """Rows that are hashed while they are sent.

    Attributes:
        found: row count and hash, once all rows were sent.
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
    """The rows of another relay, passed through as they arrive.

    Attributes:
        statement: the other relay's statement about them, once all have arrived.
    """

    def __init__(self, reader: Any, received: Received) -> None:
        """
        Args:
            reader: reader of the stream.
            received: counts received bytes, and stops endless streams.
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
