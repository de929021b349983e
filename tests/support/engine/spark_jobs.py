"""Jobs of Spark."""

from __future__ import annotations

from typing import Any


def jobs_of(spark: Any) -> int:
    """Return the number of jobs since its start."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())
