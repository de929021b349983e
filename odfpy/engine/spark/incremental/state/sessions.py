"""Which rows of a gate belong to sessions that are not closed yet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from odfpy.engine.spark.incremental.properties.plan_info import Gate
from odfpy.engine.spark.incremental.state.changes import WEIGHT, Changes
from odfpy.engine.spark.plan.catalyst import Catalyst, columns
from odfpy.engine.spark.plan.times import Clock
from odfpy.engine.spark.rows.effort import gathered_rows
from odfpy.errors import InternalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def open_sessions(catalyst: Catalyst, gate: Gate, parts: Sequence[Changes], clock: Clock) -> DataFrame:
    """The rows of sessions that end after the watermark, columns `c0`, `c1`... and their weights.

    A row spans the time from its own to the end of the gap after it. Rows of one key whose spans touch are one session.

    Args:
        catalyst: the session of Spark.
        gate: a gate with `session`, and one rule in `due` with the watermark.
        parts: its rows.
        clock: the watermarks of now.
    """
    from pyspark.sql import Window, functions

    if gate.session is None:
        raise InternalError("The gate keeps no sessions")
    start, end = gate.session
    spans = [catalyst.alias(start, "start"), catalyst.alias(end, "end")]
    keys = [catalyst.alias(key, f"k{at}") for at, key in enumerate(gate.keys)]
    names = [f"c{at}" for at in range(len(gate.columns))]
    frames = [
        catalyst.dataframe(catalyst.project([*gate.columns, columns(part.plan)[-1], *spans, *keys], part.plan)).toDF(
            *names, WEIGHT, "start", "end", *(key.name() for key in keys)
        )
        for part in parts
    ]
    rows = gathered_rows(reduce(lambda one, other: one.union(other), frames))
    limit = gate.due[0].limit.at(clock)
    by_key = Window.partitionBy(*(key.name() for key in keys)) if keys else Window.partitionBy(functions.lit(0))
    ordered = by_key.orderBy("start", "end")
    before = ordered.rowsBetween(Window.unboundedPreceding, -1)
    begins = functions.coalesce(functions.col("start") > functions.max("end").over(before), functions.lit(True))
    numbered = rows.withColumn("begins", begins.cast("int"))
    up_to_here = ordered.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    numbered = numbered.withColumn("session", functions.sum("begins").over(up_to_here))
    whole = Window.partitionBy(*(key.name() for key in keys), "session")
    ends = numbered.withColumn("ends", functions.max("end").over(whole))
    if limit is not None:
        ends = ends.where(functions.unix_micros("ends") > limit)
    return ends.groupBy(*names).agg(functions.sum(WEIGHT).alias(WEIGHT)).where(functions.col(WEIGHT) != 0)
