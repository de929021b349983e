"""Jobs of Spark."""

from __future__ import annotations

from typing import Any


def jobs_of(spark: Any) -> int:
    """How many there have been since it started."""
    return int(spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs())
