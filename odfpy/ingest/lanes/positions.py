"""The result of a merge: for each output row its operation type and the position of its source row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from odfpy.ingest.lanes.source import open_table

PLACES: Final = pa.schema([("op", pa.int32()), ("pos", pa.int64())])
"""Schema of the files of `MergedPositions`."""


@dataclass(frozen=True, slots=True)
class MergedPositions:
    """Operations and positions of all rows of a result, in files of consecutive ranks.

    Attributes:
        paths: the files, in order.
        sizes: number of rows in each file.
        counts: number of rows by operation.
    """

    paths: tuple[str, ...]
    sizes: tuple[int, ...]
    counts: tuple[int, int, int, int]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(self.sizes)

    def between(self, start: int, stop: int) -> pa.Table:
        """Return the rows of a range of ranks, with columns `op` (int32) and `pos` (int64)."""
        starts = np.cumsum([0, *self.sizes])
        parts = []
        for path, first, size in zip(self.paths, starts, self.sizes, strict=False):
            if start < first + size and stop > first:
                begin = max(start - int(first), 0)
                parts.append(open_table(path).slice(begin, min(stop - int(first), size) - begin))
        return pa.concat_tables(parts)

    def first_of(self, operation: int, most: int) -> pa.Array:
        """Return the positions of the first `most` rows with an operation."""
        found: list[pa.Array] = []
        for path in self.paths:
            places = open_table(path)
            chosen = np.flatnonzero(places.column("op").to_numpy() == operation)[: most - sum(map(len, found))]
            found.append(places.column("pos").take(pa.array(chosen)).combine_chunks())
            if sum(map(len, found)) >= most:
                break
        return pa.concat_arrays(found) if found else pa.array([], pa.int64())

    def operation_at(self, rank: int) -> int:
        """Return the operation of the row with a rank."""
        operation: int = self.between(rank, rank + 1).column("op")[0].as_py()
        return operation


@dataclass(frozen=True, slots=True)
class RepeatedKeys:
    """Keys that occur more than once in the input: their number, the number of surplus rows, and the first position."""

    keys: int
    rows: int
    first: int
