"""The processors that this process may use."""

from __future__ import annotations

import os


def processors() -> int:
    """Return how many processors this process may use: in a container or under `taskset` fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
