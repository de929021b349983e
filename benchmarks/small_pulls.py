"""Pulls of 1000 rows by class of query, after a long history, beside Structured Streaming of the same Spark.

    python benchmarks/small_pulls.py [--rows 2000000] [--pulls 8] [--only CLASS...]

A pull is measured as a whole command with a warm engine, and through Python in one process. The peer is a query of
Structured Streaming over the same slices as files: state in RocksDB, one batch for each `availableNow`, its session
warm. It makes no corrections, and drops late rows. For a class that it cannot do, there is none.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from incremental import DAY, Bench, plain_spark
from support import Run, odf, print_machine, show

DAYS = 90


class Query(NamedTuple):
    """A class of queries: its text, its inputs, its temporal tables, and the same for Structured Streaming."""

    text: str
    inputs: tuple[str, ...]
    tables: str = ""
    stream: str | None = None
    mode: str = "append"


CLASSES = {
    "row by row": Query("select event_time, g, v * 2 as d from trades where v > 10", ("trades",), stream="="),
    "windows": Query(
        "select window.start as event_time, k, count(*) n, sum(v) s, max(v) m from trades"
        " group by window(event_time, '1 day'), k",
        ("trades",),
        stream="=",
    ),
    "keyed": Query(
        "select max(event_time) as event_time, g, count(*) n, sum(v) s from trades group by g",
        ("trades",),
        stream="=",
        mode="update",
    ),
    "sessions": Query(
        "select session_window.start as event_time, k, count(*) n from trades"
        " group by session_window(event_time, '10 minutes'), k",
        ("trades",),
        stream="=",
    ),
    "top-2": Query(
        "select event_time, g, v, n from (select *, row_number() over (partition by g order by v desc, event_time) as n"
        " from trades) where n <= 2",
        ("trades",),
    ),
    "interval join": Query(
        "select t.event_time, t.g, t.v, q.v as quoted from trades t join quotes q on t.g = q.g"
        " and t.event_time between q.event_time and q.event_time + interval 1 hours",
        ("trades", "quotes"),
        stream="=",
    ),
    "join by key": Query(
        "select t.event_time, t.g, t.v, d.w from trades t join names d on t.g = d.g",
        ("trades", "names"),
        stream="select t.event_time, t.g, t.v, d.w from trades_forever t join names_forever d on t.g = d.g",
    ),
    "temporal": Query(
        "select t.event_time, t.k, t.v * r.rate as worth from trades t join rates r on t.k = r.k"
        " and t.event_time >= r.valid_from and t.event_time < r.valid_to",
        ("trades", "rates"),
        tables="{name: rates, primaryKey: [k]}",
    ),
    "running sums": Query(
        "select event_time, g, sum(v) over (partition by g order by event_time, v) as s from trades", ("trades",)
    ),
}


def built(folder: Path, rows: int, groups: int) -> Bench:
    """A workspace with a history of trades."""
    bench = Bench(folder)
    bench.root("trades", {"k": "Int64", "g": "Int64", "v": "Int64"})
    bench.root("quotes", {"g": "Int64", "v": "Int64"})
    bench.root("names", {"g": "Int64", "w": "Int64"})
    bench.root("rates", {"k": "Int64", "rate": "Int64"})
    dice = bench.dice
    bench.push("names", np.zeros(groups, np.int64), {"g": np.arange(groups), "w": dice.integers(0, 100, groups)})
    more(bench, 0, DAYS * DAY, rows, groups)
    return bench


def more(bench: Bench, start: int, length: int, rows: int, groups: int) -> None:
    """So many trades of a time, rates, and quotes for a tenth of the first trades, later for all.

    Args:
        bench: the workspace.
        start: milliseconds.
        length: milliseconds.
        rows: how many.
        groups: how many keys there are.
    """
    dice = bench.dice
    times = np.sort(dice.integers(0, length, rows)) + start
    columns = {"k": dice.integers(0, 20, rows), "g": dice.integers(0, groups, rows), "v": dice.integers(0, 1000, rows)}
    bench.push("trades", times, columns)
    quoted = times[:: 10 if start == 0 else 1]
    columns = {"g": dice.integers(0, groups, len(quoted)), "v": dice.integers(0, 1000, len(quoted))}
    bench.push("quotes", quoted, columns)
    # Facts wait for rates of later times: with no new ones, nothing would come of a pull.
    versions = times[:: max(1, len(times) // (200 if start == 0 else 4))]
    columns = {"k": dice.integers(0, 20, len(versions)), "rate": dice.integers(1, 9, len(versions))}
    bench.push("rates", versions, columns)


class Streams:
    """The same queries in Structured Streaming, over the slices of the inputs."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self._bench, self._folder = bench, folder
        self._spark: Any = plain_spark()
        provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        self._spark.conf.set("spark.sql.streaming.stateStore.providerClass", provider)
        self._spark.conf.set("spark.sql.shuffle.partitions", "2")

    def run(self, name: str, trial: int = 0) -> Run:
        """One batch of what is new.

        Args:
            name: the class of the query.
            trial: each has a checkpoint of its own, which is empty at first.
        """
        query = CLASSES[name]
        if query.stream is None:
            raise ValueError(name)
        for source in query.inputs:
            folder = self._bench.workspace.storage.get(source).layout.data.folder
            schema = self._spark.read.parquet(*self._bench.slices(source)).schema
            rows = self._spark.readStream.schema(schema).option("latestFirst", "false").parquet(str(folder))
            rows.createOrReplaceTempView(f"{source}_forever")
            rows.withWatermark("event_time", "0 seconds").createOrReplaceTempView(source)
        frame = self._spark.sql(query.text if query.stream == "=" else query.stream)
        out, place = self._folder / "out" / name / str(trial), self._folder / "state" / name / str(trial)

        def write(batch: Any, number: int) -> None:
            batch.write.mode("overwrite").parquet(f"{out}/{number}")

        started = time.perf_counter()
        stream = frame.writeStream.outputMode(query.mode).option("checkpointLocation", str(place))
        stream.foreachBatch(write).trigger(availableNow=True).start().awaitTermination()
        return Run(time.perf_counter() - started, 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--pulls", type=int, default=8)
    parser.add_argument("--only", nargs="+", choices=CLASSES, default=list(CLASSES))
    options = parser.parse_args()
    print_machine("pyspark", "pyarrow")
    groups = options.rows // 10
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = built(folder, options.rows, groups)
        streams = Streams(bench, folder)
        runs: dict[str, dict[str, list[Run]]] = {
            kind: {"command": [], "Python": [], "peer": []} for kind in options.only
        }
        for kind in options.only:
            query = CLASSES[kind]
            bench.derivative(kind.replace(" ", "-"), query.text, query.inputs, query.tables)
            first = bench.pull(kind.replace(" ", "-"))
            peer = [streams.run(kind)] if query.stream else []
            remark = f"beside Structured Streaming {first.seconds / peer[0].seconds:.2f}" if peer else ""
            show(f"{kind}: the first pull of {options.rows} rows", None, [first, *peer], remark)
        for number in range(2 * options.pulls):
            more(bench, (4 * DAYS + 4 + number) * (DAY // 4), DAY // 4, 1000, groups)
            for kind in options.only:
                dataset = kind.replace(" ", "-")
                if number % 2:
                    runs[kind]["command"].append(bench.pull(dataset))
                else:
                    runs[kind]["Python"].append(bench.pull_here(dataset))
                if CLASSES[kind].stream:
                    runs[kind]["peer"].append(streams.run(kind))
        for kind, found in runs.items():
            later = {how: some[len(some) // 2 :] for how, some in found.items()}
            show(f"{kind}: pulls of 1000 rows, the command", 0.6, later["command"])
            show("    through Python", 0.3, later["Python"])
            if later["peer"]:
                least = min(run.seconds for run in later["Python"]) / min(run.seconds for run in later["peer"])
                show("    Structured Streaming", None, later["peer"], f"pulls through Python beside it {least:.2f}")
        odf(folder, "engine", "stop")


if __name__ == "__main__":
    main()
