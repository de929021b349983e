"""Rows of a stateful input that belong to sessions that are not closed yet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING

from odfpy.engine.spark.incremental.properties.plan_info import StatefulInput
from odfpy.engine.spark.incremental.state.changes import WEIGHT, Changes
from odfpy.engine.spark.plan.catalyst import Catalyst, columns
from odfpy.engine.spark.plan.times import Clock
from odfpy.engine.spark.rows.effort import gathered_rows
from odfpy.errors import InternalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def open_sessions(
    catalyst: Catalyst, stateful_input: StatefulInput, parts: Sequence[Changes], clock: Clock
) -> DataFrame:
    """The rows of sessions that end after the watermark, columns `c0`, `c1`... and their weights.

    A row spans the time from its own to the end of the gap after it. Rows of one key whose spans touch are one session.

    Args:
        catalyst: the session of Spark.
        stateful_input: a stateful input with `session`, and one rule in `complete_when` with the watermark.
        parts: its rows.
        clock: the watermarks of now.
    """
    from pyspark.sql import Window, functions

    if stateful_input.session is None:
        raise InternalError("The stateful input keeps no sessions")
    start, end = stateful_input.session
    spans = [catalyst.alias(start, "start"), catalyst.alias(end, "end")]
    keys = [catalyst.alias(key, f"k{at}") for at, key in enumerate(stateful_input.keys)]
    names = [f"c{at}" for at in range(len(stateful_input.columns))]
    frames = [
        catalyst.dataframe(
            catalyst.project([*stateful_input.columns, columns(rows.plan)[-1], *spans, *keys], rows.plan)
        ).toDF(*names, WEIGHT, "start", "end", *(key.name() for key in keys))
        for rows in parts
    ]
    rows = gathered_rows(reduce(lambda one, other: one.union(other), frames))
    limit = stateful_input.complete_when[0].limit.at(clock)
    by_key = Window.partitionBy(*(key.name() for key in keys)) if keys else Window.partitionBy(functions.lit(0))
    ordered = by_key.orderBy("start", "end")
    before = ordered.rowsBetween(Window.unboundedPreceding, -1)
    # The greatest end so far, not that of the row before: gaps may differ, so an earlier row may reach further.
    begins = functions.coalesce(functions.col("start") > functions.max("end").over(before), functions.lit(True))
    numbered = rows.withColumn("begins", begins.cast("int"))
    up_to_here = ordered.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    numbered = numbered.withColumn("session", functions.sum("begins").over(up_to_here))
    whole = Window.partitionBy(*(key.name() for key in keys), "session")
    ends = numbered.withColumn("ends", functions.max("end").over(whole))
    if limit is not None:
        ends = ends.where(functions.unix_micros("ends") > limit)
    return ends.groupBy(*names).agg(functions.sum(WEIGHT).alias(WEIGHT)).where(functions.col(WEIGHT) != 0)
