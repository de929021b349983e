"""The version of the installed Spark engine, known without starting it."""

from __future__ import annotations

import re
from typing import Final

from odfpy.engine.spark.process.java import JavaRuntime, find_java
from odfpy.engine.spark.process.jvm import spark_home
from odfpy.engine.spark.process.settings import engine_version
from odfpy.errors import EngineUnavailable

_VERSION: Final = re.compile(r"^__version__\b[^'\"\n]*['\"]([^'\"\n]+)['\"]", re.MULTILINE)


def installed_spark_version() -> str:
    """Return the version of the installed PySpark, without importing it or the package metadata library.

    Raises:
        EngineUnavailable: it is not installed, or has no version.
    """
    place = spark_home() / "version.py"
    try:
        match = _VERSION.search(place.read_text("utf-8"))
    except OSError as error:
        raise EngineUnavailable(f"The version of PySpark cannot be read: {error}") from error
    if match is None:
        raise EngineUnavailable(f"PySpark does not say its version in {place}")
    return match[1]


def installed_engine_version(java: JavaRuntime | None = None) -> str:
    """Return the version that the engine would record with a transform: our engine, Spark, Java, pinned settings.

    Raises:
        EngineUnavailable: PySpark or a fitting Java is missing.
    """
    return engine_version(installed_spark_version(), str((java or find_java()).feature))
