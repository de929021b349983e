"""Count of kills for long runs of the harness: a line for each in the file named by `ODF_KILLS_TALLY`."""

from __future__ import annotations

import os
from pathlib import Path

KILLS = int(os.environ.get("ODF_KILLS", "0"))
"""Number of kills of each kind, beyond those of a run of all tests; see `benchmarks/kills.py`."""


def tally(what: str) -> None:
    """A process was killed."""
    if "ODF_KILLS_TALLY" in os.environ:
        with Path(os.environ["ODF_KILLS_TALLY"]).open("a") as file:
            file.write(f"{what}\n")


def spread(total: int, most: int) -> list[int]:
    """Return the steps at which to kill, from 1 on: evenly spread, or all of them if there are few; with 0 the middle."""
    most = max(most, KILLS)
    if not most:
        return [1 + total // 2]
    return sorted({1 + round(at * (total - 1) / most) for at in range(most + 1)})
