"""The Spark of the engine in this process: the engine's own Java options and settings."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from odfpy.engine.java import find_java
from odfpy.engine.spark.jvm import connect, java_command, java_environment, spark_home, spawn
from odfpy.engine.spark.session import open_session

QUICK = ("-XX:TieredStopAtLevel=1",)
"""Tests run many small queries once: what the optimizing compiler of Java would cost, it would not bring in again."""


@contextmanager
def engine_spark(folder: Path, master: str = "local[2]") -> Iterator[Any]:
    """A session as the engine's worker has it; Java ends with the block."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark import SparkContext
    java, home, connection = find_java(), spark_home(), folder / "connection"
    before = SparkContext._gateway, SparkContext._jvm
    SparkContext._gateway = SparkContext._jvm = None
    process = spawn(
        java_command(java, home, folder, memory="1g", options=QUICK),
        java_environment(os.environ, home, folder, connection),
        sys.stderr.fileno(),
    )
    jvm = connect(process, connection, 120)
    try:
        jvm.offer_to_pyspark()
        places = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.log.level": "OFF",
        }
        session = open_session(master, places)
        yield session
        session.stop()
    finally:
        for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
            os.environ.pop(name, None)
        if SparkContext._gateway is not None:
            SparkContext._gateway.shutdown()
        SparkContext._gateway, SparkContext._jvm = before
        jvm.end(20)
