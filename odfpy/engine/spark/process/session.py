"""Spark sessions: one for the process, and a fresh one for every request."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from odfpy.engine.spark.process.settings import GUARDED, SETTINGS, TUNING, engine_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

_HADOOP_SETTINGS: Final = ("io.file.buffer.size", "mapreduce.fileoutputcommitter.algorithm.version")
"""Settings of Hadoop that Spark makes for itself."""

SMALL_PAGE: Final = 1 << 20
"""Bytes of a page of memory of tasks, as Java is started with."""

_VERSIONS: Final[WeakKeyDictionary[Any, str]] = WeakKeyDictionary()
"""Versions of the engine, by Spark's context."""


def open_session(master: str = "local[*]", extra: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process with the pinned settings, on the JVM that PySpark finds or starts.

    Args:
        master: Spark's master, for example `local[2]`.
        extra: settings of the place (folders, memory); they must not touch what results depend on.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark's remarks on the version of pandas; pandas is not used
        from pyspark.sql import SparkSession

        from odfpy.engine.spark.process.calls import Calls
        from odfpy.engine.spark.process.counting import count_calls
        from odfpy.engine.spark.process.known_classes import know_classes

        builder = SparkSession.builder.appName("odfpy").master(master)
        guarded = GUARDED if master.startswith("local") else {}
        # Pinned settings come last: nothing of a place overrides what results depend on.
        settings = {**TUNING, **(extra or {}), **guarded, **SETTINGS}
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        know_classes(session._jvm)  # noqa: SLF001
        if guarded:
            _forget_hadoop_defaults(session, settings)
        count_calls(session)
        Calls(session)
        return session


def _forget_hadoop_defaults(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Take away the thousand settings of Hadoop's own files, most of which are for its servers.

    Spark copies the settings for each scan of files, and sends the copy to tasks. What reads them has the same defaults
    in its code. The settings that Spark and the place have made stay.
    """
    # Classes that bring defaults with them do so when they are loaded, once.
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
    """A session for one request: the pinned settings, and no views of earlier requests."""
    session = spark.newSession()
    change_settings(session, {})
    use_pages(session, SMALL_PAGE)
    return session


def settings_of(session: SparkSession, names: Sequence[str]) -> dict[str, str]:
    """The values of settings, by their names; empty for one that is not set and has no default."""
    from odfpy.engine.spark.process.calls import calls_of

    return dict(zip(names, calls_of(session._jvm).settings(session, names), strict=True))  # noqa: SLF001


def change_settings(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Change settings of a session, and let the tasks of jobs that this thread starts have all of its settings."""
    from odfpy.engine.spark.process.calls import calls_of

    calls_of(session._jvm).change(session, settings)  # noqa: SLF001


def use_pages(session: SparkSession, size: int) -> None:
    """Let each sort and each map of later tasks take memory in pages of so many bytes, if there is room for them.

    The tasks are those of this process: executors of a cluster go by their own settings.
    """
    from odfpy.engine.spark.process.calls import calls_of

    calls_of(session._jvm).use_pages(size)  # noqa: SLF001


def version_of(spark: SparkSession) -> str:
    """The engine's version as recorded in every transform."""
    context = spark.sparkContext
    if context not in _VERSIONS:
        java = str(getattr(spark._jvm, "java.lang.Runtime").version().feature())  # noqa: SLF001
        _VERSIONS[context] = engine_version(spark.version, java)
    return _VERSIONS[context]
