"""Late rows: those that happened at or before the watermark, by which they should have been there."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from odfpy.data.timestamp import NANOS_PER_MILLI, NANOS_PER_SECOND, SECONDS_PER_DAY, Timestamp
from odfpy.data.vocabulary import OperationType

_NEW = pa.array([int(OperationType.APPEND), int(OperationType.CORRECT_TO)], pa.int32())


def late_rows(event_time: pa.ChunkedArray, operations: pa.Array, watermark: Timestamp | None) -> int:
    """Return how many new rows are late; what is retracted or corrected was there before.

    Args:
        event_time: dates, or milliseconds in UTC.
        operations: int32, one for each.
        watermark: of the dataset before these rows; without one nothing is late.
    """
    if watermark is None or not len(operations):
        return 0
    is_date = pa.types.is_date(event_time.type)
    unit = NANOS_PER_SECOND * SECONDS_PER_DAY if is_date else NANOS_PER_MILLI
    counts = event_time.cast(pa.int32() if is_date else pa.int64())
    behind = pc.less_equal(counts, watermark.nanos // unit)
    return int(pc.sum(pc.and_(behind, pc.is_in(operations, value_set=_NEW))).as_py() or 0)
