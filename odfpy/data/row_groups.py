"""Row groups of a slice: where they end depends on the rows alone, and their size in memory is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

BLOCK_ROWS: Final = 4_096
"""Row groups end only at multiples of this many rows."""

GROUP_ROWS: Final = 128 * BLOCK_ROWS
"""Rows in a row group, unless it is full before."""

GROUP_BYTES: Final = 1 << 27
"""Bytes of text, binary and list items from which a row group is full."""


class RowGroups:
    """Regroups batches into row groups whose ends depend on the rows alone, and whose size in memory is bounded."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._block: list[pa.RecordBatch] = []
        self._block_rows = 0
        self._group: list[pa.RecordBatch] = []
        self._group_rows = 0
        self._group_bytes = 0

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        """Add rows; gives the row groups that are full."""
        at = 0
        while at < batch.num_rows:
            part = batch.slice(at, BLOCK_ROWS - self._block_rows)
            at += part.num_rows
            self._block.append(part)
            self._block_rows += part.num_rows
            if self._block_rows == BLOCK_ROWS:
                self._close_block()
                if self._group_rows >= GROUP_ROWS or self._group_bytes >= GROUP_BYTES:
                    yield self._close_group()

    def rest(self) -> Iterator[pa.Table]:
        """The last row group, if any."""
        self._close_block()
        if self._group_rows:
            yield self._close_group()

    def _close_block(self) -> None:
        self._group += self._block
        self._group_rows += self._block_rows
        self._group_bytes += sum(_payload(column) for part in self._block for column in part.columns)
        self._block, self._block_rows = [], 0

    def _close_group(self) -> pa.Table:
        table = pa.Table.from_batches(self._group, self._schema).combine_chunks()
        self._group, self._group_rows, self._group_bytes = [], 0, 0
        return table


def _payload(array: pa.Array) -> int:
    """Bytes of varying size in an array, whatever its layout."""
    if pa.types.is_struct(array.type):
        return sum(_payload(child) for child in array.flatten())
    if pa.types.is_list(array.type) or pa.types.is_fixed_size_list(array.type):
        items = array.flatten()
        return 8 * len(items) + _payload(items)
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        return pc.sum(pc.binary_length(array)).as_py() or 0
    return 0
