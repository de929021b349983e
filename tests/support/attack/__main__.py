"""Attacks on everything that parses others' bytes, one after the other (`make attack`).

PYTHONPATH=tests python -m support.attack --seconds 3600 --processes 2
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.attack.targets import TARGETS

_LAST = 30


def attack(name: str, seconds: int, folder: Path) -> tuple[str, int, bool, str]:
    """Attack one target; return its name, the number of attempts, whether something was found, and the output."""
    command = [sys.executable, "-m", "support.attack.child", name, str(seconds), str(folder / name)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    told = done.stdout + done.stderr
    tried = re.search(r"number_of_executed_units:\s+(\d+)", told)
    return name, int(tried[1]) if tried else 0, done.returncode != 0, told


def main() -> int:
    """Attack all of them, or those that are named."""
    parser = argparse.ArgumentParser(prog="make attack", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=3600, help="for all targets and processes together")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(".attack"), help="for what is found, and what was tried")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}; all by default")
    chosen = parser.parse_args()
    names = chosen.targets or list(TARGETS)
    each = max(1, chosen.seconds * chosen.processes // len(names))
    failed = False
    with ThreadPoolExecutor(chosen.processes) as pool:
        for name, tried, is_found, told in pool.map(lambda name: attack(name, each, chosen.folder), names):
            print(f"{name:16} {tried:9} inputs in {each} s: {'FOUND' if is_found else 'nothing'}", flush=True)
            if is_found:
                failed = True
                print("\n".join(told.splitlines()[-_LAST:]))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
