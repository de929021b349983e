"""Temporal tables in Spark: the versions of a changelog, or of a table of which each row begins a version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.data.vocabulary import OperationType
from odfpy.engine.spark.batch.logs import BRANCH, COMMIT, MARKS, OFFSET, OPERATION, SOURCE
from odfpy.engine.spark.batch.tables import sort_key
from odfpy.engine.spark.batch.versions import VALID_FROM, VALID_TO, Entry, versions_of, with_commits
from odfpy.engine.spark.plan.types import arrow_schema
from odfpy.engine.spark.process.shared_files import read_parquet
from odfpy.engine.spark.rows.write import batches_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIME: Final = "__odf_time"
_TYPE: Final = pa.timestamp("us", "UTC")
_ROWS_AT_ONCE: Final = 10_000
_Row = Mapping[str, Any]


def versions_of_log(log: DataFrame, by: Sequence[str], time: str, path: Path) -> DataFrame:
    """Return the versions that result from a changelog: columns `c0`, `c1`..., then the bounds of their validity.

    Args:
        log: these columns, with the marks of a log.
        by: those of the columns that form the primary key.
        time: the one that is the event time.
        path: a new file for the versions.
    """
    from pyspark.sql import functions

    names = [name for name in log.columns if name not in (*MARKS, BRANCH)]
    moment = functions.unix_micros(functions.col(time).cast("timestamp"))
    rows = log.withColumn(_TIME, moment).withColumn(COMMIT, functions.unix_micros(COMMIT)).where(f"{_TIME} IS NOT NULL")
    known = _event_times(rows)

    def entry(row: _Row) -> Entry:
        data = tuple(row[name] for name in names)
        place = (row[SOURCE], row[OFFSET])
        return Entry(data, row[_TIME], OperationType(row[OPERATION]), row[COMMIT], place, known[row[COMMIT]])

    order = (sort_key(rows, name) for name in (*by, COMMIT, SOURCE, OFFSET, BRANCH, *names))
    return _materialize(rows.orderBy(*order), names, by, entry, path)


def versions_of_state(state: DataFrame, by: Sequence[str], time: str, path: Path) -> DataFrame:
    """Return the versions of a table whose rows each begin one; of several at one time, the greatest wins.

    Greatest means by all columns. The table has no marks, unlike the log above.

    Args:
        state: the rows of the table.
        by: names of the key columns.
        time: name of the event time.
        path: the file.
    """
    from pyspark.sql import functions

    names = list(state.columns)
    rows = state.withColumn(_TIME, functions.unix_micros(functions.col(time).cast("timestamp")))
    rows = rows.where(f"{_TIME} IS NOT NULL").orderBy(*(sort_key(rows, name) for name in (*by, *names)))

    def entry(row: _Row) -> Entry:
        return Entry(tuple(row[name] for name in names), row[_TIME], OperationType.APPEND, 0, (0, 0), None)

    return _materialize(rows, names, by, entry, path)


def _event_times(log: DataFrame) -> dict[int, int | None]:
    """Return the event time assigned to each commit."""
    from pyspark.sql import functions

    gains = [int(kind) for kind in OperationType if kind.weight > 0]
    brought = functions.max(functions.when(functions.col(OPERATION).isin(*gains), functions.col(_TIME)))
    commits = log.groupBy(COMMIT).agg(brought.alias(_TIME)).orderBy(COMMIT).collect()
    return with_commits([(row[0], row[1]) for row in commits])


def _materialize(
    rows: DataFrame, names: Sequence[str], by: Sequence[str], entry: Callable[[_Row], Entry], path: Path
) -> DataFrame:
    """Write the versions of all keys to a file and read it, so that only one key at a time is in memory."""
    from pyspark.sql.types import StructField, StructType, TimestampType

    fields = rows.schema.fields[: len(names)]
    schema = StructType([*fields, *(StructField(name, TimestampType()) for name in (VALID_FROM, VALID_TO))])
    fields_of_data = arrow_schema(StructType(fields))
    number_schema = pa.schema([*fields_of_data, (VALID_FROM, pa.int64()), (VALID_TO, pa.int64())])
    file_schema = pa.schema([*fields_of_data, (VALID_FROM, _TYPE), (VALID_TO, _TYPE)])
    groups = groupby(_each(rows), key=lambda row: [repr(row[name]) for name in by])
    versions = (
        (*data, begin, end) for _, same in groups for data, begin, end in versions_of([entry(row) for row in same])
    )
    with pq.ParquetWriter(path, file_schema) as writer:
        while part := list(islice(versions, _ROWS_AT_ONCE)):
            arrays = [
                pa.array(values, field.type)
                for values, field in zip(zip(*part, strict=True), number_schema, strict=True)
            ]
            writer.write_table(pa.table(arrays, schema=number_schema).cast(file_schema))
    return read_parquet(rows.sparkSession, schema, [str(path)])


def _each(frame: DataFrame) -> Iterator[_Row]:
    for batch in batches_of(frame):
        yield from batch.to_pylist()
