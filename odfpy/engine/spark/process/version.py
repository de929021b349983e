"""The version of the installed Spark engine, known without starting it."""

from __future__ import annotations

from odfpy.engine.spark.process.java import JavaRuntime, find_java
from odfpy.engine.spark.process.settings import engine_version


def installed_spark_version() -> str:
    """Version of the installed PySpark.

    Raises:
        EngineUnavailable: it is not installed.
    """
    from importlib.metadata import PackageNotFoundError, version

    from odfpy.engine.spark.process.jvm import spark_home

    spark_home()
    try:
        return version("pyspark")
    except PackageNotFoundError:
        from pyspark.version import __version__

        return str(__version__)


def installed_engine_version(java: JavaRuntime | None = None) -> str:
    """Return what the engine would record with a transform: our engine, Spark, Java, pinned settings.

    Raises:
        EngineUnavailable: PySpark or a fitting Java is missing.
    """
    return engine_version(installed_spark_version(), str((java or find_java()).feature))
