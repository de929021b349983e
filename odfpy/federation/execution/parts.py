"""Parts of an answer, read into files: each completely, or it counts as missing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from odfpy.data.memory import bytes_of
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import OdfError
from odfpy.federation.execution.relay_client import PartRows, RelayClient
from odfpy.federation.relay.bounds import Received
from odfpy.federation.relay.errors import InvalidAnswer
from odfpy.federation.relay.question import MissingRelay, Part
from odfpy.federation.relay.statements import MAX_LENGTH


@dataclass(frozen=True, slots=True)
class ReadPart:
    """A part that was read, or the reason why it was not.

    Attributes:
        fragment: name of the fragment.
        part: the part to read.
        paths: the files with its rows; none if it is missing.
        missing: the reason; None if the rows are available.
        rows: number of rows.
        bytes: received bytes of Arrow data.
        seconds: the time that reading took.
        hash: order-independent hash of the rows, as a multihash; only if they are signed.
        statement: the relay's signed statement; only if requested.
    """

    fragment: str
    part: Part
    paths: tuple[Path, ...] = ()
    missing: MissingRelay | None = None
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    hash: str | None = None
    statement: str | None = None


@dataclass(frozen=True, slots=True)
class PartReader:
    """A reader of the parts of a query into files, within the query's limits.

    Attributes:
        client: the connection to the relays.
        folder: folder for the files.
        ends: deadline, by the monotonic clock.
        received: counts received bytes, and stops relays that send too many.
        control: reports whether the query has been cancelled.
        is_signed: whether each part must come with a signed statement.
    """

    client: RelayClient
    folder: Path
    ends: float
    received: Received
    control: CancellationToken
    is_signed: bool = False

    def read(self, fragment: str, number: int, part: Part, schema: pa.Schema) -> ReadPart:
        """Read a part into a file.

        Args:
            fragment: name of the fragment.
            number: number of the part in the fragment's answer.
            part: the part to read.
            schema: required columns.

        Raises:
            QueryCancelled: the query was cancelled.
        """
        path = self.folder / f"{fragment}-{number}.parquet"
        try:
            return self._read(fragment, part, schema, path)
        except OdfError as error:
            path.unlink(missing_ok=True)
            self.control.check()
            return ReadPart(fragment, part, missing=MissingRelay(part.relay, error.message))
        finally:
            self.received.end(path)

    def _read(self, fragment: str, part: Part, schema: pa.Schema, path: Path) -> ReadPart:
        import pyarrow.parquet as pq

        from odfpy.data.rows.rows_hash import RowsHasher

        began = time.monotonic()
        rows, size, statement = 0, 0, None
        with ExitStack() as stack:
            part_rows = stack.enter_context(self._opened(part))
            if part_rows.schema != schema:
                raise InvalidAnswer(f"The relay {part.relay} returned other columns than requested")
            hasher = stack.enter_context(RowsHasher()) if self.is_signed else None
            writer = stack.enter_context(pq.ParquetWriter(path, schema, compression="lz4"))
            for chunk in part_rows:
                statement = _statement(chunk) or statement
                if chunk.data is None or not chunk.data.num_rows:
                    continue
                batch = self.received.taken(path, chunk.data)
                rows, size = rows + batch.num_rows, size + bytes_of(batch)
                writer.write_batch(batch)
                if hasher is not None:
                    hasher.update(batch)
            digest = None if hasher is None else str(hasher.finish())
        if self.is_signed and statement is None:
            raise InvalidAnswer(f"The relay {part.relay} has not signed its rows")
        seconds = time.monotonic() - began
        return ReadPart(fragment, part, (path,), None, rows, size, seconds, digest, statement)

    @contextmanager
    def _opened(self, part: Part) -> Iterator[PartRows]:
        """Open the rows of a part; the stream ends when the query is cancelled."""
        self.control.check()
        with self.client.rows(part, self.ends - time.monotonic()) as part_rows:
            self.control.on_stop(part_rows.cancel)
            try:
                yield part_rows
            finally:
                self.control.forget(part_rows.cancel)


def _statement(chunk: Any) -> str | None:
    if chunk.app_metadata is None:
        return None
    metadata = chunk.app_metadata
    return bytes(metadata[:MAX_LENGTH]).decode("ascii", "replace")
