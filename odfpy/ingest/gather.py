"""Picking rows of large columns by position.

Arrow finds rows in one array much faster than in many, but the text offsets of one array are limited to 2 GB. So a
column is combined into a few large arrays, and rows are picked from each of them in turn.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from odfpy.data.memory import bytes_of, from_numpy

_MAX_SIZE = 1 << 30
"""Maximum bytes of an array, well below the limit of offsets."""


def combine(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the same column in few chunks."""
    return pa.chunked_array([pa.concat_arrays(group) for group in _groups(column.chunks)], type=column.type)


def gather(column: pa.ChunkedArray, positions: pa.Array) -> pa.ChunkedArray:
    """Return the rows at given positions, in their order; few enough to fit into one array.

    Args:
        column: see `combine`.
        positions: int64.
    """
    if column.num_chunks <= 1:
        return column.take(positions)
    places = positions.to_numpy()
    starts = np.cumsum([0, *(len(chunk) for chunk in column.chunks)])
    chunk_of = np.searchsorted(starts, places, side="right") - 1
    by_chunk = np.argsort(chunk_of, kind="stable")
    bounds = np.searchsorted(chunk_of[by_chunk], np.arange(column.num_chunks + 1))
    taken = [
        chunk.take(from_numpy(places[by_chunk[bounds[at] : bounds[at + 1]]] - starts[at]))
        for at, chunk in enumerate(column.chunks)
    ]
    back = np.empty(len(places), np.int64)
    back[by_chunk] = np.arange(len(places))
    return pa.chunked_array([pa.concat_arrays(taken).take(from_numpy(back))], type=column.type)


def _groups(chunks: list[pa.Array]) -> Iterator[list[pa.Array]]:
    group: list[pa.Array] = []
    size = 0
    for chunk in chunks:
        if group and size + bytes_of(chunk) > _MAX_SIZE:
            yield group
            group, size = [], 0
        group.append(chunk)
        size += bytes_of(chunk)
    if group:
        yield group
