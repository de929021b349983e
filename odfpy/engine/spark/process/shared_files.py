"""Files for executors: in place if executors see the folder, or through a storage that they reach.

Spark itself reads files from the storage, so any Hadoop file system will do. Slices are named by the hash of their
content; they stay there, and are copied once. Other files are removed after the request.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

STORAGE: Final = "spark.odfpy.storage"
"""Property with the URL of the storage, if there is one."""

_BY_CONTENT: Final = re.compile(r"f[0-9a-f]{64,}")


def on_cluster(spark: SparkSession) -> bool:
    """Return whether tasks run on a cluster."""
    return not str(spark.sparkContext.master).startswith("local")


def storage_of(spark: SparkSession) -> str | None:
    """URL of the storage through which executors get files; None if they see the workspace."""
    return (spark.conf.get(STORAGE, "") or None) if on_cluster(spark) else None


def read_parquet(spark: SparkSession, schema: StructType, paths: Iterable[str]) -> DataFrame:
    """Return the rows of local Parquet files, read by executors; no character of a path is special.

    Args:
        spark: the session.
        schema: the schema of the rows.
        paths: the files.
    """
    reader = spark.read.schema(schema).option("__globPaths__", "false")
    return reader.parquet(*for_executors(spark, paths))


def for_executors(spark: SparkSession, paths: Iterable[str]) -> list[str]:
    """Return the paths of local files for executors.

    Raises:
        Py4JJavaError: the storage does not accept a file.
    """
    if not on_cluster(spark):
        return list(paths)
    storage = storage_of(spark)
    if storage is None:  # and not in the default file system of a cluster
        return [f"file://{path}" for path in paths]
    return [_descriptor(spark, storage.rstrip("/"), path) for path in paths]


def forget(spark: SparkSession) -> None:
    """Remove files from the storage that were only needed for one request."""
    storage = storage_of(spark)
    if storage is not None:
        folder = _path(spark, _scratch(spark, storage.rstrip("/")))
        folder.getFileSystem(_configuration(spark)).delete(folder, True)


def _descriptor(spark: SparkSession, storage: str, path: str) -> str:
    name, size = Path(path).name, Path(path).stat().st_size
    keep = _BY_CONTENT.fullmatch(name) is not None
    place = f"{storage}/slices/{name}" if keep else f"{_scratch(spark, storage)}/{uuid.uuid4().hex}"
    target = _path(spark, place)
    files = target.getFileSystem(_configuration(spark))
    if keep and files.exists(target) and files.getFileStatus(target).getLen() == size:
        return place
    # Under a temporary name first: readers assume that a slice under its final name is complete. An existing file is
    # deleted first, since Hadoop's `rename` replaces none.
    coming = _path(spark, f"{_scratch(spark, storage)}/{uuid.uuid4().hex}-coming")
    files.copyFromLocalFile(False, True, _path(spark, f"file://{path}"), coming)
    files.mkdirs(target.getParent())
    files.delete(target, False)
    files.rename(coming, target)
    return place


def _scratch(spark: SparkSession, storage: str) -> str:
    return f"{storage}/scratch/{spark.sparkContext.applicationId}"


def _path(spark: SparkSession, place: str) -> Any:
    return spark._jvm.org.apache.hadoop.fs.Path(place)  # type: ignore[union-attr]  # noqa: SLF001


def _configuration(spark: SparkSession) -> Any:
    return spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
