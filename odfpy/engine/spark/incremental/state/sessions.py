"""Rows of a stateful input that belong to sessions that are not closed yet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.engine.spark.analysis.linked_sessions import link_keys
from odfpy.engine.spark.incremental.properties.plan_info import StatefulInput
from odfpy.engine.spark.incremental.state.changes import WEIGHT, Changes
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, columns
from odfpy.engine.spark.plan.session_windows import beside_sessions
from odfpy.engine.spark.plan.times import Clock
from odfpy.engine.spark.rows.batches import write_parquet
from odfpy.engine.spark.rows.effort import gathered_rows, is_gathered, read_plan
from odfpy.errors import InternalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LINK: Final = ("piece", "gap")


def open_sessions(
    catalyst: Catalyst, stateful_input: StatefulInput, parts: Sequence[Changes], clock: Clock, scratch: Path
) -> DataFrame:
    """The rows of sessions that end after the watermark, columns `c0`, `c1`... and their weights.

    A row spans the time from its own to the end of the gap after it. Rows of one key whose spans touch are one session.

    Args:
        catalyst: the session of Spark.
        stateful_input: a stateful input with `session`, and one rule in `complete_when` with the watermark.
        parts: its rows.
        clock: the watermarks of now.
        scratch: a file for itself.
    """
    from pyspark.sql import functions

    if stateful_input.session is None:
        raise InternalError("The stateful input keeps no sessions")
    start, end = stateful_input.session
    spans = [catalyst.alias(start, "start"), catalyst.alias(end, "end")]
    are_many = not is_gathered(catalyst.spark)
    if are_many:
        links = zip(link_keys(Builder(catalyst), start, end), _LINK, strict=True)
        spans += [catalyst.alias(key, name) for key, name in links]
    keys = [catalyst.alias(key, f"k{at}") for at, key in enumerate(stateful_input.keys)]
    of_key = [key.name() for key in keys]
    names = [f"c{at}" for at in range(len(stateful_input.columns))]
    frames = [
        catalyst.dataframe(
            catalyst.project([*stateful_input.columns, columns(rows.plan)[-1], *spans, *keys], rows.plan)
        ).toDF(*names, WEIGHT, *(span.name() for span in spans), *of_key)
        for rows in parts
    ]
    rows = gathered_rows(reduce(lambda one, other: one.union(other), frames))
    limit = stateful_input.complete_when[0].limit.at(clock)
    if limit is not None:
        rows = (
            _open_rows(catalyst, rows, of_key, limit, scratch)
            if are_many
            else _in_open_sessions(catalyst, rows, of_key, limit)
        )
    return rows.groupBy(*names).agg(functions.sum(WEIGHT).alias(WEIGHT)).where(functions.col(WEIGHT) != 0)


def _in_open_sessions(catalyst: Catalyst, rows: DataFrame, of_key: Sequence[str], limit: int) -> DataFrame:
    """Rows from `start` to `end` whose sessions end after a time, in microseconds; with two more columns."""
    from pyspark.sql import functions

    plan = catalyst.plan(rows)
    named = dict(zip(rows.columns, columns(plan), strict=True))
    keys = [named[key] for key in of_key]
    marked = beside_sessions(Builder(catalyst), plan, keys, named["start"], named["end"])
    whole = catalyst.dataframe(marked).toDF(*rows.columns, "begins", "ends")
    return whole.where(functions.unix_micros("ends") > limit)


def _open_rows(catalyst: Catalyst, rows: DataFrame, of_key: Sequence[str], limit: int, scratch: Path) -> DataFrame:
    """The same of many rows, of which few are in such sessions.

    Sessions of a key follow each other, so that all rows from the first such session on are in one. When it begins is
    found by links of rows, and written to a file, since all rows are compared with it.
    """
    from pyspark.sql import functions

    links = rows.groupBy(*of_key, *_LINK).agg(functions.min("start").alias("start"), functions.max("end").alias("end"))
    begin = _in_open_sessions(catalyst, links, of_key, limit)
    begin = begin.groupBy(*of_key).agg(functions.min("start").alias("since"))
    begin = begin.toDF(*(f"of-{key}" for key in of_key), "since")
    write_parquet(scratch, begin, even_if_empty=True)
    begin = catalyst.dataframe(read_plan(catalyst, begin.schema, [scratch]))
    same = [rows[key].eqNullSafe(begin[f"`of-{key}`"]) for key in of_key]
    return rows.join(begin, [*same, rows["start"] >= begin["since"]], "leftsemi")
