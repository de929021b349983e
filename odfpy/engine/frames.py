"""Rows as a frame of a Spark that is not ours: the session of whoever asks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pyarrow as pa

from odfpy.engine.spark.handed import handed_type
from odfpy.errors import SchemaError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame as DataFrame  # noqa: PLC0414  for those who call this
    from pyspark.sql import SparkSession as SparkSession  # noqa: PLC0414


def spark_frame(table: pa.Table, session: SparkSession | None = None) -> DataFrame:
    """Rows as a DataFrame, in the types in which the engine itself would give them.

    Args:
        table: the rows.
        session: whose frame it becomes; the session that is active in this thread by default.

    Raises:
        UsageError: there is no session.
        SchemaError: a column has a type that Spark does not have; the message names it.
    """
    session = session or _active()
    if session is None:
        raise UsageError(
            "There is no Spark session for the DataFrame",
            hint="Pass one, to_spark(session), or make one first: SparkSession.builder.getOrCreate().",
        )
    from odfpy.engine.spark.types import struct_of, to_spark

    columns = [_as_spark_has_it(field, column) for field, column in zip(table.schema, table.columns, strict=True)]
    kinds = [(name, to_spark(column.type)) for name, column in zip(table.column_names, columns, strict=True)]
    schema = struct_of((name, kind) for name, kind in kinds if kind is not None)
    return session.createDataFrame(pa.Table.from_arrays(columns, names=table.column_names), schema)


def _active() -> SparkSession | None:
    """The session of this thread. Who has not imported PySpark has none."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.sql import SparkSession

    found: SparkSession | None = SparkSession.getActiveSession()
    return found


def _as_spark_has_it(field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = field.type if pa.types.is_map(field.type) else handed_type(field.type)
    try:
        if kind is None:
            raise pa.ArrowNotImplementedError("there is no such type")
        # Spark counts microseconds: what is finer is cut off, as the engine does.
        return column.cast(kind, safe=not pa.types.is_timestamp(kind))
    except pa.ArrowException as error:
        raise SchemaError(
            f"Spark does not take the column {field.name!r} of type {field.type}: {error}",
            hint="Leave it out, or convert it in the query with CAST.",
        ) from error
