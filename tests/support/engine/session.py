"""The Spark of the engine in this process: the engine's own Java options and settings."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from odfpy.engine.spark.process.java import find_java
from odfpy.engine.spark.process.jvm import Jvm, connect, java_command, java_environment, spark_home, spawn
from odfpy.engine.spark.process.session import open_session

QUICK = ("-XX:TieredStopAtLevel=1", "-XX:CompileThresholdScaling=0.2", "-XX:ReservedCodeCacheSize=128m")
"""Tests run many small queries once, for which Java's optimizing compiler does not pay off; the other one is cheaper
than interpreting bytecode for long."""
MEMORY = "1g"
"""Memory of all engines in tests: a start-up cache is for one size, and only one should be created."""


@contextmanager
def engine_spark(folder: Path, master: str = "local[2]") -> Iterator[Any]:
    """Open a session like that of the engine's worker; Java exits after the block.

    PySpark supports one per process, which is the fixture `spark`; separate programs start their own.
    """
    java, home, connection = find_java(), spark_home(), folder / "connection"
    environment = java_environment(os.environ, home, folder, connection)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # for Spark's Python workers
    process = spawn(java_command(java, home, folder, memory=MEMORY, options=QUICK), environment, sys.stderr.fileno())
    jvm = connect(process, connection, 120)
    try:
        session = _opened(jvm, folder, master)
        yield session
        session.stop()
    finally:
        _forget()
        jvm.end(20)


def _opened(jvm: Jvm, folder: Path, master: str) -> Any:
    """Return the session. Child processes of tests must not inherit PySpark's environment variables."""
    places = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "2",  # changed by tests of partitions
    }
    before = dict(os.environ)
    try:
        os.environ["PYSPARK_PYTHON"] = sys.executable
        jvm.offer_to_pyspark()
        return open_session(master, places)
    finally:
        os.environ.clear()
        os.environ.update(before)


def _forget() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark import SparkContext
    if SparkContext._gateway is not None:
        SparkContext._gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
