"""Whole commands as a person runs them, from the start of the process to its end, beside bare Python.

    python benchmarks/commands.py [--rounds 7] [--server]

Wall and processor time of each command on a small workspace; nothing here starts a JVM. With a command server, the
processor time is that of the client alone.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from support import NARROW, ODF, odf, print_machine, root, show, ten_rows, timed

STRATEGIES = ("Append", "Ledger", "Snapshot", "UpsertStream", "ChangelogStream")


def ten_rows_for(kind: str, first: int) -> bytes:
    return ten_rows(first, op=0) if kind == "ChangelogStream" else ten_rows(first)


def have_server(folder: Path) -> None:
    """Start a command server, and wait until it is found; it ends when nobody asks any more."""
    odf(folder, "config", "set", "commands.idleTimeout", "30")
    odf(folder, "config", "set", "commands.server", "true")
    found = b""
    while b"command server: process" not in found:
        diagnose = [*ODF, "system", "diagnose", "--quick"]
        found = subprocess.run(diagnose, cwd=folder, capture_output=True, check=False).stdout


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--server", action="store_true", help="have commands run by a command server")
    options = parser.parse_args()
    rounds = options.rounds
    print_machine("pyarrow", "duckdb", "typer")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        odf(folder, "init")
        for kind in STRATEGIES:
            fields = {"op": "Int32", **NARROW} if kind == "ChangelogStream" else NARROW
            odf(folder, "add", "-", stdin=root(kind.lower(), kind, fields).encode())
        odf(folder, "config", "set", "--dataset", "snapshot", "retractions.share", "100%")  # ten others each time
        if options.server:
            have_server(folder)
        for label, program in (
            ("python -c pass", "pass"),
            ("import pyarrow.parquet", "import pyarrow.parquet"),
        ):
            show(label, None, [timed(folder, [sys.executable, "-c", program]) for _ in range(rounds)])
        for kind in STRATEGIES:
            inputs = [ten_rows_for(kind, 10 * number) for number in range(rounds)]
            allowed = ("--allow-retractions",) if kind == "Snapshot" else ()  # each has other rows
            runs = [odf(folder, "ingest", kind.lower(), "--stdin", *allowed, stdin=rows) for rows in inputs]
            show(f"odf ingest, ten rows, {kind}", 0.3, runs)
        odf(folder, "push", "ledger", "--to", str(folder / "mirror"))
        (folder / "ten.ndjson").write_bytes(ten_rows(0))
        polled = f"SetPollingSource\n      fetch: {{kind: Url, url: 'file://{folder / 'ten.ndjson'}'}}"
        odf(folder, "add", "-", stdin=root("polled", "Append", NARROW, source=polled).encode())
        odf(folder, "pull", "polled")
        for label, goal in (
            ("--help", 0.1),
            ("list", 0.1),
            ("log ledger", 0.1),
            ("show ledger", 0.1),
            ("tail ledger", 0.2),
            ("sql 'select count(*) from ledger'", 0.25),
            ("pull polled", 0.15),
            ("verify --integrity ledger", 0.4),
            ("push ledger", 0.4),
        ):
            show(f"odf {label}", goal, [odf(folder, *shlex.split(label)) for _ in range(rounds)])


if __name__ == "__main__":
    main()
