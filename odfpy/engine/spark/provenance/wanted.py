"""The rows that somebody asks about, and how they are found again among the rows of a plan.

A row is told by the values of its columns, in the form that they have in a slice. Spark gets conditions that no row
that is looked for fails, so that it reads little; what is left is compared here, value by value.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from odfpy.data.parquet_io import open_parquet
from odfpy.engine.floats import in_one_form
from odfpy.engine.output import OutputForm, final_columns
from odfpy.engine.tracing import WANTED, WEIGHT

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Key: TypeAlias = tuple[str, ...]

_MOST_VALUES: Final = 200
"""Up to so many values of a column are named one by one; of more, only the least and the greatest."""

_SIMPLE: Final = (int, str, date, Decimal)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Wanted:
    """Rows of an output.

    Attributes:
        form: the columns of the output.
        numbers: of the rows that have some values and a weight; several where rows are the same.
        values: of each column, those that occur.
    """

    form: OutputForm
    numbers: Mapping[tuple[Key, int], Sequence[int]]
    values: Sequence[Sequence[Any]]

    @classmethod
    def read(cls, path: str, form: OutputForm) -> Wanted:
        """The rows of a request; columns that they do not have yet are NULL."""
        with open_parquet(path) as file:
            table = file.read()
        fields = list(form.schema)[3:]
        arrays = [
            table.column(field.name).cast(field.type)
            if field.name in table.column_names
            else pa.chunked_array([pa.nulls(table.num_rows, field.type)])
            for field in fields
        ]
        rows = pa.Table.from_arrays(arrays, names=[field.name for field in fields])
        numbers: defaultdict[tuple[Key, int], list[int]] = defaultdict(list)
        at = zip(table.column(WANTED).to_pylist(), table.column(WEIGHT).to_pylist(), strict=True)
        keys = (key for batch in rows.to_batches() for key in _keys(in_one_form(batch).columns))
        for key, (number, weight) in zip(keys, at, strict=True):
            numbers[key, weight].append(number)
        values = [list({repr(value): value for value in array.to_pylist()}.values()) for array in arrays]
        return cls(form, numbers, values)

    def narrowed(self, frame: DataFrame, *, by_time: bool = True) -> DataFrame:
        """Those rows of a result that may be wanted.

        Args:
            frame: the result; its columns are `c0`, `c1`..., others may follow.
            by_time: whether times are looked at. Spark would compare times of sessions before rows become sessions.
        """
        for source, values in zip(self.form.sources, self.values, strict=True):
            if not by_time and isinstance(frame.schema[f"c{source}"].dataType, _times()):
                continue
            condition = _condition(frame, f"c{source}", values)
            if condition is not None:
                frame = frame.where(condition)
        return frame

    def keys_of(self, batch: pa.RecordBatch) -> list[Key]:
        """What tells the rows of a batch of a result apart."""
        names = [f"c{at}" for at in range(1 + max(self.form.sources))]
        return list(_keys(final_columns(in_one_form(batch.select(names)), self.form)))


def _keys(arrays: Iterable[pa.Array]) -> Iterable[Key]:
    return zip(*([repr(value) for value in array.to_pylist()] for array in arrays), strict=True)


def _condition(frame: DataFrame, name: str, values: Sequence[Any]) -> Column | None:
    """What rows with some values in a column have in common; None where that is not looked at."""
    from pyspark.sql import functions
    from pyspark.sql.types import BooleanType, DateType, DecimalType, IntegralType, StringType, TimestampType

    column, kind = frame[name], frame.schema[name].dataType
    some = [value for value in values if value is not None]
    nothing = [column.isNull()] if len(some) < len(values) else []
    if not some:
        return column.isNull()
    if isinstance(kind, TimestampType) and all(isinstance(value, datetime) for value in some):
        # Times are cut to milliseconds in slices.
        micros = [(value - _EPOCH) // timedelta(microseconds=1) for value in some]
        least, most = (functions.timestamp_micros(functions.lit(at)) for at in (min(micros), max(micros) + 1_000))
        found = (column >= least) & (column < most)
        if 1 < len(micros) <= _MOST_VALUES:
            found &= functions.unix_millis(column).isin([at // 1_000 for at in micros])
    elif isinstance(kind, (IntegralType, StringType, DateType, DecimalType, BooleanType)) and _are_simple(some):
        if len(some) <= _MOST_VALUES:
            found = column == functions.lit(some[0]) if len(some) == 1 else column.isin(some)
        else:
            found = (column >= functions.lit(min(some))) & (column <= functions.lit(max(some)))
    else:
        return None
    return found | nothing[0] if nothing else found


def _times() -> tuple[type, ...]:
    from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

    return DateType, TimestampType, TimestampNTZType


def _are_simple(values: Sequence[Any]) -> bool:
    return all(isinstance(value, _SIMPLE) and not isinstance(value, datetime) for value in values)
