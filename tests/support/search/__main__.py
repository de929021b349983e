"""The search: random queries over random histories, until the time is over or something is found (`make search`).

python -m support.search --seconds 3600 --processes 2
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from pathlib import Path

from support.search.hunt import Tally
from support.search.process import search


def main() -> int:
    """Search, and report the findings."""
    parser = argparse.ArgumentParser(prog="make search", description="Search for wrong answers of the engine.")
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--processes", type=int, default=2, help="each has a Spark of its own")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="repeats a search")
    parser.add_argument("--findings", type=Path, default=Path(".search"), help="folder for what is found")
    parser.add_argument("--stop-at", type=int, default=1, help="findings of a process after which it stops")
    parser.add_argument("--verbose", action="store_true", help="print each trial")
    chosen = parser.parse_args()
    print(f"Searching for {chosen.seconds:.0f} s with --seed {chosen.seed} ...", flush=True)
    work = [
        (chosen.seed + number * 1_000_000, chosen.seconds, chosen.findings, chosen.stop_at, chosen.verbose)
        for number in range(chosen.processes)
    ]
    tally = Tally()
    with multiprocessing.get_context("spawn").Pool(chosen.processes) as pool:
        for one in pool.starmap(search, work):
            tally.add(one)
    print(tally.summary())
    return 1 if tally.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
