"""Parquet files as a leaf of a plan."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.engine.spark.plan.catalyst import Catalyst, Node
from odfpy.engine.spark.process.shared_files import on_cluster, read_parquet
from odfpy.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_DATA_TYPE: Final = "org.apache.spark.sql.types.DataType"
_SOURCES: Final = "org.apache.spark.sql.execution.datasources."


def nullable_schema(catalyst: Catalyst, schema: StructType) -> Node:
    """A schema as Java has it, all of whose columns may have nulls.

    Args:
        catalyst: access to Catalyst.
        schema: the schema.
    """
    return catalyst.java_class(_DATA_TYPE).fromJson(schema.json()).asNullable()


def parquet_rows(
    catalyst: Catalyst, schema: StructType, paths: Iterable[str], *, required: Collection[str] = ()
) -> Node:
    """The rows of Parquet files of this machine.

    Args:
        catalyst: access to Catalyst.
        schema: the schema of the rows; whatever it says of them, all other columns may have nulls.
        paths: the files.
        required: columns that have no nulls. A condition on one of them is compared with the statistics of a file;
            where the plan has to say so above the file (`KnownNotNull`), it is not.

    Raises:
        EngineError: a file is not there.
    """
    paths = list(paths)
    if on_cluster(catalyst.spark):
        return catalyst.plan(read_parquet(catalyst.spark, schema, paths))
    # What a DataFrameReader comes to in the end, without the search for a source of that name in all jars, and without
    # an analysis. It says if a file is missing; the list of files that it makes leaves it out.
    for path in paths:
        if not Path(path).is_file():
            raise EngineError(f"The file {path} is not there", hint="Has somebody removed it during the run?")
    java, session, none = catalyst.java_class, catalyst.session, catalyst.nothing
    wanted = _schema_with(catalyst, schema, required)
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


def _schema_with(catalyst: Catalyst, schema: StructType, required: Collection[str]) -> Node:
    """A schema as Java has it, with some columns that have no nulls."""
    if not required:
        return nullable_schema(catalyst, schema)
    said = schema.jsonValue()
    for field in said["fields"]:
        field["nullable"] = field["name"] not in required
    return catalyst.java_class(_DATA_TYPE).fromJson(json.dumps(said))
