"""Spark sessions: one for the process, and a fresh one for every request."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from odfpy.engine.spark.process.settings import GUARDED, SETTINGS, TUNING, engine_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession


def open_session(master: str = "local[*]", extra: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process with the pinned settings, on the JVM that PySpark finds or starts.

    Args:
        master: Spark's master, for example `local[2]`.
        extra: settings of the place (folders, memory); they must not touch what results depend on.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark's remarks on the version of pandas; pandas is not used
        from pyspark.sql import SparkSession

        from odfpy.engine.spark.process.counting import count_calls
        from odfpy.engine.spark.process.known_classes import know_classes

        builder = SparkSession.builder.appName("odfpy").master(master)
        guarded = GUARDED if master.startswith("local") else {}
        # Pinned settings come last: nothing of a place overrides what results depend on.
        for name, value in {**TUNING, **(extra or {}), **guarded, **SETTINGS}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        know_classes(session._jvm)  # noqa: SLF001
        count_calls(session)
        return session


def request_session(spark: SparkSession) -> SparkSession:
    """A session for one request: the pinned settings, and no views of earlier requests."""
    session = spark.newSession()
    tell_tasks(session)
    return session


def tell_tasks(session: SparkSession) -> None:
    """Let the tasks of jobs that this thread starts have the settings of a session.

    They look them up among the properties of their job. Spark puts them there for what it runs itself; for the RDD of a
    query, which is what is fetched here, it does not, and tasks would go by Spark's defaults.
    """
    properties = session._jvm.java.util.Properties()  # type: ignore[union-attr]  # noqa: SLF001
    properties.putAll(session._jsparkSession.sessionState().conf().settings())  # noqa: SLF001
    session.sparkContext._jsc.sc().setLocalProperties(properties)  # noqa: SLF001


def version_of(spark: SparkSession) -> str:
    """The engine's version as recorded in every transform."""
    java = str(spark._jvm.java.lang.Runtime.version().feature())  # type: ignore[union-attr]  # noqa: SLF001
    return engine_version(spark.version, java)
