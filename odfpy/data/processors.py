"""The processors that this process may use."""

from __future__ import annotations

import os


def processors() -> int:
    """Return the number of processors of this process, which containers and `taskset` may limit."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
