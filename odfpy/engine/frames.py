"""Conversion of rows to DataFrames of the caller's own Spark session."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from odfpy.engine.contract import SqlTable
from odfpy.engine.sql.projection import SPARK
from odfpy.errors import SchemaError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql import DataFrame as DataFrame  # noqa: PLC0414  for those who call this
    from pyspark.sql import SparkSession as SparkSession  # noqa: PLC0414
    from pyspark.sql.types import DataType


def spark_frame(table: pa.Table, session: SparkSession | None = None) -> DataFrame:
    """Return rows as a DataFrame, with the types that the engine itself would use.

    Args:
        table: the rows.
        session: the session of the DataFrame; by default, the one that is active in this thread.

    Raises:
        UsageError: there is no session.
        SchemaError: a column has a type that Spark does not have; the message names it.
    """
    session = session or _active()
    if session is None:
        raise UsageError(
            "There is no Spark session for the DataFrame",
            hint="Pass one, to_spark(session), or create one first: SparkSession.builder.getOrCreate().",
        )
    from odfpy.engine.spark.plan.types import arrow_schema, struct_of

    schema = struct_of((field.name, _spark_type(field)) for field in table.schema)
    kinds = arrow_schema(schema).types
    columns = [_cast(*one) for one in zip(table.schema, table.columns, kinds, strict=True)]
    return session.createDataFrame(pa.Table.from_arrays(columns, names=table.column_names), schema)


def spark_frame_of_slices(
    source: SqlTable, columns: Sequence[tuple[str, str]], session: SparkSession | None = None
) -> DataFrame | None:
    """Return columns of a log as a DataFrame that reads the slices itself when it is used, without another process.

    Args:
        source: the log.
        columns: names of its columns, each with its name in the DataFrame.
        session: the session, as for `spark_frame`.

    Returns:
        None if the session cannot read them: it runs elsewhere, or lacks types of the slices.
    """
    from odfpy.engine.spark.plan.types import spark_schema, to_spark
    from odfpy.engine.spark.process.shared_files import read_parquet
    from odfpy.engine.spark.rows.tables import Table, lies_readable

    session = session or _active()
    if session is None or not _is_here(session):
        return None
    table = Table.of(source)
    offset = table.vocab.offset_column
    wanted = pa.schema([table.schema().field(name) for name in dict.fromkeys([offset, *(name for name, _ in columns)])])
    if len({name.lower() for name in wanted.names}) < len(wanted.names) or None in map(to_spark, wanted.types):
        return None
    if not all(lies_readable(path, wanted) for path in table.data_paths):
        return None
    rows = read_parquet(session, spark_schema(wanted, table.name), table.data_paths)
    if table.interval is not None:
        rows = rows.where(rows[SPARK.name(offset)] <= table.interval.end)
    return rows.select(
        [_unpruned(rows[SPARK.name(name)], wanted.field(name).type).alias(shown) for name, shown in columns]
    )


def _unpruned(column: Column, kind: pa.DataType) -> Column:
    """Return the same values, so that Spark does not compare fractions with statistics, which ignore NaN."""
    from pyspark.sql import functions

    return functions.nanvl(column, column) if pa.types.is_floating(kind) else column


def _is_here(session: SparkSession) -> bool:
    """Return whether its tasks see the files of this machine; False for Spark Connect, where that is unknown."""
    from pyspark.errors import PySparkException

    from odfpy.engine.spark.process.shared_files import on_cluster

    try:
        return not on_cluster(session)
    except PySparkException:
        return False


def _active() -> SparkSession | None:
    """Return the session of this thread; None if PySpark has not been imported."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    session: SparkSession | None = SparkSession.getActiveSession()
    return session


def _spark_type(field: pa.Field) -> DataType:
    from odfpy.engine.spark.plan.types import to_spark

    kind = to_spark(field.type)
    if kind is None:
        raise _not_taken(field, "there is no such type")
    return kind


def _cast(field: pa.Field, column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    from odfpy.engine.spark.plan.types import cast_to_spark

    try:
        return cast_to_spark(column, kind)
    except pa.ArrowException as error:
        raise _not_taken(field, str(error)) from error


def _not_taken(field: pa.Field, why: str) -> SchemaError:
    return SchemaError(
        f"Spark does not support the column {field.name!r} of type {field.type}: {why}",
        hint="Omit it, or convert it in the query with CAST.",
    )
