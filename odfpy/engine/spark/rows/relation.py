"""Parquet files as a leaf of a plan."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.engine.spark.plan.catalyst import Catalyst, Node
from odfpy.engine.spark.process.shared_files import on_cluster, read_parquet
from odfpy.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_SOURCES: Final = "org.apache.spark.sql.execution.datasources."


def nullable_schema(catalyst: Catalyst, schema: StructType) -> Node:
    """Return the Java form of a schema, all of whose columns may have nulls.

    Args:
        catalyst: access to Catalyst.
        schema: the schema.
    """
    return catalyst.java_class("org.apache.spark.sql.types.DataType").fromJson(schema.json()).asNullable()


def parquet_rows(catalyst: Catalyst, schema: StructType, paths: Iterable[str]) -> Node:
    """Return the rows of local Parquet files, all of whose columns may have nulls.

    Args:
        catalyst: access to Catalyst.
        schema: the schema of the rows.
        paths: the files.

    Raises:
        EngineError: a file is not there.
    """
    paths = list(paths)
    if on_cluster(catalyst.spark):
        return catalyst.plan(read_parquet(catalyst.spark, schema, paths))
    # The result of a DataFrameReader, without its search for the data source in all jars, and without an analysis. It
    # reports missing files, which the list of files that it makes would omit.
    for path in paths:
        if not Path(path).is_file():
            raise EngineError(f"The file {path} is not there", hint="It may have been removed during the run.")
    java, session, none = catalyst.java_class, catalyst.session, catalyst.nothing
    wanted = nullable_schema(catalyst, schema)
    options = catalyst.java_object("scala.collection.immutable.Map").empty()
    no_cache = catalyst.java_object(_SOURCES + "NoopCache")
    no_partitions = java(_SOURCES + "PartitionSpec").emptySpec()
    some = java("scala.Option").apply
    folders = catalyst.seq([java("org.apache.hadoop.fs.Path")(f"file://{path}") for path in paths])
    files = java(_SOURCES + "InMemoryFileIndex")(
        session, folders, options, some(wanted), no_cache, some(no_partitions), none
    )
    relation = java(_SOURCES + "HadoopFsRelation")(
        files,
        no_partitions.partitionColumns(),
        wanted,
        none,
        java(_SOURCES + "parquet.ParquetFileFormat")(),
        options,
        session,
    )
    return catalyst.java_object(_SOURCES + "LogicalRelation").apply(relation, False)
