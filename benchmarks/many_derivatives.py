"""One `odf pull --all` of twenty derivatives with ten new rows each: filters, windows, keyed aggregates, joins.

    python benchmarks/many_derivatives.py [--rounds 7] [--history 10000] [--keep FILE]

Whole commands as a person runs them, with a warm engine that knows the queries. All twenty are made of one root, so
that each has ten new rows in every round; two of them join a second root. Then, stage by stage, where the time goes,
and what the engine's processes hold in memory.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from incremental import DAY, Bench
from support import engine_status, odf, print_machine, show
from support.profiles import Profiled, keep_stages, profiled, show_stages

FILTERS = {
    f"filter-{number}": f"select event_time, g, v * {number} as d from trades where v > {10 * number}"
    for number in range(1, 6)
}
WINDOWS = {
    f"windows-{length.replace(' ', '-')}": "select window.start as event_time, k, count(*) n, sum(v) s, max(v) m"
    f" from trades group by window(event_time, '{length}'), k"
    for length in ("1 hour", "6 hours", "1 day", "2 days", "7 days")
}
KEYED = {
    f"keyed-{number}": f"select max(event_time) as event_time, g % {number} as k, count(*) n, sum(v) s from trades"
    f" group by g % {number}"
    for number in (5, 10, 20, 50, 100)
}
JOINS = {
    f"join-{number}": f"select t.event_time, t.g, t.v, d.w from trades t join names d on t.g = d.g where t.v > {number}"
    for number in (5, 10)
}
OTHERS = {
    "best": "select event_time, g, v, n from (select *, row_number() over (partition by g order by v desc, event_time)"
    " as n from trades) where n <= 2",
    "distinct": "select distinct event_time, k from trades",
    "sessions": "select session_window.start as event_time, k, count(*) n from trades"
    " group by session_window(event_time, '10 minutes'), k",
}
QUERIES = {**FILTERS, **WINDOWS, **KEYED, **JOINS, **OTHERS}


def built(folder: Path, rows: int) -> Bench:
    """A workspace with some rows, and the derivatives."""
    bench = Bench(folder)
    bench.root("trades", {"k": "Int64", "g": "Int64", "v": "Int64"})
    bench.root("names", {"g": "Int64", "w": "Int64"})
    bench.push("names", np.zeros(100, np.int64), {"g": np.arange(100), "w": bench.dice.integers(0, 100, 100)})
    more(bench, 0, rows)
    for name, query in QUERIES.items():
        bench.derivative(name, query, ("trades", "names") if name in JOINS else ("trades",))
    return bench


def more(bench: Bench, day: int, rows: int) -> None:
    """So many trades of a day.

    Args:
        bench: the workspace.
        day: how many days after the first one.
        rows: how many.
    """
    dice = bench.dice
    times = np.sort(dice.integers(0, DAY, rows)) + day * DAY
    columns = {"k": dice.integers(0, 20, rows), "g": dice.integers(0, 100, rows), "v": dice.integers(0, 1000, rows)}
    bench.push("trades", times, columns)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--history", type=int, default=10_000, help="rows before the first pull")
    parser.add_argument("--keep", type=Path, help="a file that profiles are appended to")
    given = parser.parse_args()
    print_machine("pyspark", "pyarrow")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bench = built(folder, given.history)
        show("the first pull, with the start of the engine", None, [odf(folder, "pull", "--all")])
        runs, profiles = [], list[Profiled]()
        label = f"odf pull --all of {len(QUERIES)} derivatives, ten new rows"
        for number in range(-4, 2 * given.rounds):  # the first ones are not counted: the engine compiles
            more(bench, 5 + number, 10)
            if number < 0 or number % 2:
                run = odf(folder, "pull", "--all")
                runs += [run] if number >= 0 else []
            else:
                profiles.append(profiled(folder, "pull", "--all"))
        show(label, 3.0, runs)
        show("with nothing new", None, [odf(folder, "pull", "--all") for _ in range(3)])
        print(f"the engine holds {engine_status(folder)['memoryBytes'] >> 20} MB")
        show_stages(label, profiles)
        if given.keep:
            keep_stages(given.keep, label, profiles)
        odf(folder, "engine", "stop")


if __name__ == "__main__":
    main()
