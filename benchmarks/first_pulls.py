"""First pulls of 5 million rows, beside the same query as a warm batch and in Structured Streaming of the same Spark.

    python benchmarks/first_pulls.py [--rows 5000000] [--rounds 3] [--only CLASS...]

A pull is a whole command, with an engine that has run other queries, and then through Python in this process; in each
round, of new derivatives of the same query. The batch is plain Spark in a session of its own in this process, which has
run the query before: the least of three runs counts. Structured Streaming starts each round with an empty checkpoint,
in the same session.
"""

from __future__ import annotations

import argparse

import numpy as np
from incremental import DAY, Bench, new_bench, warm
from small_pulls import CLASSES, Streams
from support import Run, print_machine, show
from support.profiles import Profiled, profiled, show_stages

GROUPS = 100_000
PARTS = 10
"""So many slices hold the rows."""


def fill(bench: Bench, rows: int) -> None:
    """Take in trades of a thousand days, and have the engine compile what pulls of windows need."""
    bench.root("trades", {"k": "Int64", "g": "Int64", "v": "Int64"})
    dice, each = bench.dice, rows // PARTS
    for part in range(PARTS):
        times = np.sort(dice.integers(part * 100 * DAY, (part + 1) * 100 * DAY, each))
        columns = {"k": dice.integers(0, 20, each), "g": dice.integers(0, GROUPS, each)}
        bench.push("trades", times, {**columns, "v": dice.integers(0, 1000, each)})
    warm(bench)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    possible = [name for name, query in CLASSES.items() if query.inputs == ("trades",)]
    parser.add_argument("--only", nargs="+", choices=possible, default=["windows", "keyed"])
    options = parser.parse_args()
    print_machine("pyspark", "pyarrow")
    with new_bench() as bench:
        fill(bench, options.rows)
        streams = Streams(bench, bench.folder)
        for kind in options.only:
            query, pulls, here, peers = CLASSES[kind], list[Profiled](), list[Run](), list[Run]()
            for number in range(options.rounds):
                dataset = f"{kind.replace(' ', '-')}-{number}"
                bench.derivative(dataset, query.text, query.inputs)
                pulls.append(profiled(bench.folder, "pull", dataset))
                if query.stream is not None:
                    peers.append(streams.run(kind, number))
                dataset += "-here"
                bench.derivative(dataset, query.text, query.inputs)
                here.append(bench.pull_here(dataset))
            batch = bench.batch(query.text, query.inputs)
            for label, at in (("the first of its kind", 0), ("the last", -1)):
                run = pulls[at].run
                remark = f"beside the batch {run.seconds / batch.seconds:.2f} (to reach 1.5)"
                if peers:
                    remark += f", beside Structured Streaming {run.seconds / peers[at].seconds:.2f} (to reach 1.0)"
                show(f"{kind}: {label}", None, [run], remark)
            beside = here[-1].seconds / batch.seconds
            show("    the last through Python", None, here[-1:], f"beside the batch {beside:.2f} (to reach 1.5)")
            show("    a warm batch", None, [batch])
            if peers:
                show("    Structured Streaming", None, peers)
            show_stages(f"{kind}, the last", pulls[-1:])


if __name__ == "__main__":
    main()
