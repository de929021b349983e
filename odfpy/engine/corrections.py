"""Correction pairs in the rows of a result (ADR 0013, "Steps").

In an input, `-C` is followed immediately by its `+C`. A query may lose one half of a pair, when a filter passes only
the old or only the new row: then the other half becomes a retraction (`-R`) or an appended row (`+A`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odfpy.data.vocabulary import OperationType

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TaggedRows:
    """Rows of a result in their final order, with their origin.

    Attributes:
        rows: all columns of the result.
        operation_types: their operation types in the input.
        branches: numbers of the branches of the plan that they came through; -1 for branches where one row may become
            several, in which there are no pairs.
        offsets: their offsets in the input.
    """

    rows: pa.RecordBatch
    operation_types: Numbers
    branches: Numbers
    offsets: Numbers

    def part(self, start: int, stop: int) -> TaggedRows:
        """Return the rows from `start` to `stop`, exclusive."""
        cut = slice(start, stop)
        rows = self.rows.slice(start, stop - start)
        return TaggedRows(rows, self.operation_types[cut], self.branches[cut], self.offsets[cut])


def finalize_correction_pairs(stream: Iterable[TaggedRows]) -> Iterator[TaggedRows]:
    """Yield the same rows with their final operation types, independent of how they are divided into batches."""
    waiting: TaggedRows | None = None  # a `-C` at the end of a batch, whose `+C` may follow
    for batch in stream:
        if not len(batch.offsets):
            continue
        if waiting is not None:
            is_pair = bool(_is_pair(_ends(waiting, batch))[0])
            yield _retyped(waiting, OperationType.CORRECT_FROM if is_pair else OperationType.RETRACT)
        else:
            is_pair = False
        finalized = _finalize(batch, first_is_paired=is_pair)
        last = len(batch.offsets) - 1
        if batch.operation_types[last] == OperationType.CORRECT_FROM:
            waiting = finalized.part(last, last + 1)
            finalized = finalized.part(0, last)
        else:
            waiting = None
        yield finalized
    if waiting is not None:
        yield _retyped(waiting, OperationType.RETRACT)


def _finalize(batch: TaggedRows, *, first_is_paired: bool) -> TaggedRows:
    pairs = _is_pair(batch)
    paired = np.zeros(len(batch.offsets), dtype=bool)
    paired[:-1] |= pairs
    paired[1:] |= pairs
    paired[0] |= first_is_paired
    types = batch.operation_types.copy()
    types[(types == OperationType.CORRECT_FROM) & ~paired] = OperationType.RETRACT
    types[(types == OperationType.CORRECT_TO) & ~paired] = OperationType.APPEND
    return TaggedRows(batch.rows, types, batch.branches, batch.offsets)


def _is_pair(batch: TaggedRows) -> npt.NDArray[np.bool_]:
    """Return, for each row but the last, whether it forms a pair with the next."""
    before, after = batch.operation_types[:-1], batch.operation_types[1:]
    same_branch = (batch.branches[:-1] == batch.branches[1:]) & (batch.branches[:-1] >= 0)
    # If a filter has removed halves of two pairs, the `-C` of one may come right before the `+C` of the other.
    adjacent = batch.offsets[:-1] + 1 == batch.offsets[1:]
    is_pair: npt.NDArray[np.bool_] = (
        (before == OperationType.CORRECT_FROM) & (after == OperationType.CORRECT_TO) & same_branch & adjacent
    )
    return is_pair


def _ends(waiting: TaggedRows, batch: TaggedRows) -> TaggedRows:
    """Return the waiting last row and the first row of the next batch, without their columns."""
    return TaggedRows(
        batch.rows.slice(0, 0),
        np.array([OperationType.CORRECT_FROM, batch.operation_types[0]]),
        np.array([waiting.branches[0], batch.branches[0]]),
        np.array([waiting.offsets[0], batch.offsets[0]]),
    )


def _retyped(row: TaggedRows, operation_type: OperationType) -> TaggedRows:
    return TaggedRows(row.rows, np.array([int(operation_type)]), row.branches, row.offsets)
