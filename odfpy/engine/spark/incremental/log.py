"""Rows of a changelog as they came: with their operation types, their order, and what was known of time by then.

The offset of a row says in which order rows came, the system time which of them came together, in one commit. Both
travel through a part that is row by row, as one value in the place of the offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odfpy.data.vocabulary import OperationType
from odfpy.engine.spark.catalyst import Catalyst, Node, columns, items
from odfpy.engine.spark.classes.base import CARRIED, RESERVED_PREFIX
from odfpy.engine.spark.incremental.changes import WEIGHT, Changes, same_nulls
from odfpy.engine.spark.incremental.leaves import Rows, leaf_over
from odfpy.engine.spark.incremental.parts import Gate

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TIME: Final = "__odf_time"
"""The event time of a row, a TIMESTAMP."""

COMMIT: Final = "__odf_commit"
"""The system time of the commit it came with."""

SOURCE: Final = "__odf_source"
BRANCH: Final = "__odf_way"
OFFSET: Final = "__odf_place"
"""Which input it came from, through which branch of the query, and its offset there: with the commit, its order."""

OP: Final = "__odf_kind"
"""Its operation type."""

CLOCK: Final = "__odf_clock"
"""The greatest event time of all rows up to the end of its commit."""

ENDS: Final = "__odf_ends"
"""The event time that a commit stands for if it says nothing of it: the greatest that it came with; where that is not
later than what came before, just after what came before."""

MARKS: Final = (TIME, COMMIT, SOURCE, BRANCH, OFFSET, OP, CLOCK, ENDS)
ORDER: Final = (COMMIT, SOURCE, OFFSET, BRANCH)
GAINED: Final = (int(OperationType.APPEND), int(OperationType.CORRECT_TO))


def marks(catalyst: Catalyst) -> list[Node]:
    """The columns that a log has beside its data."""
    from pyspark.sql.types import IntegerType, LongType, TimestampType

    from odfpy.engine.spark.types import struct_of

    types = {SOURCE: IntegerType(), BRANCH: IntegerType(), OFFSET: LongType(), OP: IntegerType()}
    return columns(catalyst.empty(struct_of((name, types.get(name, TimestampType())) for name in MARKS)))


def log_over(catalyst: Catalyst, leaf: Node, rows: Rows | None) -> Node:
    """As `leaf_over` for an input, with system time and offset in the place of the offset."""
    from pyspark.sql import functions

    if rows is not None:
        frame = catalyst.dataframe(rows.plan)
    else:
        data = [column for column in items(leaf.projectList()) if not column.name().startswith(RESERVED_PREFIX)]
        empty = catalyst.dataframe(catalyst.empty_like(data))
        *names, offset, op = empty.columns
        frame = empty.select(*names, functions.lit(None).cast("timestamp").alias("system"), offset, op)
    *names, commit, offset, op = (f"c{at}" for at in range(len(frame.columns)))
    frame = frame.toDF(*names, commit, offset, op)
    together = functions.struct(functions.col(commit).alias("commit"), functions.col(offset).alias("offset"))
    plan = catalyst.plan(frame.select(*names, together.alias(offset), op))
    return leaf_over(catalyst, leaf, Rows(plan, only_appends=False, count=0))


def log_of(catalyst: Catalyst, gate: Gate, delta: Node, before: Changes | None) -> Changes:
    """The rows of a log, with all marks.

    Args:
        catalyst: the session.
        gate: a gate with a log.
        delta: its rows, with the carried columns.
        before: the log up to these rows.
    """
    return _with_clock(catalyst, _in_log(catalyst, gate, delta), gate.columns, before)


def _in_log(catalyst: Catalyst, gate: Gate, delta: Node) -> DataFrame:
    """The rows of a log: columns `c0`, `c1`... and all marks but the last two."""
    from pyspark.sql import functions

    columns_of_data, time = gate.columns[: -len(MARKS)], gate.log

    carried = {column.name(): column for column in columns(delta)[-len(CARRIED) :]}
    plan = catalyst.project([*columns_of_data, catalyst.alias(time, TIME), *carried.values()], delta)
    names = [f"c{at}" for at in range(len(columns_of_data))]
    frame = catalyst.dataframe(plan).toDF(*names, TIME, *carried)
    source, branch, place, op = CARRIED
    return frame.where(functions.col(TIME).isNotNull()).select(
        *names,
        functions.col(TIME).cast("timestamp").alias(TIME),
        functions.col(f"{place}.commit").alias(COMMIT),
        functions.col(source).alias(SOURCE),
        functions.col(branch).alias(BRANCH),
        functions.col(f"{place}.offset").alias(OFFSET),
        functions.col(op).alias(OP),
    )


def _with_clock(catalyst: Catalyst, rows: DataFrame, wanted: tuple[Node, ...], before: Changes | None) -> Changes:
    from pyspark.sql import Window, functions

    column = functions.col
    gained = functions.when(column(OP).isin(*GAINED), column(TIME))
    commits = rows.groupBy(COMMIT).agg(functions.max(gained).alias(TIME))
    known = functions.lit(_clock_of(catalyst, before)).cast("bigint")
    in_order = Window.orderBy(COMMIT)
    earlier = _latest(functions.max(TIME).over(in_order.rowsBetween(Window.unboundedPreceding, -1)), known)
    clock = _latest(functions.max(TIME).over(in_order.rowsBetween(Window.unboundedPreceding, 0)), known)
    said = earlier.isNull() | (clock > earlier)
    ends = functions.when(said, clock).otherwise(earlier + functions.expr("INTERVAL 1 MILLISECOND"))
    told = commits.select(COMMIT, clock.alias(CLOCK), ends.alias(ENDS))
    marked = rows.join(functions.broadcast(told), COMMIT)
    plan = catalyst.plan(marked.select(*rows.columns, CLOCK, ENDS))
    named = [same_nulls(catalyst, found, column) for found, column in zip(columns(plan), wanted, strict=True)]
    weight = catalyst.alias(catalyst.integer(1), WEIGHT)
    return Changes(catalyst.project([*named, weight], plan), only_appends=True)


def _latest(over: Column, known: Column) -> Column:
    from pyspark.sql import functions

    return functions.greatest(over, functions.timestamp_micros(known))


def _clock_of(catalyst: Catalyst, log: Changes | None) -> int | None:
    """The greatest event time of a log, in microseconds."""
    from pyspark.sql import functions

    if log is None:
        return None
    frame = catalyst.dataframe(catalyst.project([next(c for c in columns(log.plan) if c.name() == CLOCK)], log.plan))
    ((latest,),) = frame.agg(functions.unix_micros(functions.max(CLOCK))).collect()
    found: int | None = latest
    return found
