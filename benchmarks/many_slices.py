"""Pulls of derivatives whose input has come in many small commits, each of which is a file.

    python benchmarks/many_slices.py [--slices 600] [--only CLASS...]

The first pull reads all of them; the second one the rows of half as many more, as after a long break. A pull is a whole
command with a warm engine.
"""

from __future__ import annotations

import argparse

import numpy as np
from incremental import DAY, Bench, new_bench
from small_pulls import CLASSES
from support import print_machine, show

ROWS = 100
"""So many come with each commit."""


def more(bench: Bench, commit: int) -> None:
    """Trades of an hour, now and then with four rates.

    Args:
        bench: the workspace.
        commit: number of the hour.
    """
    numbers, start = np.arange(ROWS), commit * DAY // 24
    bench.push("trades", numbers * 1000 + start, {"k": numbers % 7, "g": numbers % 50, "v": numbers})
    if commit % 4 == 0:
        bench.push("rates", np.arange(4) * 1000 + start, {"k": np.arange(4), "rate": np.arange(4) + commit})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--slices", type=int, default=600)
    possible = [name for name, query in CLASSES.items() if set(query.inputs) <= {"trades", "rates"}]
    chosen = ["row by row", "windows", "running sums", "temporal"]
    parser.add_argument("--only", nargs="+", choices=possible, default=chosen)
    options = parser.parse_args()
    print_machine("pyspark", "pyarrow")
    with new_bench() as bench:
        bench.root("trades", {"k": "Int64", "g": "Int64", "v": "Int64"})
        bench.root("rates", {"k": "Int64", "rate": "Int64"})
        bench.derivative("warm", CLASSES["windows"].text, ("trades",))
        for commit in range(options.slices):
            more(bench, commit)
            if commit < 3:
                bench.pull("warm")
        for kind in options.only:
            query, dataset = CLASSES[kind], kind.replace(" ", "-")
            bench.derivative(dataset, query.text, query.inputs, query.tables)
            show(f"{kind}: the first pull, {options.slices} slices of {ROWS} rows", None, [bench.pull(dataset)])
        for commit in range(options.slices, options.slices * 3 // 2):
            more(bench, commit)
        for kind in options.only:
            show(f"{kind}: half as many more", None, [bench.pull(kind.replace(" ", "-"))])


if __name__ == "__main__":
    main()
