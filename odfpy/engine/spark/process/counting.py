"""Counts of Java calls from Python and of Spark jobs, for the current stage of a profile.

A task that runs without a job counts as one. Calls sent with another one do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from odfpy.stages import count_call, current

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_SEEN: Final[WeakKeyDictionary[SparkContext, int]] = WeakKeyDictionary()
"""Number of Spark jobs at the last count."""


def count_calls(spark: SparkSession) -> None:
    """Count the calls of this process from now on."""
    client: Any = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]  # noqa: SLF001
    if "send_command" in vars(client):  # it does already
        return
    send = client.send_command

    def counted(*arguments: Any, **options: Any) -> Any:
        count_call()
        return send(*arguments, **options)

    client.send_command = counted


def count_jobs(spark: SparkSession) -> None:
    """Count the jobs since the last count; without a profile, do nothing."""
    current_stage = current()
    if current_stage is None:
        return
    from odfpy.engine.spark.process.calls import calls_of  # which needs py4j

    context = spark.sparkContext
    known, count = _SEEN.get(context), calls_of(spark._jvm).jobs(spark)  # noqa: SLF001
    _SEEN[context] = count
    if known is not None:
        current_stage.add(0.0, 0, jobs=count - known)
