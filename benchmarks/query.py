"""Questions: commands that need no engine, a dataset as at a moment, and the current state of a long changelog.

    python benchmarks/query.py [--rounds 5] [--rows 5000000]

The engine is warm, and answers are read to their end; ratios are of least times of rounds that take turns.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from support import PUSH, odf, print_machine, root, show

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace
from odfpy.query.service import Query

FIELDS = {"event_time": "Timestamp", "id": "Int64", "value": "Int32"}
SLICES, CAN_MATTER = 50, 5
KEYS = 5  # rows for each

BY_WINDOW = """
SELECT count(*) AS n, sum(value) AS v FROM (
  SELECT id, value, op, row_number() OVER (PARTITION BY id ORDER BY `offset` DESC) AS nth FROM changes
) WHERE nth = 1 AND op IN (0, 3)"""
BY_AGGREGATE = """
SELECT count(*) AS n, sum(last.value) AS v FROM (
  SELECT id, max_by(struct(op, value), `offset`) AS last FROM changes GROUP BY id
) WHERE last.op IN (0, 3)"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=5_000_000)
    options = parser.parse_args()
    print_machine("pyarrow", "pyspark", "sqlglot", "datafusion")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workspace = Workspace.init(folder)
        for dataset, merge in (("small", "Append"), ("kept", "Ledger"), ("changes", "Append")):
            workspace.add(load_snapshots(root(dataset, merge, FIELDS, read="Parquet", source=PUSH), dataset))
        try:
            without_engine(folder, workspace, options.rounds)
            as_at(workspace, options.rows, options.rounds)
            current_state(workspace, options.rows, options.rounds)
        finally:
            workspace.engines.stop(force=True)


def without_engine(folder: Path, workspace: Workspace, rounds: int) -> None:
    for first in (0, 10):
        ingest(workspace, "small", np.arange(first, first + 10))
    for label, arguments in (
        ("odf tail", ("tail", "small")),
        ("odf sql -c 'select count(*) from small'", ("sql", "-c", "select count(*) from small")),
        ("odf sql -c 'select * from small limit 5'", ("sql", "-c", "select * from small limit 5")),
    ):
        show(label, 0.6, [odf(folder, *arguments) for _ in range(rounds)])
    assert workspace.engines.status() is None, "nothing of this starts a JVM"


def as_at(workspace: Workspace, rows: int, rounds: int) -> None:
    """A ledger, of which each key has one row, as at its fifth slice of fifty."""
    for part in np.split(np.random.default_rng(1).permutation(rows // SLICES * SLICES), SLICES):
        ingest(workspace, "kept", part)
    moment = rows // SLICES * CAN_MATTER - 1
    what = "SELECT count(*) AS n, sum(value) AS v FROM"
    compare(
        workspace,
        f"as at a moment, {CAN_MATTER} of {SLICES} slices, beside all",
        {"as at": f"{what} odf_as_at('kept', {moment})", "all": f"{what} odf_current('kept')"},
        0.3,
        rounds,
    )


def current_state(workspace: Workspace, rows: int, rounds: int) -> None:
    """A changelog of five rows for each key."""
    keys = np.random.default_rng(2).integers(0, rows // KEYS, rows)
    for part in np.array_split(keys, 5):
        ingest(workspace, "changes", part)
    ours = "SELECT count(*) AS n, sum(value) AS v FROM odf_current('changes', 'id')"
    queries = {"odf_current": ours, "by hand, window": BY_WINDOW, "by hand, aggregate": BY_AGGREGATE}
    compare(workspace, f"current state of {rows:,} rows, {rows // KEYS:,} keys", queries, 1.2, rounds)


def compare(workspace: Workspace, label: str, queries: Mapping[str, str], goal: float, rounds: int) -> None:
    """Least times of queries, and those of the first beside each other's."""
    times: dict[str, list[float]] = {name: [] for name in queries}
    answers = {name: ask(workspace, query)[1] for name, query in queries.items()}  # warms up
    for _ in range(rounds):
        for name, query in queries.items():
            times[name].append(ask(workspace, query)[0])
    first, *others = times
    print(label, *(f"   {name}: least {min(found):.2f} s, {answers[name]}" for name, found in times.items()), sep="\n")
    for other in others:
        print(f"   {first} beside {other}: {min(times[first]) / min(times[other]):.2f}   (to reach {goal})", flush=True)


def ask(workspace: Workspace, query: str) -> tuple[float, object]:
    started = time.perf_counter()
    with workspace.query_service.run(Query(query)) as answer:
        rows = answer.read_all().to_pylist()
    return time.perf_counter() - started, rows


def ingest(workspace: Workspace, name: str, ids: np.ndarray) -> None:
    time_of = pa.scalar(1_704_067_200_000, pa.timestamp("ms", "UTC"))
    columns = {
        "event_time": pa.repeat(time_of, len(ids)),
        "id": pa.array(ids, pa.int64()),
        "value": pa.array(ids % 1000, pa.int32()),
    }
    file = workspace.root / "rows.parquet"
    pq.write_table(pa.table(columns), file)
    (result,) = workspace.ingest(name, [file])
    if result.error is not None:
        raise result.error
    file.unlink()


if __name__ == "__main__":
    main()
