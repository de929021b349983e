"""Whole commands as a person runs them, from the start of the process to its end, beside bare Python.

    python benchmarks/commands.py [--rounds 7]

Wall and processor time of each command on a small workspace; nothing here starts a JVM.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from support import NARROW, odf, print_machine, root, show, ten_rows, timed

STRATEGIES = ("Append", "Ledger", "Snapshot", "UpsertStream", "ChangelogStream")


def ten_rows_for(kind: str, first: int) -> bytes:
    return ten_rows(first, op=0) if kind == "ChangelogStream" else ten_rows(first)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print_machine("pyarrow", "duckdb", "typer")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        odf(folder, "init")
        for kind in STRATEGIES:
            fields = {"op": "Int32", **NARROW} if kind == "ChangelogStream" else NARROW
            odf(folder, "add", "-", stdin=root(kind.lower(), kind, fields).encode())
        for label, program in (
            ("python -c pass", "pass"),
            ("import pyarrow.parquet", "import pyarrow.parquet"),
        ):
            show(label, None, [timed(folder, [sys.executable, "-c", program]) for _ in range(rounds)])
        for kind in STRATEGIES:
            inputs = [ten_rows_for(kind, 10 * number) for number in range(rounds)]
            runs = [odf(folder, "ingest", kind.lower(), "--stdin", stdin=rows) for rows in inputs]
            show(f"odf ingest, ten rows, {kind}", 0.8, runs)
        odf(folder, "push", "ledger", "--to", str(folder / "mirror"))
        for label, goal in (
            ("--help", 0.25),
            ("list", 0.25),
            ("log ledger", 0.25),
            ("show ledger", 0.25),
            ("tail ledger", 0.4),
            ("verify --integrity ledger", 0.4),
            ("push ledger", 0.4),
        ):
            show(f"odf {label}", goal, [odf(folder, *label.split()) for _ in range(rounds)])


if __name__ == "__main__":
    main()
