"""The oracle: the text of a query, run by plain Spark over the state of its inputs (ADR 0013, "Streams and states").

Nothing of the incremental engine is used here: changelogs are netted in Python, and Spark gets tables without any
operation types.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from support.engine.requests import SYMBOLS, TIME
from support.queries.cases import Case, Row, shown

from odfpy.data.vocabulary import OperationType
from odfpy.engine.spark.plan.catalyst import Catalyst
from odfpy.engine.spark.plan.session_windows import with_fences

_NEVER = "0001-01-01"
_NAN = float("nan")


def net(rows: Iterable[Row]) -> Counter[Row]:
    """Return the multiset of a changelog; retractions of missing rows have negative counts."""
    counts: Counter[Row] = Counter()
    for op, *data in rows:
        counts[tuple(_one_form(value) for value in data)] += OperationType(SYMBOLS[op]).weight
    return Counter({row: count for row, count in counts.items() if count})


def _one_form(value: Any) -> Any:
    if isinstance(value, float):
        return _NAN if math.isnan(value) else value + 0.0
    return tuple(_one_form(one) for one in value) if isinstance(value, list) else value


def state_of(rows: Iterable[Row]) -> Counter[str]:
    """Return the state of an output's rows, as text; negative if more is retracted than was there."""
    counts: Counter[str] = Counter()
    for op, *values in rows:
        counts[_line(values)] += OperationType(SYMBOLS[op]).weight
    return Counter({line: count for line, count in counts.items() if count})


def _line(values: Iterable[Any]) -> str:
    """Return a row as text; sums of floating point numbers may differ in the last digits from those of plain Spark."""
    return " ".join(shown(_rounded(value)) for value in values)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value + 0.0:.12g}")
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, (list, tuple)) else value


class Oracle:
    """Answers of plain Spark."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._files = 0

    def answer(self, case: Case, rows: Mapping[str, Sequence[Row]], watermarks: Mapping[str, str]) -> Counter[str]:
        """Return the batch answer, as far as the watermarks have closed it.

        Args:
            case: the query, and which rows are closed.
            rows: all rows so far of each input, as a changelog.
            watermarks: known watermarks of the inputs.
        """
        spark = self._spark.newSession()
        times = {alias: watermarks.get(alias, _NEVER) for alias in case.inputs} | {
            "watermark": min(watermarks.get(alias, _NEVER) for alias in case.inputs)
        }
        for alias, fields in case.inputs.items():
            path = self._write(fields, net(rows[alias]))
            self._see(spark, alias, spark.read.parquet(path), case, times)
        for alias, query in case.steps[:-1]:
            self._see(spark, alias, _asked(spark, query), case, times)
        self._see(spark, "result", _asked(spark, case.steps[-1][1]), case, times)
        names = sorted(spark.table("result").columns, key=lambda name: name != "event_time")
        table = spark.table("result").select(*names).toArrow()
        return Counter(_line(row) for row in zip(*(_values(column) for column in table.columns), strict=True))

    def _write(self, fields: Sequence[pa.Field], state: Counter[Row]) -> str:
        rows = [row for row, count in state.items() for _ in range(count)]
        schema = pa.schema([pa.field("event_time", TIME), *fields])
        columns = [pa.array([row[at] for row in rows], one.type) for at, one in enumerate(schema)]
        path = self._folder / f"state-{self._files}.parquet"
        self._files += 1
        pq.write_table(pa.table(columns, schema=schema), path)
        return str(path)

    @staticmethod
    def _see(spark: Any, name: str, frame: Any, case: Case, times: Mapping[str, str]) -> None:
        condition = case.closed.get(name)
        if condition is not None:
            for alias in sorted(times, key=len, reverse=True):
                condition = condition.replace(f":{alias}", f"timestamp'{times[alias]}'")
            frame = frame.where(condition)
        frame.createOrReplaceTempView(f"`{name}`")


def _asked(spark: Any, query: str) -> Any:
    """Return the rows of a query; Spark's optimizer would move filters into sessions, which is tested by itself."""
    frame = spark.sql(query)
    if "session_window" not in query:
        return frame
    catalyst = Catalyst(spark)
    return catalyst.dataframe(with_fences(catalyst, catalyst.plan(frame)))


def _values(column: pa.ChunkedArray) -> list[Any]:
    return [_in_millis(value) for value in column.to_pylist()]


def _in_millis(value: Any) -> Any:
    """Times as slices have them: cut to milliseconds."""
    if isinstance(value, datetime):
        return value - timedelta(microseconds=value.microsecond % 1000)
    return value
