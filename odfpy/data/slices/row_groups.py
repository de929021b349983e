"""Row groups of a slice: their ends depend on the rows alone, and their size in memory is bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

BLOCK_ROWS: Final = 4_096
"""Row groups end only at multiples of this many rows."""

GROUP_ROWS: Final = 128 * BLOCK_ROWS
"""Maximum number of rows in a row group."""

GROUP_BYTES: Final = 1 << 27
"""Bytes of text, binary and list items at which a row group is full."""


class RowGroups:
    """Regroups batches into row groups whose ends depend on the rows alone, and whose size in memory is bounded."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._group: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def push(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
        """Add rows, and yield the row groups that have become full."""
        start = at = 0
        while at < batch.num_rows:
            part = batch.slice(at, BLOCK_ROWS - self._rows % BLOCK_ROWS)
            at += part.num_rows
            self._rows += part.num_rows
            self._bytes += sum(_payload(column) for column in part.columns)
            is_block = self._rows % BLOCK_ROWS == 0
            if is_block and (self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES):
                self._group.append(batch.slice(start, at - start))
                yield self._close()
                start = at
        if start < at:
            self._group.append(batch.slice(start))

    def rest(self) -> Iterator[pa.Table]:
        """Yield the last row group, if there are remaining rows."""
        if self._rows:
            yield self._close()

    def _close(self) -> pa.Table:
        table = pa.Table.from_batches(self._group, self._schema)
        whole = len(self._group) == 1  # nothing to combine, for example if the rows already came in such groups
        self._group, self._rows, self._bytes = [], 0, 0
        return table if whole else table.combine_chunks()


def _payload(array: pa.Array) -> int:
    """Return the bytes of variable size in an array, whatever its layout."""
    if pa.types.is_struct(array.type):
        return sum(_payload(child) for child in array.flatten())
    if pa.types.is_list(array.type) or pa.types.is_fixed_size_list(array.type):
        items = array.flatten()
        return 8 * len(items) + _payload(items)
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        return pc.sum(pc.binary_length(array)).as_py() or 0
    return 0
