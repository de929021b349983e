"""Values of the parameters `?`: one row of simple values, validated before use.

The bytes of Arrow come from untrusted clients: lists and the like may expand beyond the available memory, and offsets
may point outside of the message.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from odfpy.data.memory import bytes_of
from odfpy.serving.flight.errors import FlightSqlError, as_arrow

_MAX_BYTES: Final = 1 << 20
_WHAT: Final = "The parameters cannot be read"
_PLAIN: Final = (
    *(pa.types.is_null, pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
    *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_temporal),
    *(pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary),
)


def bound_values(reader: Any) -> tuple[Any, ...]:
    """Return the values that a client sends, none if it sends no row.

    Raises:
        FlightSqlError: they are not one row of simple values.
    """
    check_types(as_arrow(lambda: reader.schema, _WHAT))
    values: tuple[Any, ...] | None = None
    while (batch := _next(reader)) is not None:
        if batch.num_rows:
            values = values_of(batch, is_first=values is None)
    return values or ()


def _next(reader: Any) -> pa.RecordBatch | None:
    try:
        return as_arrow(reader.read_chunk, _WHAT).data
    except StopIteration:
        return None


def check_types(schema: pa.Schema) -> None:
    """Check that parameters have simple types: a few bytes of nested lists could represent many rows.

    Raises:
        FlightSqlError: one has not.
    """
    for given in schema.types:
        kind = given.value_type if pa.types.is_dictionary(given) else given
        if not any(is_kind(kind) for is_kind in _PLAIN):
            raise FlightSqlError(
                f"A parameter is of the type {str(given)[:200]}", hint="Give numbers, text, bytes, times, or null."
            )


def values_of(batch: pa.RecordBatch, *, is_first: bool = True) -> tuple[Any, ...]:
    """Return the values of a row.

    Args:
        batch: the row.
        is_first: whether it is the first row.

    Raises:
        FlightSqlError: there is more than one row, or values are too large, or not simple.
    """
    if batch.num_rows != 1 or not is_first:
        raise FlightSqlError(
            f"A statement takes the parameters of one row at a time, and {batch.num_rows + (not is_first)} came",
            hint="Execute it once for each row.",
        )
    check_types(batch.schema)
    as_arrow(lambda: batch.validate(full=True), _WHAT)
    if bytes_of(batch) > _MAX_BYTES:
        raise FlightSqlError(f"Parameters have {_MAX_BYTES} bytes at most")
    return tuple(as_arrow(column[0].as_py, "A parameter cannot be read") for column in batch.columns)
