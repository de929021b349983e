"""What a commit costs on top of a large state: ledger, snapshot and upsert, as history grows.

    python benchmarks/keyed_state.py [--keys 1000000] [--rounds 5] [--only ledger|snapshot|upsert]

Whole commands are measured, from the start of the process to its end: `odf ingest` of a CSV file. The history is made
through the Python API, and then as much again, after which the same commands are measured once more. Each round is a
commit of its own, so that rounds that put runs of the key index together are among them.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from support import Run, odf, print_machine, root, show

from odfpy import Workspace
from odfpy.chain.encoding import load_snapshots

FIELDS = {"id": "Int64", "name": "String", "amount": "Float64", "city": "String"}
SLICE = 100_000
CITIES = np.array(["Amsterdam", "Berlin", "Kyiv", "Lisboa", "Tallinn", "Vancouver"])


class Bench:
    """A workspace with one dataset, and the dice."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder = folder
        self.name = kind.lower()
        self.dice = np.random.default_rng(7)
        self.workspace = Workspace.init(folder)
        self.workspace.add(load_snapshots(root(self.name, kind, FIELDS, read="Csv, header: true"), "manifest"))

    def rows(self, keys: np.ndarray) -> pa.Table:
        names = [f"name {key % 9973}" for key in keys.tolist()]
        cities = pa.array(CITIES[self.dice.integers(0, len(CITIES), len(keys))])
        return pa.table({"id": keys, "name": names, "amount": self.dice.random(len(keys)), "city": cities})

    def history(self, rows: pa.Table) -> None:
        """Take in rows through the Python API."""
        file = self.folder / "history.parquet"
        pq.write_table(rows, file)
        for _ in self.workspace.ingest(self.name, [file], input_format="parquet"):
            pass

    def command(self, rows: pa.Table) -> Run:
        """Take in rows as a person does."""
        file = self.folder / "new.csv"
        pa.csv.write_csv(rows, file)
        return odf(self.folder, "ingest", self.name, str(file))

    def cache(self) -> str:
        files = list((self.workspace.root / ".odf" / "cache").rglob("run-*"))
        return f"index: {len(files)} runs, {sum(path.stat().st_size for path in files) / 1e6:.0f} MB"

    def without_index(self, rows: pa.Table) -> Run:
        """The same command when the index has to be made again first."""
        for path in (self.workspace.root / ".odf" / "cache").rglob("keys/*/index"):
            path.unlink()
        return self.command(rows)


@contextmanager
def bench(kind: str) -> Iterator[Bench]:
    with tempfile.TemporaryDirectory() as folder:
        yield Bench(Path(folder), kind)


def ledger(keys: int, rounds: int) -> None:
    """50 slices of random keys, then 50 more."""
    with bench("Ledger") as it:
        known: list[np.ndarray] = []
        for slices in (50, 100):
            while len(known) < slices:
                known.append(it.dice.integers(0, 2**62, keys * 5 // 50))
                it.history(it.rows(known[-1]))

            def new() -> pa.Table:
                old = it.dice.choice(known[int(it.dice.integers(len(known)))], 1_000, replace=False)
                mixed = np.concatenate([old, it.dice.integers(0, 2**62, 49_000)])
                return it.rows(it.dice.permutation(mixed))

            label = f"ledger, +50 000 rows on {sum(map(len, known)) / 1e6:.0f} million keys in {slices} slices"
            show(label, 0.8, [it.command(new()) for _ in range(rounds)], it.cache())
        show("the same where the index has to be made again", None, [it.without_index(new())])


def snapshot(keys: int, rounds: int) -> None:
    """A full state, and what became of it."""
    with bench("Snapshot") as it:
        rows = it.rows(it.dice.permutation(keys))

        def next_version() -> pa.Table:
            nonlocal rows
            amounts = rows.column("amount").to_numpy().copy()
            amounts[it.dice.choice(keys, keys // 100, replace=False)] += 1
            rows = rows.set_column(2, "amount", pa.array(amounts))
            return rows

        first = it.command(rows)
        show(f"snapshot of {keys / 1e6:.0f} million keys, first version", None, [first])
        show("the second version, 1 % changed", None, [it.command(next_version())])
        show("the third version and on, 1 % changed each", 1.2, [it.command(next_version()) for _ in range(rounds)])
        for _ in range(20):
            it.history(next_version())
        remark = it.cache()
        show("after 20 more versions", 1.2, [it.command(next_version()) for _ in range(rounds)], remark)


def upsert(keys: int, rounds: int) -> None:
    """Many commits on top of a large one."""
    with bench("UpsertStream") as it:
        it.history(it.rows(it.dice.permutation(keys)))

        def changes() -> pa.Table:
            return it.rows(it.dice.choice(keys, 10_000, replace=False))

        for commits in (10, 100, 200):
            while it.workspace.storage.get(it.name).state.sequence_number < commits + 2:
                it.history(changes())
            label = f"upsert, 10 000 changes on {keys / 1e6:.0f} million keys after {commits} commits"
            show(label, 0.9, [it.command(changes()) for _ in range(rounds)], it.cache())
        show("the same where the index has to be made again", None, [it.without_index(changes())])


PARTS: dict[str, Callable[[int, int], None]] = {"ledger": ledger, "snapshot": snapshot, "upsert": upsert}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1_000_000, help="the ledger has five times as many")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=PARTS)
    arguments = parser.parse_args()
    print_machine("pyarrow", "duckdb")
    for name, part in PARTS.items():
        if arguments.only in (None, name):
            part(arguments.keys, arguments.rounds)


if __name__ == "__main__":
    main()
