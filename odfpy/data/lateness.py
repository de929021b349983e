"""Late rows: rows with an event time at or before the watermark that their dataset had before them.

The watermark promises that there are no such rows. A late *entry* of a changelog may have any operation type. Late
*rows* are only new rows: a row that an entry retracts or corrects existed before.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from odfpy.data.timestamp import SECONDS_PER_DAY, Timestamp
from odfpy.data.vocabulary import OperationType

_NEW: Final = (OperationType.APPEND, OperationType.CORRECT_TO)
_NANOS_PER_MICRO: Final = 1_000
_MICROS_PER_SECOND: Final = 1_000_000
_MICROS: Final = {"s": _MICROS_PER_SECOND, "ms": 1_000, "us": 1}


def late_limit(watermark: Timestamp) -> int:
    """Return the last event time that counts as late for a watermark, in microseconds."""
    return watermark.nanos // _NANOS_PER_MICRO


def late_entries(event_time: pa.Array | pa.ChunkedArray, limit: int) -> pa.Array | pa.ChunkedArray:
    """Return a mask of the late entries of a changelog; entries without an event time are not late.

    Args:
        event_time: dates or timestamps.
        limit: result of `late_limit`.
    """
    unit = SECONDS_PER_DAY * _MICROS_PER_SECOND
    if pa.types.is_timestamp(event_time.type):
        if event_time.type.unit not in _MICROS:
            event_time = event_time.cast(pa.timestamp("us", event_time.type.tz), safe=False)
        unit = _MICROS[event_time.type.unit]
    counts = event_time.cast(pa.int32() if pa.types.is_date32(event_time.type) else pa.int64())
    return pc.fill_null(pc.less_equal(counts, pa.scalar(limit // unit, pa.int64())), False)


def late_rows(
    event_time: pa.Array | pa.ChunkedArray, operations: pa.Array | pa.ChunkedArray, watermark: Timestamp | None
) -> int:
    """Return the number of late rows.

    Args:
        event_time: dates or timestamps.
        operations: operation types, int32, one per event time.
        watermark: watermark of the dataset before these rows; without one, no row is late.
    """
    if watermark is None or not len(operations):
        return 0
    return num_true(pc.and_(late_entries(event_time, late_limit(watermark)), are_new(operations)))


def are_new(operations: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return a mask of the operations that add rows: +A and +C."""
    return pc.is_in(operations, value_set=pa.array([int(operation) for operation in _NEW], operations.type))


def num_true(mask: pa.Array | pa.ChunkedArray) -> int:
    """Return the number of true values in a mask."""
    return int(pc.sum(mask).as_py() or 0)
