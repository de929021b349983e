"""Search for the traced rows among the rows of a plan.

Spark applies conditions that all searched rows satisfy, so that it reads little; the remaining rows are compared value
by value.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from odfpy.engine.floats import normalize_floats
from odfpy.engine.output import OutputLayout, final_columns
from odfpy.engine.traced_rows import RowKey, TraceTarget, keys_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MAX_VALUES: Final = 200
"""Maximum number of values of a column in a condition; beyond that, only the minimum and maximum are used."""

_SIMPLE: Final = (int, str, date, Decimal)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


def narrow(frame: DataFrame, wanted: TraceTarget, *, by_time: bool = True) -> DataFrame:
    """Return a superset of the searched rows of a result.

    Args:
        frame: the result; its columns are `c0`, `c1`..., others may follow.
        wanted: the searched rows.
        by_time: whether to compare times. Spark would compare times of sessions before rows become sessions.
    """
    for source, column in zip(wanted.layout.sources, wanted.rows.columns, strict=True):
        if not by_time and isinstance(frame.schema[f"c{source}"].dataType, _times()):
            continue
        values = list({repr(value): value for value in column.to_pylist()}.values())
        condition = _condition(frame, f"c{source}", values)
        if condition is not None:
            frame = frame.where(condition)
    return frame


def result_keys(layout: OutputLayout, batch: pa.RecordBatch) -> list[RowKey]:
    """Return the keys of the rows in a batch of a result."""
    names = [f"c{at}" for at in range(1 + max(layout.sources))]
    return list(keys_of(final_columns(normalize_floats(batch.select(names)), layout)))


def _condition(frame: DataFrame, name: str, values: Sequence[Any]) -> Column | None:
    """Return a condition for rows with some values in a column; None for types that are not compared."""
    from pyspark.sql import functions
    from pyspark.sql.types import BooleanType, DateType, DecimalType, IntegralType, StringType, TimestampType

    column, kind = frame[name], frame.schema[name].dataType
    not_null = [value for value in values if value is not None]
    null_condition = [column.isNull()] if len(not_null) < len(values) else []
    if not not_null:
        return column.isNull()
    if isinstance(kind, TimestampType) and all(isinstance(value, datetime) for value in not_null):
        # Times are truncated to milliseconds in slices.
        micros = [(value - _EPOCH) // timedelta(microseconds=1) for value in not_null]
        least, most = (functions.timestamp_micros(functions.lit(at)) for at in (min(micros), max(micros) + 1_000))
        condition = (column >= least) & (column < most)
        if 1 < len(micros) <= _MAX_VALUES:
            condition &= functions.unix_millis(column).isin([at // 1_000 for at in micros])
    elif isinstance(kind, (IntegralType, StringType, DateType, DecimalType, BooleanType)) and _are_simple(not_null):
        if len(not_null) <= _MAX_VALUES:
            condition = column == functions.lit(not_null[0]) if len(not_null) == 1 else column.isin(not_null)
        else:
            condition = (column >= functions.lit(min(not_null))) & (column <= functions.lit(max(not_null)))
    else:
        return None
    return condition | null_condition[0] if null_condition else condition


def _times() -> tuple[type, ...]:
    from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

    return DateType, TimestampType, TimestampNTZType


def _are_simple(values: Sequence[Any]) -> bool:
    return all(isinstance(value, _SIMPLE) and not isinstance(value, datetime) for value in values)
