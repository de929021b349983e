"""Cutting the rows of a large result into slices.

The cut decides offsets, hashes and blocks, so it follows from the rows alone: not from memory, lane, threads or
partitions. See the decision record "large results become several slices".
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final

from odfpy.data.vocabulary import OperationType

SLICE_ROWS: Final = 1 << 20
"""Rows of a slice of a result that has more. Two full row groups, see `odfpy.data.slices.row_groups`."""

_FROM, _TO = int(OperationType.CORRECT_FROM), int(OperationType.CORRECT_TO)


def cut_rows(rows: int, operation_at: Callable[[int], int], size: int = SLICE_ROWS) -> list[tuple[int, int]]:
    """Return the slices that a number of rows is cut into, as half-open ranges of ranks.

    Args:
        rows: in all.
        operation_at: gives the operation type of the row of a rank.
        size: rows of a slice, at least 2; one more where that keeps a -C with its +C.
    """
    bounds = [0]
    for bound in range(size, rows, size):
        is_pair = operation_at(bound - 1) == _FROM and operation_at(bound) == _TO
        bounds.append(bound + is_pair)
    if bounds[-1] < rows:
        bounds.append(rows)
    return list(pairwise(bounds))
