"""Counting kills for who runs the harness at length: a line for each in the file that `ODF_KILLS_TALLY` names."""

from __future__ import annotations

import os
from pathlib import Path

KILLS = int(os.environ.get("ODF_KILLS", "0"))
"""How many kills of each kind are wanted, beyond those of a run of all tests; see `benchmarks/kills.py`."""


def tally(what: str) -> None:
    """A process was killed."""
    if "ODF_KILLS_TALLY" in os.environ:
        with Path(os.environ["ODF_KILLS_TALLY"]).open("a") as file:
            file.write(f"{what}\n")


def spread(total: int, most: int) -> list[int]:
    """At which of so many steps to kill, from 1 on: evenly, and at all of them where that is not too many."""
    most = max(most, KILLS)
    return sorted({1 + round(at * (total - 1) / most) for at in range(most + 1)})
