"""Splitting of a large result's rows into slices.

The split determines offsets, hashes and blocks, so it depends on the rows alone: not on memory, lane, threads or
partitions. See the decision record "large results become several slices".
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final

from odfpy.data.vocabulary import OperationType

SLICE_ROWS: Final = 1 << 20
"""Maximum number of rows of a slice: two full row groups, see `odfpy.data.slices.row_groups`."""

_FROM, _TO = int(OperationType.CORRECT_FROM), int(OperationType.CORRECT_TO)


def cut_rows(rows: int, operation_at: Callable[[int], int], size: int = SLICE_ROWS) -> list[tuple[int, int]]:
    """Return the slices of a number of rows, as half-open ranges of ranks.

    Args:
        rows: number of all rows.
        operation_at: returns the operation type of the row with a rank.
        size: rows per slice, at least 2; one more if that keeps a -C and its +C together.
    """
    bounds = [0]
    for bound in range(size, rows, size):
        is_pair = operation_at(bound - 1) == _FROM and operation_at(bound) == _TO
        bounds.append(bound + is_pair)
    if bounds[-1] < rows:
        bounds.append(rows)
    return list(pairwise(bounds))
