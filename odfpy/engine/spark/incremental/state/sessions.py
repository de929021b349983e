"""State of session windows: the rows of a stateful input in sessions that are still open."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from odfpy.engine.spark.analysis.linked_sessions import link_keys
from odfpy.engine.spark.incremental.properties.plan_info import StatefulInput
from odfpy.engine.spark.incremental.state.changes import WEIGHT, Changes, net_rows
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns
from odfpy.engine.spark.plan.session_windows import beside_sessions
from odfpy.engine.spark.plan.times import Clock
from odfpy.engine.spark.rows.parallelism import gather, is_gathered
from odfpy.engine.spark.rows.stored import Stored
from odfpy.errors import InternalError

_LINK: Final = ("piece", "gap")


def open_sessions(
    catalyst: Catalyst, stateful_input: StatefulInput, parts: Sequence[Changes], clock: Clock, scratch: Path
) -> Node:
    """Return the rows of sessions that end after the watermark: columns `c0`, `c1`... and their weights.

    A row spans the time from its own to the end of the gap after it. Rows of one key whose spans touch are one session.

    Args:
        catalyst: Spark session.
        stateful_input: a stateful input with `session`, and one rule in `complete_when` with the watermark.
        parts: the rows of the stateful input.
        clock: the current watermarks.
        scratch: a path for a temporary file.
    """
    if stateful_input.rules.session is None:
        raise InternalError("The stateful input keeps no sessions")
    build = Builder(catalyst)
    start, end = stateful_input.rules.session
    spans = {"start": start, "end": end}
    are_many = not is_gathered(catalyst.spark)
    if are_many:
        spans |= dict(zip(_LINK, link_keys(build, start, end), strict=True))
    spans |= {f"k{at}": key for at, key in enumerate(stateful_input.keys)}
    named = {f"c{at}": column for at, column in enumerate(stateful_input.columns)}
    num_kept = len(named) + 1
    plans = [
        catalyst.project(
            [
                catalyst.alias(column, name)
                for name, column in {**named, WEIGHT: build.cast(columns(rows.plan)[-1], "bigint"), **spans}.items()
            ],
            rows.plan,
        )
        for rows in parts
    ]
    rows = gather(catalyst, catalyst.all_of(plans))
    limit = stateful_input.rules.complete_when[0].limit.at(clock)
    if limit is not None:
        of_key = [f"k{at}" for at in range(len(stateful_input.keys))]
        rows = (
            _open_rows(catalyst, rows, of_key, limit, scratch)
            if are_many
            else _in_open_sessions(catalyst, rows, of_key, limit)
        )
    return net_rows(catalyst, catalyst.project(columns(rows)[:num_kept], rows))


def _in_open_sessions(catalyst: Catalyst, rows: Node, of_key: Sequence[str], limit: int) -> Node:
    """Return the rows whose sessions end after a time in microseconds, with the columns of `beside_sessions`."""
    build = Builder(catalyst)
    named = {column.name(): column for column in columns(rows)}
    marked = beside_sessions(build, rows, [named[key] for key in of_key], named["start"], named["end"])
    ends = columns(marked)[-1]
    return catalyst.filter(build.expression("GreaterThan", ends, catalyst.time(limit, ends)), marked)


def _open_rows(catalyst: Catalyst, rows: Node, of_key: Sequence[str], limit: int, scratch: Path) -> Node:
    """Return the same for many rows, few of which are in open sessions.

    The sessions of a key do not overlap, so all rows from the start of its first open session on are in open sessions.
    That start is computed from rows linked by gap, and materialized, since all rows are compared with it.
    """
    from pyspark.sql import functions

    all_rows = catalyst.dataframe(rows)
    links = all_rows.groupBy(*of_key, *_LINK).agg(
        functions.min("start").alias("start"), functions.max("end").alias("end")
    )
    in_open = catalyst.dataframe(_in_open_sessions(catalyst, catalyst.plan(links), of_key, limit))
    begin = in_open.groupBy(*of_key).agg(functions.min("start").alias("since"))
    begin = begin.toDF(*(f"of-{key}" for key in of_key), "since")
    begin = catalyst.dataframe(Stored(catalyst, begin, scratch).plan)
    same = [all_rows[key].eqNullSafe(begin[f"`of-{key}`"]) for key in of_key]
    return catalyst.plan(all_rows.join(begin, [*same, all_rows["start"] >= begin["since"]], "leftsemi"))
