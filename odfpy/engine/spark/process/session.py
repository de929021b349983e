"""Spark sessions: one for the process, and a fresh one for every request."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from odfpy.engine.spark.process.settings import GUARDED, SETTINGS, TUNING, engine_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from py4j.java_gateway import JavaGateway
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from odfpy.engine.spark.process.own_classes import OwnClass

_HADOOP_SETTINGS: Final = ("io.file.buffer.size", "mapreduce.fileoutputcommitter.algorithm.version")
"""Settings of Hadoop that Spark makes for itself."""

SMALL_PAGE: Final = 1 << 20
"""Bytes of a page of memory of tasks, as Java is started with."""

_VERSIONS: Final[WeakKeyDictionary[Any, str]] = WeakKeyDictionary()
"""Versions of the engine, by Spark's context."""


_LOGGERS_OF_ERRORS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
"""PySpark logs errors there that are raised anyway, with values and plans of any size."""


def open_session(
    master: str = "local[*]", extra: Mapping[str, str] | None = None, *, is_cold: bool = False
) -> SparkSession:
    """Return the session of this process with the pinned settings, on the JVM that PySpark finds or starts.

    Args:
        master: Spark's master, for example `local[2]`.
        extra: local settings (folders, memory); they must not affect results.
        is_cold: whether Java runs without a start-up cache, so that loading classes early pays off.
    """
    with warnings.catch_warnings(), ThreadPoolExecutor(1) as beside:
        warnings.simplefilter("ignore")  # PySpark's remarks on the version of pandas; pandas is not used
        from pyspark import SparkContext
        from pyspark.logger import PySparkLogger
        from pyspark.sql import SparkSession

        from odfpy.engine.spark.process.calls import Calls
        from odfpy.engine.spark.process.counting import count_calls
        from odfpy.engine.spark.process.known_classes import know_classes

        for logger in _LOGGERS_OF_ERRORS:
            PySparkLogger.getLogger(logger).disabled = True
        SparkContext._ensure_initialized()  # noqa: SLF001
        calls = beside.submit(_prepared, SparkContext._gateway, is_cold=is_cold)  # noqa: SLF001
        builder = SparkSession.builder.appName("odfpy").master(master)
        guarded = GUARDED if master.startswith("local") else {}
        if guarded:
            _set_hadoop_user(SparkContext)
        # Pinned settings come last: local settings cannot override what results depend on.
        settings = {**TUNING, **(extra or {}), **guarded, **SETTINGS}
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        know_classes(session._jvm)  # noqa: SLF001
        if guarded:
            _forget_hadoop_defaults(session, settings)
        count_calls(session)
        Calls(session, calls.result())
        return session


def _prepared(gateway: JavaGateway, *, is_cold: bool) -> OwnClass:
    """Return the side of `Calls` in Java, compiled while Spark starts."""
    from odfpy.engine.spark.process.own_classes import OwnClass, load_first_classes

    calls = OwnClass(gateway, "Calls")
    if is_cold:
        load_first_classes(gateway)
    return calls


def _set_hadoop_user(context: type[SparkContext]) -> None:
    """Set a fixed user name for Hadoop's libraries, which fail when the system has no name for the user's id."""
    users = context._jvm.org.apache.hadoop.security.UserGroupInformation  # type: ignore[union-attr]  # noqa: SLF001
    users.setLoginUser(users.createRemoteUser("odf"))


def _forget_hadoop_defaults(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Remove the thousand settings from Hadoop's own files, most of which are for its servers.

    Spark copies the settings for each scan of files, and sends the copy to tasks. The code that reads them has the same
    defaults. Settings made by Spark and locally stay.
    """
    # Classes with default settings add them once, when they are loaded.
    getattr(session._jvm, "org.apache.hadoop.mapred.JobConf")()  # noqa: SLF001
    session._jsparkSession.sharedState()  # noqa: SLF001
    hadoop = session.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    kept = {name: hadoop.get(name) for name in _HADOOP_SETTINGS}
    prefix = "spark.hadoop."
    kept |= {name.removeprefix(prefix): value for name, value in settings.items() if name.startswith(prefix)}
    hadoop.clear()
    for name, value in kept.items():
        hadoop.set(name, value)


def request_session(spark: SparkSession) -> SparkSession:
    """Return a session for one request: with the pinned settings, without views of earlier requests."""
    session = spark.newSession()
    change_settings(session, {})
    use_pages(session, SMALL_PAGE)
    return session


def settings_of(session: SparkSession, names: Sequence[str]) -> dict[str, str]:
    """Return the values of settings, by their names; empty for one that is not set and has no default."""
    from odfpy.engine.spark.process.calls import calls_of

    return dict(zip(names, calls_of(session._jvm).settings(session, names), strict=True))  # noqa: SLF001


def change_settings(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Change settings of a session, and pass all of its settings to the tasks of jobs started by this thread."""
    from odfpy.engine.spark.process.calls import calls_of

    calls_of(session._jvm).change(session, settings)  # noqa: SLF001


def use_pages(session: SparkSession, size: int) -> None:
    """Set the page size of the memory of sorts and maps in later tasks, if there is room for them.

    Affects tasks of this process only: executors of a cluster have their own settings.
    """
    from odfpy.engine.spark.process.calls import calls_of

    calls_of(session._jvm).use_pages(size)  # noqa: SLF001


def version_of(spark: SparkSession) -> str:
    """Return the engine's version as recorded in every transform."""
    context = spark.sparkContext
    if context not in _VERSIONS:
        java = str(getattr(spark._jvm, "java.lang.Runtime").version().feature())  # noqa: SLF001
        _VERSIONS[context] = engine_version(spark.version, java)
    return _VERSIONS[context]
