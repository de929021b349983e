"""Comparison of an output with the expected output: by key if it has one, otherwise by whole rows.

Both are cast to the types of the output and counted row by row, in Spark; only rows whose counts differ are fetched. Of
these, rows that differ in nothing but the last digits of fractions count as equal.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from odfpy.data.rows.plain_values import columns_of, plain
from odfpy.data.schemas.primary_key import primary_key_of
from odfpy.engine.contract import OutputSoFar, TransformRequest
from odfpy.engine.spark.batch.answer import Answer
from odfpy.engine.spark.batch.approximate import ApproximateComparison
from odfpy.engine.spark.batch.request import BatchAnswer, Difference, Kind
from odfpy.engine.spark.batch.tables import WEIGHT, Log, normalize_floats, quoted, read_log, sort_key, state_of
from odfpy.engine.spark.plan.catalyst import Catalyst
from odfpy.engine.spark.plan.same_bytes import summed_by_row
from odfpy.engine.spark.plan.types import arrow_schema
from odfpy.engine.spark.process.session import request_session
from odfpy.engine.spark.rows.tables import Table
from odfpy.engine.spark.rows.write import batches_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_ACTUAL: Final = "__odf_found"
_EXPECTED: Final = "__odf_expected"


def differences(
    spark: SparkSession, run: TransformRequest, output: OutputSoFar, answer: Answer, scratch: Path, most: int
) -> BatchAnswer:
    """Compare the current state of an output with the expected state.

    Args:
        spark: a session with the engine's settings.
        run: the transform, with the names of the output's columns and its key.
        output: the output so far.
        answer: the expected output.
        scratch: a folder for temporary files.
        most: the maximum number of listed differences; all are counted.
    """
    from pyspark import StorageLevel
    from pyspark.sql import functions

    catalyst = Catalyst(request_session(spark))
    log = read_log(catalyst, Table("the output", run.vocab, output.schema_file, output.data_paths), scratch)
    found = state_of(catalyst, log)
    expected = normalize_floats(catalyst, _in_form_of(log, found, answer.rows))
    names = found.columns[:-1]
    nothing, weight = functions.lit(0), functions.col(WEIGHT)
    both_sides = found.select(*names, weight.alias(_ACTUAL), nothing.alias(_EXPECTED)).union(
        expected.select(*names, nothing, weight)
    )
    counted = summed_by_row(both_sides, names, {side: functions.sum(side) for side in (_ACTUAL, _EXPECTED)})
    counted = counted.persist(StorageLevel.DISK_ONLY)
    try:
        ((num_found, num_expected),) = counted.agg(functions.sum(_ACTUAL), functions.sum(_EXPECTED)).collect()
        tally = _Tally(log, primary_key_of(run.recorded_schema) if run.recorded_schema else None, most)
        tally.look_at(counted.where(f"{_ACTUAL} <> {_EXPECTED}"), counted)
    finally:
        counted.unpersist()
    return BatchAnswer(
        found=max(num_found or 0, 0),
        expected=max(num_expected or 0, 0),
        missing=tally.counts[Kind.MISSING],
        extra=tally.counts[Kind.EXTRA],
        differing=tally.counts[Kind.DIFFERS],
        differences=tuple(tally.listed),
        taken_back=sum(answer.taken_back.values()),
        remarks=_remarks(log, answer),
    )


def _in_form_of(log: Log, found: DataFrame, rows: DataFrame) -> DataFrame:
    """Cast rows to the columns and types of an output: times cut to milliseconds, columns of earlier queries empty."""
    from pyspark.sql import functions
    from pyspark.sql.types import TimestampNTZType, TimestampType

    types = {field.name: field.dataType for field in rows.schema.fields}

    def column(name: str, wanted: Any) -> Column:
        if name not in types:
            return functions.lit(None).cast(wanted)
        value = functions.col(quoted(name))
        if isinstance(types[name], (TimestampType, TimestampNTZType)):
            value = functions.date_trunc("millisecond", value.cast("timestamp"))
        return value.cast(wanted)

    pairs = zip(log.names, found.schema.fields, strict=False)
    return rows.select(*(column(name, field.dataType).alias(field.name) for name, field in pairs), WEIGHT)


def _remarks(log: Log, answer: Answer) -> tuple[str, ...]:
    remarks = [
        f"`{alias}` takes back {count} row{'s' if count > 1 else ''} that it does not have, so that it is not said what"
        " a group with them comes to"
        for alias, count in answer.taken_back.items()
    ]
    more = sorted({*answer.rows.columns} - {*log.names, WEIGHT})
    if more:
        remarks.append(f"The query gives columns that the dataset does not have: {', '.join(more)}")
    return tuple(remarks)


@dataclass
class _Row:
    """A row that occurs too often, or not often enough."""

    values: Sequence[Any]
    count: int
    batch: pa.RecordBatch
    at: int


@dataclass
class _Tally:
    """Counts of missing, extra and differing rows, and a list of the first ones."""

    log: Log
    key: tuple[str, ...] | None
    most: int
    counts: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0))
    listed: list[Difference] = field(default_factory=list)

    def look_at(self, differing: DataFrame, rows: DataFrame) -> None:
        """Examine the rows whose counts differ, out of all rows of both sides."""
        names, schema = differing.columns[:-2], arrow_schema(differing.schema)
        nearness = ApproximateComparison(pa.schema(list(schema)[: len(names)]), [None] * len(names))
        if nearness.fractions and not differing.isEmpty():
            nearness = ApproximateComparison(pa.schema(list(schema)[: len(names)]), _greatest(rows, names))
        named = self.log.names
        keys = nearness.exact if self.key is None else [named.index(name) for name in self.key]
        by = [at for at in keys if at in nearness.exact]
        ordered = differing.orderBy(*(sort_key(differing, name) for name in (*(names[at] for at in by), *names)))
        for _, same in groupby(_rows(ordered), key=lambda row: [repr(row.values[at]) for at in by]):
            self._look_at_group(list(same), nearness)

    def _look_at_group(self, rows: Sequence[_Row], nearness: ApproximateComparison) -> None:
        extra, missing = ([row for row in rows if row.count * sign > 0] for sign in (1, -1))
        for surplus in extra:
            for other in missing:
                if surplus.count and other.count and not nearness.differing(surplus.values, other.values):
                    matched = min(surplus.count, -other.count)
                    surplus.count, other.count = surplus.count - matched, other.count + matched
        extra, missing = ([row for row in side if row.count] for side in (extra, missing))
        if self.key is not None:
            while extra and missing:
                self._differs(extra.pop(0), missing.pop(0), nearness)
        for row in missing:
            self._note(Kind.MISSING, expected=row)
        for row in extra:
            self._note(Kind.EXTRA, found=row)

    def _differs(self, found: _Row, expected: _Row, nearness: ApproximateComparison) -> None:
        positions = nearness.differing(found.values, expected.values)
        self._note(Kind.DIFFERS, expected=expected, found=found, columns=[self.log.names[at] for at in positions])

    def _note(
        self, kind: Kind, *, expected: _Row | None = None, found: _Row | None = None, columns: Iterable[str] = ()
    ) -> None:
        count = max(abs(row.count) for row in (expected, found) if row is not None)
        self.counts[kind] += count
        if len(self.listed) >= self.most:
            return
        cells = [None if row is None else self._cells(row) for row in (expected, found)]
        shown = cells[1] or cells[0] or {}
        key = {name: shown[name] for name in self.key or ()}
        texts = [None if cell is None else json.dumps(cell, ensure_ascii=False) for cell in cells]
        self.listed.append(
            Difference(kind, json.dumps(key, ensure_ascii=False), texts[0], texts[1], tuple(columns), count)
        )

    def _cells(self, row: _Row) -> dict[str, Any]:
        """Return a row as `odf -o json` prints it, in the types of the output."""
        names = self.log.names
        part = pa.Table.from_batches([row.batch.slice(row.at, 1)]).select(list(range(len(names))))
        typed = part.rename_columns(names).cast(pa.schema([(name, self.log.schema.field(name).type) for name in names]))
        return {name: plain(cells[0]) for name, cells in zip(names, columns_of(typed), strict=True)}


def _greatest(rows: DataFrame, names: Sequence[str]) -> list[float | None]:
    """Return the greatest absolute value of each column of fractions; None for other columns."""
    from pyspark.sql import functions
    from pyspark.sql.types import DoubleType, FloatType

    def greatest(name: str) -> Column:
        if not isinstance(rows.schema[name].dataType, (DoubleType, FloatType)):
            return functions.lit(None).cast("double")
        value = functions.abs(functions.col(name).cast("double"))
        return functions.max(functions.when(value < float("inf"), value))  # Spark sorts NaN above all

    (row,) = rows.agg(*(greatest(name).alias(name) for name in names)).collect()
    return list(row)


def _rows(frame: DataFrame) -> Iterator[_Row]:
    for batch in batches_of(frame):
        columns = [column.to_pylist() for column in batch.columns]
        for at, (*values, found, expected) in enumerate(zip(*columns, strict=True)):
            yield _Row(values, found - expected, batch, at)
