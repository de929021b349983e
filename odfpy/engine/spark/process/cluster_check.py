"""Checks of a cluster before its first job: executors must see the files, and have the same versions.

Any difference would otherwise show later: as an obscure error in the middle of a pull, or as different rows.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from odfpy.engine.spark.plan.failures import cause_of
from odfpy.engine.spark.process.cluster import PAGE
from odfpy.engine.spark.process.shared_files import for_executors, forget, storage_of
from odfpy.errors import EngineUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Seen = Mapping[str, str | None]

_MAX_TASKS: Final = 1000
_PROPERTIES: Final = {"java.specification.version": "Java", "user.timezone": "time zone", "file.encoding": "encoding"}
_PYTHON: Final = "spark.pyspark.python in the file of engine.properties says which Python executors take."


def check_cluster(spark: SparkSession, scratch: Path) -> None:
    """Check that a cluster can do the engine's work.

    Args:
        spark: the session.
        scratch: a folder of the workspace.

    Raises:
        EngineUnavailable: a check failed; the message says what, where and how to fix it.
    """
    with TemporaryDirectory(prefix="cluster-", dir=scratch) as folder:
        token = secrets.token_hex(16)
        (Path(folder) / "token").write_text(token, "utf-8")
        shown = None if storage_of(spark) else folder
        own_view, views = _views(spark, shown, token)
        check_packages(own_view, views)
        if shown is not None:
            check_folder(scratch, views, {path.name for path in Path(shown).iterdir()})
        _check_java(spark, Path(folder), token)
    forget(spark)


def _views(spark: SparkSession, folder: str | None, token: str) -> tuple[Seen, list[Seen]]:
    """Return the view of this process and of every executor, including those that register in the meantime."""
    from pyspark import cloudpickle

    from odfpy.engine.spark.process import executor_view

    context, asked = spark.sparkContext, 0
    views: list[Seen] = []
    look = executor_view.describe_executor
    cloudpickle.register_pickle_by_value(executor_view)  # type: ignore[no-untyped-call]
    try:
        while (cores := min(context.defaultParallelism, _MAX_TASKS)) > asked:
            asked = cores
            views += context.parallelize(range(cores), cores).map(lambda _: look(folder, token)).collect()
    except Exception as error:
        raise _python_error(error, str(context.pythonExec)) from error
    finally:
        cloudpickle.unregister_pickle_by_value(executor_view)  # type: ignore[no-untyped-call]
    return look(None, token), views


def _python_error(error: Exception, python: str) -> EngineUnavailable:
    """Explain why not even the simplest function runs."""
    text = str(error)
    if "Cannot run program" in text:
        return EngineUnavailable(
            f"The executors of the cluster have no Python at {python}",
            hint=f"Install Python and odfpy there, as here. {_PYTHON} {PAGE}",
        )
    if "PYTHON_VERSION_MISMATCH" in text:
        return EngineUnavailable(
            f"The executors' Python {python} is of another version: {_line(text, 'VERSION_MISMATCH')}",
            hint=f"Install the same there. {_PYTHON} {PAGE}",
        )
    if "No module named" in text:
        return EngineUnavailable(
            f"The executors' Python {python} lacks a package: {_line(text, 'No module named')}",
            hint=f"Install odfpy there, with what it needs. {_PYTHON} {PAGE}",
        )
    cause = cause_of(error)
    return EngineUnavailable(f"The cluster did not run a first task: {cause}", hint=PAGE)


def _line(text: str, words: str) -> str:
    return next(line.strip() for line in text.splitlines() if words in line)


def check_packages(own_view: Seen, views: Iterable[Seen]) -> None:
    """Check that executors have the packages that the engine has.

    Args:
        own_view: result of `describe_executor` in the engine's process.
        views: results of `describe_executor` at the executors.

    Raises:
        EngineUnavailable: naming executor, package and versions.
    """
    for executor in views:
        for package in ("odfpy", "pyarrow", "numpy", "pandas"):
            if executor[package] == own_view[package]:
                continue
            difference = f"has {package} {executor[package]}" if executor[package] else f"has no {package}"
            raise EngineUnavailable(
                f"The executor {executor['who']} {difference} for its Python {executor['python']}, and the engine has"
                f" {package} {own_view[package]}: slices would not be the same",
                hint=f"Install the same versions on all machines of the cluster. {_PYTHON} {PAGE}",
            )


def check_folder(scratch: Path, views: Iterable[Seen], names: set[str]) -> None:
    """Check that executors have the folder that the engine has.

    Args:
        scratch: the folder that they looked at.
        views: results of `describe_executor` at the executors.
        names: names of the files visible here.

    Raises:
        EngineUnavailable: naming executor and folder.
    """
    for executor in views:
        trouble = executor["trouble"]
        if trouble is None and executor["wrote"] not in names:
            trouble = "it has another folder of that name"
        if trouble is not None:
            raise EngineUnavailable(
                f"The executor {executor['who']} does not share the folder of the workspace, {scratch}: {trouble}",
                hint="Put the workspace on storage that all machines of the cluster have under the same path, with a "
                "user that may write there; or name one that they reach: odf config set engine.storage "
                f"s3a://BUCKET/FOLDER. {PAGE}",
            )


def _check_java(spark: SparkSession, folder: Path, token: str) -> None:
    """Check that executors have the Java that engine versions name, and that it reads files that we write."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / "token.parquet"
    pq.write_table(pa.table({"token": [token]}), path)
    try:
        (file,) = for_executors(spark, [str(path)])
    except Exception as error:
        cause = cause_of(error)
        raise EngineUnavailable(
            f"The engine cannot write to engine.storage {storage_of(spark)}: {cause}",
            hint="Packages of Spark for that kind of storage, and its credentials, belong into the file of "
            f"engine.properties. {PAGE}",
        ) from error
    files = [file] * min(spark.sparkContext.defaultParallelism, _MAX_TASKS)
    selected = [f"reflect('java.lang.System', 'getProperty', '{name}')" for name in _PROPERTIES]
    system = spark._jvm.java.lang.System  # type: ignore[union-attr]  # noqa: SLF001
    own_values = [str(system.getProperty(name)) for name in _PROPERTIES]
    try:
        rows = spark.read.schema("token string").parquet(*files).selectExpr("token", *selected).collect()
    except Exception as error:
        cause = cause_of(error)
        where = f"the storage {storage_of(spark)}" if storage_of(spark) else f"the folder {folder}"
        raise EngineUnavailable(f"The executors' Java does not read {where}: {cause}", hint=PAGE) from error
    for token_read, *values in rows:
        if token_read != token:
            raise EngineUnavailable(f"The executors read different files than the engine writes: {file}", hint=PAGE)
        _compare_java(own_values, values)


def _compare_java(own_values: list[str], executor_values: list[Any]) -> None:
    for name, ours, theirs in zip(_PROPERTIES.values(), own_values, executor_values, strict=True):
        if ours != theirs:
            raise EngineUnavailable(
                f"The executors have {name} {theirs}, and the engine has {name} {ours}: rows would not be the same",
                hint="Start the workers of the cluster with the Java that `odf engine status` names, "
                f"or set JAVA_HOME to theirs here. {PAGE}",
            )
