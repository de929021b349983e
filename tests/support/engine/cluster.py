"""A real Spark cluster on the loopback interface: a master and two workers of Spark's standalone mode."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.engine.session import QUICK

from odfpy.engine.spark.process.java import find_java
from odfpy.engine.spark.process.jvm import class_path, end, spark_home, spawn

PATIENCE = 300.0
WORKERS = ("one", "two")
CLUSTER_JAVA = (*QUICK, "-XX:+UseSerialGC")
"""Options of the processes of a cluster, each of which has little to do: no threads for garbage collection."""
HIDING = Path(__file__).parent.with_name("processes") / "hiding.py"

JAVA = """#!/bin/bash
# The runtime that comes with the package lacks a module that Spark wants for its executors, and can do without.
exec {java} "${{@/--add-modules=jdk.incubator.vector/-Dvector=none}}"
"""


@contextmanager
def spark_cluster(folder: Path, hidden: Path | None = None) -> Iterator[str]:
    """Yield the address of a cluster with two workers of two cores; its logs and scratch files are in a folder.

    Args:
        folder: the folder.
        hidden: a folder that the workers do not see, as if they were other machines.
    """
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
    processes: list[subprocess.Popen[bytes]] = []
    hiding = () if hidden is None else (sys.executable, str(HIDING), str(hidden))

    def start(name: str, kind: str, *options: str, before: tuple[str, ...] = ()) -> None:
        log = folder / f"{name}.log"
        words = [f"org.apache.spark.deploy.{kind.lower()}.{kind}", "--host", "127.0.0.1", "--webui-port", "0", *options]
        paths = os.pathsep.join(map(str, class_path(home)))
        command = [*before, str(java.executable), "-Xmx256m", *CLUSTER_JAVA, "-cp", paths, *words]
        with log.open("wb") as out:
            processes.append(spawn(command, environment, out.fileno()))

    def said(name: str, until: str) -> str:
        log, deadline = folder / f"{name}.log", time.monotonic() + PATIENCE
        while not (found := re.search(until, log.read_text())):
            assert all(process.poll() is None for process in processes), log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        return found[0]

    try:
        start("master", "Master", "--port", "0")
        address = said("master", r"spark://127\.0\.0\.1:\d+")
        for name in WORKERS:
            work = str(folder / name)
            start(name, "Worker", "--cores", "2", "--memory", "2g", "--work-dir", work, address, before=hiding)
        for name in WORKERS:
            said(name, "Successfully registered with master")
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            end(process, PATIENCE)
