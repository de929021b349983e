"""A real Spark cluster on the loopback interface: a master and a worker of Spark's standalone mode."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from odfpy.engine.java import find_java
from odfpy.engine.spark.jvm import class_path, spark_home

PATIENCE = 120.0

JAVA = """#!/bin/bash
# The runtime that comes with the package lacks a module that Spark wants for its executors, and can do without.
exec {java} "${{@/--add-modules=jdk.incubator.vector/-Dvector=none}}"
"""


@contextmanager
def spark_cluster(folder: Path) -> Iterator[str]:
    """The address of a cluster with two cores, which keeps its logs and scratch files in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    java, home = find_java(), spark_home()
    program = folder / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(JAVA.format(java=java.executable))
    program.chmod(0o755)
    environment = {
        "HOME": str(folder),
        "JAVA_HOME": str(folder / "java"),
        "PATH": os.defpath,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SCALA_VERSION": "2.13",  # which scripts of Spark would find out
    }
    processes = []

    def start(kind: str, *options: str, until: str) -> str:
        log = folder / f"{kind}.log"
        words = [f"org.apache.spark.deploy.{kind.lower()}.{kind}", "--host", "127.0.0.1", "--webui-port", "0", *options]
        paths = os.pathsep.join(map(str, class_path(home)))
        command = [java.executable, "-Xmx256m", "-cp", paths, *words]
        with log.open("wb") as out:
            processes.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=out))
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(until, log.read_text())):
            assert processes[-1].poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        return found[0]

    try:
        address = start("Master", "--port", "0", until=r"spark://127\.0\.0\.1:\d+")
        start(
            "Worker", "--cores", "2", "--memory", "1g", "--work-dir", str(folder / "work"), address,
            until="Successfully registered with master",
        )  # fmt: skip
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait()
