"""Hash of rows regardless of order: it is the same however the rows are split into files and batches.

Each row is formatted as a line, as by `odf -o ndjson`. The sha3-256 digests of the lines are sorted, and their
concatenation is hashed again. So anybody can compute the hash from the rows alone, with any tool.
"""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import ExitStack
from typing import IO, TYPE_CHECKING, Final

import numpy as np

from odfpy.data.multihash import SHA3_256, Multihash
from odfpy.data.rows.text import ndjson_lines

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

_PIECE_ROWS: Final = 65_536
_HELD_ROWS: Final = 1 << 21  # 64 MiB of digests
_BUCKETS: Final = 256  # by first byte, so that one bucket at a time is sorted


class RowsHasher:
    """Hash of a stream of batches with the same columns. Memory is bounded: digests are spilled to files."""

    def __init__(self, held: int = _HELD_ROWS) -> None:
        """
        Args:
            held: number of digests in memory above which they are spilled.
        """
        self._most = held
        self._parts: list[bytes] = []
        self._held = 0
        self._aside: list[IO[bytes]] = []
        self._files = ExitStack()
        self.num_rows = 0
        """Number of rows so far."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def update(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        for start in range(0, batch.num_rows, _PIECE_ROWS):
            lines = ndjson_lines(batch.slice(start, _PIECE_ROWS)).to_pylist()
            self._parts.append(b"".join([hashlib.sha3_256(line.encode()).digest() for line in lines]))
            self.num_rows += len(lines)
            self._held += len(lines)
            if self._held >= self._most:
                self._put_aside()

    def finish(self) -> Multihash:
        """Return the hash of all rows."""
        found = hashlib.sha3_256()
        if not self._aside:
            found.update(_sorted(b"".join(self._parts)))
        else:
            self._put_aside()
            for file in self._aside:
                file.seek(0)
                found.update(_sorted(file.read()))
        return Multihash(SHA3_256.code, found.digest())

    def _put_aside(self) -> None:
        if not self._aside:
            new = tempfile.TemporaryFile
            self._aside = [self._files.enter_context(new()) for _ in range(_BUCKETS)]
        digests = _sorted(b"".join(self._parts))
        firsts = np.frombuffer(digests, np.uint8)[:: SHA3_256.size]
        ends = np.searchsorted(firsts, np.arange(1, _BUCKETS + 1)) * SHA3_256.size
        start = 0
        for file, end in zip(self._aside, ends.tolist(), strict=True):
            file.write(digests[start:end])
            start = end
        self._parts, self._held = [], 0


def _sorted(digests: bytes) -> bytes:
    return np.sort(np.frombuffer(digests, f"S{SHA3_256.size}")).tobytes()
