"""Creation of the start-up cache before an engine starts: for images, and for machines that a script sets up."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final

from odfpy.engine.settings import EngineSettings
from odfpy.engine.spark.process.java import find_java
from odfpy.engine.spark.process.jvm import end, spark_home
from odfpy.engine.spark.process.startup_cache import CACHE_SINCE, NEEDED_SPACE, StartupCache
from odfpy.errors import EngineUnavailable, UsageError

_POLL_SECONDS: Final = 1.0
_END_SECONDS: Final = 10.0
_WHERE: Final = "Set XDG_CACHE_HOME to a folder, or HOME to one that has the folder `.cache`."


def prepare_engine(settings: EngineSettings) -> tuple[Path, bool]:
    """Make the start-up cache unless it exists; if another process is making it, wait for that.

    Args:
        settings: the settings of the engines that are to use it.

    Returns:
        Its file, and whether it was made now.

    Raises:
        UsageError: these engines use no cache.
        EngineUnavailable: it cannot be made.
    """
    if not settings.startup_cache or settings.is_cluster:
        why = "engine.master is a cluster" if settings.is_cluster else "engine.startupCache is false"
        raise UsageError(f"The engine does not use a start-up cache: {why}")
    java = find_java()
    cache = StartupCache.of(java, spark_home(), os.environ, settings.memory)
    if cache is None:
        if java.feature < CACHE_SINCE:
            raise EngineUnavailable(
                f"Java {java.version} supports no start-up cache: that needs Java {CACHE_SINCE}",
                hint="Without JAVA_HOME, odf runs on the Java that is installed with it.",
            )
        raise EngineUnavailable("There is no folder for caches", hint=_WHERE)
    if cache.path.exists():
        return cache.path, False
    try:
        has_room = cache.has_room
    except OSError as error:
        raise EngineUnavailable(f"{cache.path.parent} cannot be used: {error.strerror}", hint=_WHERE) from error
    if not has_room:
        raise EngineUnavailable(
            f"A start-up cache needs {NEEDED_SPACE >> 30} GB of free space in {cache.path.parent} while it is made",
            hint="Free some space, or set XDG_CACHE_HOME to a folder on another disk.",
        )
    while not cache.path.exists():
        if _train(cache, settings.memory):
            raise EngineUnavailable("The start-up cache could not be created", hint=f"{cache.log} has the reason.")
        if not cache.path.exists():  # another process is making it
            time.sleep(_POLL_SECONDS)
    return cache.path, True


def _train(cache: StartupCache, memory: str | None) -> int:
    """Run one training to its end, and end it with this process."""
    training = cache.start_training(memory, priority=0)
    try:
        return training.wait()
    except BaseException:
        training.send_signal(signal.SIGINT)
        end(training, _END_SECONDS)
        raise
