"""Whole commands as a person runs them, from the start of the process to its end, beside bare Python.

    python benchmarks/commands.py [--rounds 7]

Median and least wall time, and mean processor time, of each command on a small workspace; nothing here starts a JVM.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

STRATEGIES = ("Append", "Ledger", "Snapshot", "UpsertStream", "ChangelogStream")
MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: NdJson, schema: {{fields: [{op}{{name: event_time, type: Timestamp}}, {{name: id, type: Int64}}]}}}}
      merge: {{kind: {kind}{key}}}
"""


def manifest(kind: str) -> str:
    key = "" if kind == "Append" else ", primaryKey: [id]"
    op = "{name: op, type: Int32}, " if kind == "ChangelogStream" else ""
    return MANIFEST.format(name=kind.lower(), kind=kind, key=key, op=op)


def ten_rows(kind: str, first: int) -> bytes:
    op = '"op":0,' if kind == "ChangelogStream" else ""
    lines = (f'{{{op}"event_time":"2024-01-01T00:00:00Z","id":{first + number}}}\n' for number in range(10))
    return "".join(lines).encode()


def run(folder: Path, command: list[str], stdin: bytes = b"") -> tuple[float, float]:
    """Wall and processor seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run([sys.executable, *command], cwd=folder, input=stdin, capture_output=True, check=True)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def show(label: str, goal: float | None, times: list[tuple[float, float]]) -> None:
    walls = [wall for wall, _ in times]
    wanted = f"(to reach {goal:.2f})" if goal else ""
    print(
        f"{label:42} median {statistics.median(walls):5.2f} s   least {min(walls):5.2f} s"
        f"   processor {statistics.mean(cpu for _, cpu in times):5.2f} s   {wanted}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    packages = ", ".join(f"{name} {version(name)}" for name in ("pyarrow", "duckdb", "typer"))
    print(f"Python {platform.python_version()}, {packages}")
    odf = ["-m", "odfpy"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run(folder, [*odf, "init"])
        for kind in STRATEGIES:
            run(folder, [*odf, "add", "-"], manifest(kind).encode())
        for label, command in (
            ("python -c pass", ["-c", "pass"]),
            ("import pyarrow.parquet", ["-c", "import pyarrow.parquet"]),
        ):
            show(label, None, [run(folder, command) for _ in range(rounds)])
        for kind in STRATEGIES:
            command = [*odf, "ingest", kind.lower(), "--stdin"]
            times = [run(folder, command, ten_rows(kind, 10 * number)) for number in range(rounds)]
            show(f"odf ingest, ten rows, {kind}", 0.8, times)
        run(folder, [*odf, "push", "ledger", "--to", str(folder / "mirror")])
        for label, goal in (
            ("--help", 0.25),
            ("list", 0.25),
            ("log ledger", 0.25),
            ("show ledger", 0.25),
            ("tail ledger", 0.4),
            ("verify --integrity ledger", 0.4),
            ("push ledger", 0.4),
        ):
            show(f"odf {label}", goal, [run(folder, [*odf, *label.split()]) for _ in range(rounds)])


if __name__ == "__main__":
    main()
