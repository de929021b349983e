"""The kill harness at length: SIGKILL at every step, and at random moments, of whatever changes files.

    python benchmarks/kills.py            a few, as `make bench` does
    python benchmarks/kills.py 1000       about as many, which takes long
    python benchmarks/kills.py --no-spark leaves out the processes of Spark

It runs `tests/crash/test_killed_*.py` with more kills of each kind (`ODF_KILLS`): of a command, before each of its
changes of files as far as there are so many; of pulls, at random moments. After each kill everything has to verify, and
the same command to come to what it would have come to. Prints how many processes of which kind were killed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
KINDS = 25
"""About what `ODF_KILLS=1` comes to: ten pulls, one of most other commands, one of each process of a query."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kills", nargs="?", type=int, default=25, help="about how many; 25 by default")
    parser.add_argument("--no-spark", action="store_true", help="leave out queries that Spark runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tally = Path(folder) / "kills"
        tally.touch()
        started = time.monotonic()
        tests = [sys.executable, "-m", "pytest", "-q", "-x", "tests/crash", "-k", "killed"]
        status = subprocess.run(
            [*tests, *(["-m", "not spark"] if options.no_spark else [])],
            cwd=REPOSITORY,
            env={**os.environ, "ODF_KILLS": str(-(-options.kills // KINDS)), "ODF_KILLS_TALLY": str(tally)},
            check=False,
        ).returncode
        killed = Counter(tally.read_text().splitlines())
    for what, count in sorted(killed.items()):
        print(f"{what:24} {count:6}")
    outcome = "failed" if status else "nothing lost"
    print(f"{'all':24} {killed.total():6} kills in {time.monotonic() - started:.0f} s: {outcome}")
    return status


if __name__ == "__main__":
    sys.exit(main())
