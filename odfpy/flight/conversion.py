"""Conversion of rows to the types that Spark accepts (`odfpy.flight.types`): the same values, in plain layouts.

Lists, maps and structs are decomposed and rebuilt here, since pyarrow's casts of nested types do not support all inner
types, and produce invalid arrays for some.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from odfpy.flight.errors import NotForSpark
from odfpy.flight.types import INTERVAL

_INTERVAL_BYTES: Final = [("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")]


def plain_batch(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """Convert rows to exactly the columns that Spark expects, by position.

    Args:
        batch: the received batch.
        wanted: types that Spark accepts.

    Raises:
        NotForSpark: a value does not fit into the type; the message names the column.
    """
    if batch.schema.equals(wanted, check_metadata=True):
        return batch
    columns = []
    for field, column in zip(wanted, batch.columns, strict=True):
        try:
            columns.append(plain_array(column, field.type))
        except (pa.ArrowException, ValueError) as error:
            raise NotForSpark(
                f"Column {field.name!r} of type {column.type} has a value that Spark's type for it ({field.type}) does "
                f"not hold: {error}",
                hint="CAST the column in a query, or give Spark a wider type: spark.read.schema(...).",
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=wanted)


def plain_array(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Convert values to a type that Spark accepts. Anything finer than a microsecond is truncated.

    Raises:
        ArrowException: a value does not fit, or the conversion is not supported.
    """
    if column.type.equals(wanted):
        return column
    if isinstance(column, pa.ExtensionArray):
        bits = isinstance(column.type, pa.Bool8Type)
        return column.cast(pa.bool_()).cast(wanted) if bits else plain_array(column.storage, wanted)
    if types.is_dictionary(column.type):
        return plain_array(column.dictionary_decode(), wanted)
    if types.is_run_end_encoded(column.type):
        return plain_array(pc.run_end_decode(column), wanted)
    if types.is_interval(column.type):
        return plain_array(_parts(column), wanted)
    if types.is_struct(column.type) and types.is_struct(wanted):
        return _struct(column, wanted)
    if types.is_map(column.type) and types.is_map(wanted):
        return _map(column, wanted)
    if hasattr(column.type, "value_field") and types.is_list(wanted):
        values = plain_array(pc.list_flatten(column), wanted.value_type)
        return pa.ListArray.from_arrays(_offsets(column), values, wanted, mask=_nulls(column))
    return column.cast(_in_microseconds(column.type), safe=False).cast(wanted)


def _struct(column: pa.StructArray, wanted: pa.StructType) -> pa.Array:
    if column.type.num_fields != wanted.num_fields or not wanted.num_fields:
        return column.cast(wanted)
    fields = [plain_array(column.field(place), field.type) for place, field in enumerate(wanted)]
    return pa.StructArray.from_arrays(fields, fields=list(wanted), mask=_nulls(column))


def _map(column: pa.MapArray, wanted: pa.MapType) -> pa.Array:
    whole = pa.StructArray.from_arrays([column.keys, column.items], ["key", "value"])
    entries = pa.Array.from_buffers(
        pa.list_(whole.type), len(column), column.buffers()[:2], offset=column.offset, children=[whole]
    )
    flat = pc.list_flatten(entries)
    keys, values = plain_array(flat.field(0), wanted.key_type), plain_array(flat.field(1), wanted.item_type)
    return pa.MapArray.from_arrays(_offsets(entries), keys, values, wanted, mask=_nulls(column))


def _offsets(lists: pa.Array) -> pa.Array:
    """Return the offsets of lists in their values; null lists have no values."""
    lengths = pc.fill_null(pc.list_value_length(lists).cast(pa.int32()), 0)
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum_checked(lengths)])


def _nulls(column: pa.Array) -> pa.Array | None:
    return pc.is_null(column) if column.null_count else None


def _parts(intervals: pa.Array) -> pa.StructArray:
    """Return months, days and nanoseconds of intervals, which Arrow stores together in sixteen bytes."""
    import numpy as np

    first, end = intervals.offset, intervals.offset + len(intervals)
    found = np.frombuffer(intervals.buffers()[1] or b"", np.dtype(_INTERVAL_BYTES))[first:end]
    parts: list[Any] = [pa.array(np.ascontiguousarray(found[name])) for name, _ in _INTERVAL_BYTES]
    return pa.StructArray.from_arrays(parts, fields=list(INTERVAL), mask=_nulls(intervals))


def _in_microseconds(arrow: pa.DataType) -> pa.DataType:
    """Return the type with microseconds; finer digits are truncated before the cast, which checks for losses."""
    if types.is_date64(arrow):
        return pa.date32()
    if getattr(arrow, "unit", None) != "ns":
        return arrow
    if types.is_timestamp(arrow):
        return pa.timestamp("us", arrow.tz)
    return pa.time64("us") if types.is_time(arrow) else pa.duration("us")
