"""Versions of a temporal table, computed from its changelog, and the changes between two sets of versions.

How the rows of a changelog affect versions is described in `odfpy.engine.spark.incremental.operators.temporal`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from odfpy.data.vocabulary import OperationType
from odfpy.engine.spark.incremental.state.changes import WEIGHT, with_identity_of
from odfpy.engine.spark.incremental.state.log import (
    ADDITIONS,
    LOG_COMMIT,
    LOG_ENDS,
    LOG_OFFSET,
    LOG_OP,
    LOG_SOURCE,
    LOG_TIME,
    ORDER,
)
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, column_id, columns
from odfpy.engine.spark.plan.same_bytes import sortable, summed_by_row
from odfpy.engine.spark.plan.templates import Templates

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, WindowSpec

VALID_FROM: Final = "valid_from"
VALID_TO: Final = "valid_to"
OPEN_END: Final = 253_402_300_799_999_000
"""9999-12-31T23:59:59.999Z, in microseconds."""

_TEMPLATES: Final = Templates()
_AT: Final = "__odf_at"
_IS_END: Final = "__odf_is_end"


def versions_of_log(rows: DataFrame, data: Sequence[str], keys: Sequence[str]) -> DataFrame:
    """Return the versions that result from a log: its data columns, and the interval in which each version is valid.

    Args:
        rows: the log, with all marks.
        data: names of the data columns.
        keys: those of them that form the primary key.
    """
    from pyspark.sql import Window, functions

    column, lead = functions.col, functions.lead
    content = [sortable(rows, name) for name in data]
    of_key, of_content = Window.partitionBy(*keys), Window.partitionBy(*content)
    in_order = of_key.orderBy(*ORDER, *content)
    gained = column(LOG_OP).isin(*ADDITIONS)
    # A correction is two rows with consecutive offsets, unless a query has removed one of them.
    is_pair = (
        (column(LOG_OP) == int(OperationType.CORRECT_FROM))
        & (lead(LOG_OP).over(in_order) == int(OperationType.CORRECT_TO))
        & (lead(LOG_SOURCE).over(in_order) == column(LOG_SOURCE))
        & (lead(LOG_OFFSET).over(in_order) == column(LOG_OFFSET) + 1)
    )
    # By range, not by row: all rows of a commit count together, in whatever order they come.
    with_commit = of_key.orderBy(LOG_COMMIT).rangeBetween(Window.unboundedPreceding, Window.currentRow)
    so_far = of_content.orderBy(*ORDER).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    later = in_order.rowsBetween(1, Window.unboundedFollowing)
    related = rows.select(
        "*",
        gained.alias("gained"),
        functions.when(is_pair, lead(LOG_TIME).over(in_order)).alias("corrected"),
        functions.max(gained).over(so_far).alias("matched"),
        functions.sum(functions.when(gained, 1).otherwise(-1)).over(with_commit).alias("present"),
        functions.min(functions.when(gained, column(LOG_TIME))).over(later).alias("again"),
    )
    is_wrong = column("matched") & (column("corrected").isNotNull() | (column("present") > 0))
    is_update = column("corrected") > column(LOG_TIME)
    weight = (
        functions.when(column("gained"), 1)
        .when(is_wrong & ~functions.coalesce(is_update, functions.lit(False)), -1)
        .otherwise(0)
    )
    ends = functions.when(~column("matched"), column(LOG_TIME)).when(
        column("again").isNull() | (column("again") > column(LOG_ENDS)), column(LOG_ENDS)
    )
    event = functions.when(column("gained"), column(LOG_TIME)).when(column("corrected").isNull() & ~is_wrong, ends)
    weighted = related.withColumn("weight", weight).withColumn(_AT, event)
    netted = weighted.withColumn("weight", functions.sum("weight").over(of_content))
    events = netted.where(column(_AT).isNotNull() & (~column("gained") | (column("weight") > 0)))
    return _valid(events.withColumn(_IS_END, ~column("gained")), data, keys, [*map(column, ORDER), *content])


def versions_of_growing_log(rows: DataFrame, data: Sequence[str], keys: Sequence[str]) -> DataFrame:
    """Return the versions of an append-only log, in which each row begins a version.

    Args:
        rows: the log.
        data: names of the data columns.
        keys: names of the key columns.
    """
    from pyspark.sql import functions

    events = rows.withColumn(_AT, functions.col(LOG_TIME)).withColumn(_IS_END, functions.lit(False))
    return _valid(events, data, keys, [*map(functions.col, ORDER), *(sortable(rows, name) for name in data)])


def versions_of_state(rows: DataFrame, data: Sequence[str], keys: Sequence[str], time: str) -> DataFrame:
    """Return the versions of a table, each of whose rows begins a version: its columns, and the interval of validity.

    Args:
        rows: the table.
        data: names of its columns.
        keys: those of them that form the primary key.
        time: the one that is the event time.
    """
    from pyspark.sql import functions

    events = rows.withColumn(_AT, functions.col(time).cast("timestamp")).withColumn(_IS_END, functions.lit(False))
    return _valid(events.where(functions.col(_AT).isNotNull()), data, keys, [sortable(rows, name) for name in data])


def _valid(events: DataFrame, data: Sequence[str], keys: Sequence[str], order: Sequence[Column]) -> DataFrame:
    """Return versions that are valid until the next event of their key; of several at one time, the last one.

    Args:
        events: rows with the time at which they begin or end a version.
        data: names of the data columns.
        keys: those of them that form the primary key.
        order: the order of events at one time.
    """
    from pyspark.sql import Window, functions

    latest = Window.partitionBy(*keys, _AT).orderBy(*(column.desc() for column in order))
    last = events.withColumn("nth", functions.row_number().over(latest)).where("nth = 1")
    until = functions.lead(_AT).over(Window.partitionBy(*keys).orderBy(_AT))
    valid = last.withColumn(VALID_FROM + _AT, functions.col(_AT)).withColumn(
        VALID_TO + _AT, functions.coalesce(until, functions.timestamp_micros(functions.lit(OPEN_END)))
    )
    return valid.where(~functions.col(_IS_END)).select(*data, VALID_FROM + _AT, VALID_TO + _AT)


def differing(catalyst: Catalyst, wanted: Sequence[Node], plan: Node, valid: tuple[Node, Node]) -> Node:
    """Restrict changes of versions to the intervals in which they make a difference.

    When a version ends, its row without an end is retracted, and one with that end is added. The net change is that the
    row is no longer valid from that time on.

    Args:
        catalyst: the session.
        wanted: the columns of the versions.
        plan: the changes: these columns, and a weight.
        valid: from when and until when a version is valid, of these columns.

    Returns:
        A plan with the same columns.
    """
    names = [f"c{at}" for at in range(len(wanted))]
    ids = [column_id(column) for column in wanted]
    begin, end = (names[ids.index(column_id(column))] for column in valid)
    spans = partial(_spans, begin=begin, end=end)
    spans_plan = _TEMPLATES.over(catalyst, plan, ("differing", begin, end), spans, names=[*names, WEIGHT])
    named = [
        with_identity_of(catalyst, below, column) for below, column in zip(columns(spans_plan), wanted, strict=False)
    ]
    return catalyst.project([*named, catalyst.alias(columns(spans_plan)[-1], WEIGHT)], spans_plan)


def _spans(rows: DataFrame, begin: str, end: str) -> DataFrame:
    from pyspark.sql import Window, functions

    *names, _ = rows.columns
    same = [name for name in names if name != end]
    weight = functions.col(WEIGHT)
    bounds = functions.array(
        functions.struct(functions.col(begin).alias("at"), weight.alias("by")),
        functions.struct(functions.col(end).alias("at"), (-weight).alias("by")),
    )
    moves = rows.select(*same, functions.explode(bounds).alias("move"))
    moves = summed_by_row(moves.select(*same, "move.at", "move.by"), [*same, "at"], {"by": functions.sum("by")})
    in_time: WindowSpec = Window.partitionBy(*(sortable(moves, name) for name in same)).orderBy("at")
    spans = (
        moves.where("by <> 0")
        .withColumn("until", functions.lead("at").over(in_time))
        .withColumn(WEIGHT, functions.sum("by").over(in_time.rowsBetween(Window.unboundedPreceding, 0)))
        .where(f"{WEIGHT} <> 0")
    )
    renamed = {begin: functions.col("at"), end: functions.col("until")}
    return spans.select(*(renamed.get(name, functions.col(name)).alias(name) for name in names), WEIGHT)
