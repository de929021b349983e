"""Values under NULL: an Arrow array has a slot for every value, also for nulls.

Engines leave arbitrary data in these slots: DataFusion implements `CASE WHEN a THEN b END` as `b` with another validity
bitmap, and DuckDB leaves old memory. Arrow's formats transmit the slots unchanged. So they are cleared before rows are
sent to other parties.
"""

from __future__ import annotations

import pyarrow as pa


def emptied(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same rows with zeros in slots under NULL, and without bytes of other rows.

    Args:
        batch: rows that are about to be sent.
    """
    columns = [_emptied(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _emptied(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_dictionary(kind):  # a dictionary may contain values that no row has
        return _emptied(column.dictionary_decode()).cast(kind)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):  # views share the bytes of other rows
        return _emptied(column.cast(pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary())).cast(
            kind
        )
    if not column.null_count or pa.types.is_null(kind):
        return column
    import pyarrow.compute as pc  # 7 MB, which a server that sends no rows can save

    is_valid = column.is_valid()
    places = pc.subtract(pc.cumulative_sum(is_valid.cast(pa.int64())), 1)
    return column.drop_null().take(pc.if_else(is_valid, places, None))
