"""Pulls of 1000 rows of a keyed aggregate with millions of groups, beside Structured Streaming of the same Spark.

    python benchmarks/many_groups.py [--groups 5000000] [--pulls 10]

Each group has one row at first; a pull is a whole command with a warm engine. The peer has its state in RocksDB, one
batch for each `availableNow`, its session warm. Bytes are what a pull leaves on disk: the checkpoint, and what is new
in the arrangement.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from incremental import DAY, Bench, new_bench
from small_pulls import CLASSES, Streams
from support import Run, print_machine, show


def more(bench: Bench, start: int, keys: np.ndarray) -> None:
    """One trade of each key, within a day."""
    times = np.sort(bench.dice.integers(0, DAY, len(keys))) + start
    size = len(keys)
    columns = {"k": bench.dice.integers(0, 20, size), "g": keys, "v": bench.dice.integers(0, 1000, size)}
    bench.push("trades", times, columns)


def written(bench: Bench, known: set[Path]) -> int:
    """Bytes of files of the dataset's state that are not known yet, which are known from then on."""
    dataset = bench.workspace.storage.get("keyed")
    places = Path(dataset.layout.checkpoints.folder), dataset.cache / "arrangement"
    files = {path for place in places if place.is_dir() for path in place.rglob("*") if path.is_file()}
    # Folders of arrangements are named by the head, and the runs in them stay as they are.
    new = {path for path in files if path.name not in {one.name for one in known}}
    known |= files
    return sum(path.stat().st_size for path in new)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--groups", type=int, default=5_000_000)
    parser.add_argument("--pulls", type=int, default=10)
    options = parser.parse_args()
    print_machine("pyspark", "pyarrow")
    with new_bench() as bench:
        bench.root("trades", {"k": "Int64", "g": "Int64", "v": "Int64"})
        more(bench, 0, bench.dice.permutation(options.groups))
        query, known = CLASSES["keyed"], set[Path]()
        bench.derivative("keyed", query.text, query.inputs)
        streams = Streams(bench, bench.folder)
        first, peer = bench.pull("keyed"), streams.run("keyed")
        show(f"the first pull of {options.groups} groups", None, [first])
        show("    Structured Streaming", None, [peer], f"pull beside it {first.seconds / peer.seconds:.2f}")
        print(f"    bytes of state: {written(bench, known)}")
        runs: dict[str, list[Run]] = {"command": [], "Python": [], "peer": []}
        sizes = []
        for number in range(2 * options.pulls):
            more(bench, (number + 1) * DAY, bench.dice.integers(0, options.groups, 1000))
            if number % 2:
                runs["command"].append(bench.pull("keyed"))
            else:
                runs["Python"].append(bench.pull_here("keyed"))
            sizes.append(written(bench, known))
            runs["peer"].append(streams.run("keyed"))
        later = {how: some[len(some) // 2 :] for how, some in runs.items()}
        show("pulls of 1000 rows, the command", 1.2, later["command"])
        show("    through Python", None, later["Python"])
        least = min(run.seconds for run in later["Python"]) / min(run.seconds for run in later["peer"])
        show("    Structured Streaming", None, later["peer"], f"pulls through Python beside it {least:.2f}")
        print(f"    bytes of state written by a pull: {min(sizes)} to {max(sizes)} (to reach 5000000)")


if __name__ == "__main__":
    main()
