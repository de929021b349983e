"""Changelogs as plain tables: the current state of a changelog, each row as often as it is present.

A row counts +1 for `+A` and `+C`, -1 for `-R` and `-C`. The sum over identical rows is how often the row is present;
below zero, it was retracted more often than it was added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa

from odfpy.data.slices.parquet_io import open_parquet
from odfpy.data.vocabulary import OperationType
from odfpy.engine.bounds import bounds_of
from odfpy.engine.lateness.policy import Late
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns
from odfpy.engine.spark.plan.same_bytes import summed_by_row
from odfpy.engine.spark.rows.tables import Table, scan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

WEIGHT: Final = "__odf_weight"
"""How often a row is present."""

Field: TypeAlias = tuple[str, bool]
"""The name of a column, and whether it may be null."""

_TAKES_AWAY: Final = tuple(int(kind) for kind in OperationType if kind.weight < 0)


@dataclass(frozen=True)
class Log:
    """The changelog of a dataset, with its schema.

    Attributes:
        rows: all of its columns, in the order of the schema.
        schema: of the dataset.
        table: what it was read from.
    """

    rows: DataFrame
    schema: pa.Schema
    table: Table

    @property
    def names(self) -> list[str]:
        """Return the data columns, event time included."""
        vocab = self.table.vocab
        hidden = vocab.changelog_columns
        return [name for name in self.schema.names if name not in hidden]

    @property
    def fields(self) -> list[Field]:
        """Return the data columns with their nullability, as queries see them."""
        return [(name, self.schema.field(name).nullable) for name in self.names]

    @property
    def is_append_only(self) -> bool:
        """True if the files show that nothing was ever retracted."""
        column, wanted = self.table.vocab.operation_type_column, int(OperationType.APPEND)
        return all(
            extremes == (wanted, wanted) for path in self.table.data_paths for extremes in bounds_of(path, column)
        )


def read_log(catalyst: Catalyst, table: Table, scratch: Path, late: Late = Late.CORRECTED) -> Log:
    """Return the changelog of a table with the late entries that a query wants; raises the errors of `scan`.

    Args:
        catalyst: access to Catalyst.
        table: the table.
        scratch: a folder for temporary files.
        late: the policy for its late entries.
    """
    rows = catalyst.dataframe(scan(catalyst, table, scratch))
    if late is not Late.CORRECTED and table.data_paths:
        rows = _chosen(rows, table, late)
    return Log(rows, table.schema(), table)


def _chosen(rows: DataFrame, table: Table, late: Late) -> DataFrame:
    """Return the late entries, which came behind the watermark that their input had then, or all others."""
    from pyspark.sql import functions

    ranges = ", ".join(f"({first}L, {last}L, {limit}L)" for first, last, limit in _ranges(table))
    if not ranges:
        return rows if late is Late.IGNORED else rows.limit(0)
    limits = rows.sparkSession.sql(f"SELECT * FROM VALUES {ranges} AS t(__odf_first, __odf_last, __odf_limit)")  # noqa: S608
    offset, time = (_column(name) for name in (table.vocab.offset_column, table.vocab.event_time_column))
    came_late = (
        (offset >= functions.col("__odf_first"))
        & (offset <= functions.col("__odf_last"))
        & (functions.unix_micros(time.cast("timestamp")) <= functions.col("__odf_limit"))
    )
    return rows.join(functions.broadcast(limits), came_late, "left_anti" if late is Late.IGNORED else "left_semi")


def _ranges(table: Table) -> list[tuple[int, int, int]]:
    """Return ranges of offsets that came when there was a watermark: first, last, and the watermark in microseconds."""
    known = {arrival.path: arrival.watermark.millis * 1_000 for arrival in table.arrivals}
    ranges, start = [], 0
    for path in table.data_paths:  # slices follow each other from the first row on
        with open_parquet(path) as file:
            end = start + file.metadata.num_rows
        if path in known:
            ranges.append((start, end - 1, known[path]))
        start = end
    return ranges


def state_of(catalyst: Catalyst, log: Log) -> DataFrame:
    """Return the state of a changelog: columns `c0`, `c1`... and a weight that is never 0; floats normalized."""
    from pyspark.sql import functions

    names = [f"c{at}" for at in range(len(log.names))]
    op = _column(log.table.vocab.operation_type_column)
    weight = functions.when(op.isin(*_TAKES_AWAY), -1).otherwise(1)
    rows = log.rows.select(*(_column(name) for name in log.names), weight.alias(WEIGHT)).toDF(*names, WEIGHT)
    rows = normalize_floats(catalyst, rows)
    if log.is_append_only:
        return rows
    # Below the fence, a condition of the query could fail for a row that was retracted.
    return catalyst.dataframe(Builder(catalyst).fence(catalyst.plan(net(rows))))


def net(rows: DataFrame) -> DataFrame:
    """Return distinct rows with the sum of their weights, unless that is 0."""
    from pyspark.sql import functions

    names = [name for name in rows.columns if name != WEIGHT]
    summed = summed_by_row(rows, names, {WEIGHT: functions.sum(WEIGHT)})
    return summed.where(functions.col(WEIGHT) != 0)


def repeated(state: DataFrame, sign: int = 1) -> DataFrame:
    """Return each row as often as it is present; with sign -1, as often as it was retracted while absent."""
    from pyspark.sql import functions

    times = functions.col(WEIGHT) * sign
    each = state.where(times > 0).withColumn(WEIGHT, functions.explode(functions.sequence(functions.lit(1), times)))
    return each.drop(WEIGHT)


def num_taken_back(state: DataFrame) -> int:
    """Return how many rows were retracted while they were absent."""
    from pyspark.sql import functions

    ((count,),) = state.where(f"{WEIGHT} < 0").agg(functions.sum(-functions.col(WEIGHT))).collect()
    return int(count or 0)


def normalize_floats(catalyst: Catalyst, rows: DataFrame) -> DataFrame:
    """Replace -0.0 by 0.0 and every NaN by the same one, since sorting treats them as equal."""
    plan, build = catalyst.plan(rows), Builder(catalyst)
    normalized = [catalyst.alias(build.one_form(column), column.name()) for column in columns(plan)]
    return catalyst.dataframe(catalyst.project(normalized, plan))


def under_query_names(catalyst: Catalyst, rows: Node, fields: Sequence[Field], marks: Sequence[Node] = ()) -> Node:
    """Return a plan under the column names that queries use.

    Args:
        catalyst: the session.
        rows: a plan with as many columns as there are fields, and perhaps others.
        fields: their names, and whether they may be null.
        marks: further columns.
    """
    shown = [
        catalyst.alias(column if nullable else catalyst.never_null(column), name)
        for (name, nullable), column in zip(fields, columns(rows), strict=False)
    ]
    return catalyst.project([*shown, *marks], rows)


def sort_key(rows: DataFrame, name: str) -> Column:
    """Return the sort key of a column; maps, which have no order, are sorted as text."""
    from pyspark.sql import functions

    column = _column(name)
    has_order = "map<" not in rows.schema[name].dataType.simpleString()
    return column if has_order else functions.to_json(functions.struct(column))


def quoted(name: str) -> str:
    """Return a column's name quoted for Spark's functions, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def _column(name: str) -> Column:
    from pyspark.sql import functions

    return functions.col(quoted(name))
