"""Changelog rows with the marks that temporal tables need: operation type, order, and the event time known by then.

The offset of a row tells in which order rows came; the system time tells which rows came in the same commit. Both
travel through a stateless plan as one value, in the place of the offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfpy.data.vocabulary import OperationType
from odfpy.engine.spark.incremental.properties.plan_info import StatefulInput
from odfpy.engine.spark.incremental.state.changes import WEIGHT, Changes, same_nulls
from odfpy.engine.spark.incremental.state.source_rows import SourceRows, leaf_over, no_source_rows
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns, selected
from odfpy.engine.spark.plan.step import RESERVED_PREFIX
from odfpy.engine.spark.plan.templates import Templates
from odfpy.engine.spark.plan.times import MILLISECOND
from odfpy.engine.spark.plan.types import struct_of
from odfpy.engine.spark.row_by_row.carried import CARRIED
from odfpy.engine.spark.rows.stored import fetched, sent
from odfpy.engine.spark.rows.write import batches_of
from odfpy.stages import stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TEMPLATES: Final = Templates()

LOG_TIME: Final = "__odf_time"
"""The event time of a row, a TIMESTAMP."""

LOG_COMMIT: Final = "__odf_commit"
"""The system time of the commit that brought the row."""

LOG_SOURCE: Final = "__odf_source"
LOG_BRANCH: Final = "__odf_way"
LOG_OFFSET: Final = "__odf_place"
"""The input of a row, its branch of the query, and its offset in the input: with the commit, they order the rows."""

LOG_OP: Final = "__odf_kind"
"""Its operation type."""

LOG_CLOCK: Final = "__odf_clock"
"""The greatest event time of all rows up to the end of the row's commit."""

LOG_ENDS: Final = "__odf_ends"
"""The event time assigned to a commit, for rows that do not state when they ended.

It is the greatest event time that the commit brought; if that is not later than all before, just after the latest
before.
"""

MARKS: Final = (LOG_TIME, LOG_COMMIT, LOG_SOURCE, LOG_BRANCH, LOG_OFFSET, LOG_OP, LOG_CLOCK, LOG_ENDS)
ORDER: Final = (LOG_COMMIT, LOG_SOURCE, LOG_OFFSET, LOG_BRANCH)
_TOLD: Final = (LOG_CLOCK, LOG_ENDS)
GAINED: Final = (int(OperationType.APPEND), int(OperationType.CORRECT_TO))


def marks(catalyst: Catalyst) -> list[Node]:
    """Return the columns that a log has besides its data."""
    from pyspark.sql.types import IntegerType, LongType, TimestampType

    types = {LOG_SOURCE: IntegerType(), LOG_BRANCH: IntegerType(), LOG_OFFSET: LongType(), LOG_OP: IntegerType()}
    return columns(catalyst.empty(struct_of((name, types.get(name, TimestampType())) for name in MARKS)))


def log_over(catalyst: Catalyst, leaf: Node, rows: SourceRows | None) -> Node:
    """Return rows of an input like `leaf_over`, with system time and offset in place of the offset.

    Args:
        catalyst: access to Catalyst.
        leaf: the plan of the source.
        rows: the rows to read, None for none.
    """
    if rows is not None:
        plan = rows.plan
    else:
        from pyspark.sql import functions

        data = [column for column in selected(leaf) if not column.name().startswith(RESERVED_PREFIX)]
        empty = catalyst.dataframe(no_source_rows(catalyst, data))
        *names, offset, op = empty.columns
        plan = catalyst.plan(empty.select(*names, functions.lit(None).cast("timestamp").alias("system"), offset, op))
    positions = [f"c{at}" for at in range(len(columns(plan)))]
    placed = _TEMPLATES.over(catalyst, plan, "places", _placed, names=positions)
    return leaf_over(catalyst, leaf, SourceRows(placed, is_append_only=False, count=0))


def _placed(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    *names, commit, offset, op = rows.columns
    together = functions.struct(functions.col(commit).alias("commit"), functions.col(offset).alias("offset"))
    return rows.select(*names, together.alias(offset), op)


def log_of(catalyst: Catalyst, stateful_input: StatefulInput, delta: Node, latest: int | None) -> Changes:
    """Return the rows of a log, with all marks.

    Args:
        catalyst: the session.
        stateful_input: a stateful input with a log.
        delta: its rows, with the carried columns.
        latest: the greatest event time of the log up to these rows, in microseconds.
    """
    return _with_clock(catalyst, _in_log(catalyst, stateful_input, delta), stateful_input.columns, latest)


def _in_log(catalyst: Catalyst, stateful_input: StatefulInput, delta: Node) -> Node:
    """Return the rows of a log: columns `c0`, `c1`... and all marks but the last two."""
    columns_of_data, time = stateful_input.columns[: -len(MARKS)], stateful_input.log

    carried = {column.name(): column for column in columns(delta)[-len(CARRIED) :]}
    rows = catalyst.project([*columns_of_data, catalyst.alias(time, LOG_TIME), *carried.values()], delta)
    names = [f"c{at}" for at in range(len(columns_of_data))]
    return _TEMPLATES.over(catalyst, rows, "log", _marked, names=[*names, LOG_TIME, *carried])


def _marked(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    names = rows.columns[: -1 - len(CARRIED)]
    source, branch, place, op = CARRIED
    return rows.where(functions.col(LOG_TIME).isNotNull()).select(
        *names,
        functions.col(LOG_TIME).cast("timestamp").alias(LOG_TIME),
        functions.col(f"{place}.commit").alias(LOG_COMMIT),
        functions.col(source).alias(LOG_SOURCE),
        functions.col(branch).alias(LOG_BRANCH),
        functions.col(f"{place}.offset").alias(LOG_OFFSET),
        functions.col(op).alias(LOG_OP),
    )


def _with_clock(catalyst: Catalyst, rows: Node, wanted: tuple[Node, ...], latest: int | None) -> Changes:
    from pyspark.sql.types import TimestampType

    with stage("log"):
        few = fetched(frame := catalyst.dataframe(rows))
        if few is None:
            known, latest = _joined(catalyst, rows, latest)
        else:
            told, latest = _told(few, latest)
            fields = [(field.name, field.dataType) for field in frame.schema]
            known = sent(catalyst, told, struct_of([*fields, *((name, TimestampType()) for name in _TOLD)]))
    named = [same_nulls(catalyst, column, other) for column, other in zip(columns(known), wanted, strict=True)]
    weight = catalyst.alias(catalyst.integer(1), WEIGHT)
    return Changes(catalyst.project([*named, weight], known), is_append_only=True, latest=latest)


def _told(rows: pa.Table, latest: int | None) -> tuple[pa.Table, int | None]:
    """Return the rows with the last two marks, and the greatest event time up to their end."""
    if rows[LOG_COMMIT].null_count:
        rows = rows.filter(pc.is_valid(rows[LOG_COMMIT]))
    gained = pc.is_in(rows[LOG_OP], pa.array(GAINED, rows[LOG_OP].type))
    micros = [rows[name].cast(pa.int64()) for name in (LOG_COMMIT, LOG_TIME)]
    times = pa.table([micros[0], pc.if_else(gained, micros[1], None)], names=[LOG_COMMIT, LOG_TIME])
    commits = times.group_by(LOG_COMMIT).aggregate([(LOG_TIME, "max")])
    pairs = zip(commits[LOG_COMMIT].to_pylist(), commits[f"{LOG_TIME}_max"].to_pylist(), strict=True)
    told, latest = _clocks(pairs, latest)
    at = pc.index_in(rows[LOG_COMMIT], told[LOG_COMMIT])
    for name in _TOLD:
        rows = rows.append_column(name, told[name].take(at))
    return rows, latest


def _joined(catalyst: Catalyst, rows: Node, latest: int | None) -> tuple[Node, int | None]:
    """Return the same for many rows, without taking them out of Spark."""
    told, latest = _clocks(_commits(catalyst, rows), latest)
    (commit,) = (column for column in columns(rows) if column.name() == LOG_COMMIT)
    # Broadcast the commits: the rows need not be sorted for this join.
    known = catalyst.plan(catalyst.dataframe(sent(catalyst, told)).hint("broadcast"))
    same = catalyst.expression("EqualTo", commit, columns(known)[0])
    found = [*columns(rows), *columns(known)[1:]]
    return catalyst.project(found, catalyst.inner_join(rows, known, same)), latest


def _commits(catalyst: Catalyst, rows: Node) -> list[tuple[int, int | None]]:
    """Return the commits of a log, each with the greatest event time that it brought, if any; all in microseconds."""
    read = {column.name(): column for column in columns(rows)}
    plan = catalyst.project([read[name] for name in (LOG_COMMIT, LOG_OP, LOG_TIME)], rows)
    made = catalyst.dataframe(_TEMPLATES.over(catalyst, plan, "commits", _grouped))
    return [(row[LOG_COMMIT], row[LOG_TIME]) for batch in batches_of(made) for row in batch.to_pylist()]


def _grouped(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    gained = functions.when(functions.col(LOG_OP).isin(*GAINED), functions.unix_micros(LOG_TIME))
    commits = rows.where(functions.col(LOG_COMMIT).isNotNull()).groupBy(
        functions.unix_micros(LOG_COMMIT).alias(LOG_COMMIT)
    )
    return commits.agg(functions.max(gained).alias(LOG_TIME))


def _clocks(commits: Iterable[tuple[int, int | None]], latest: int | None) -> tuple[pa.Table, int | None]:
    """Return a table of commits with `LOG_CLOCK` and `LOG_ENDS`, and the greatest event time after all of them.

    Args:
        commits: commits, each with the greatest event time that it brought, if any; all in microseconds.
        latest: the greatest event time before them.
    """
    told: list[tuple[int, int | None, int | None]] = []
    for commit, time in sorted(commits):
        earlier = latest
        latest = max((known for known in (earlier, time) if known is not None), default=None)
        is_said = earlier is None or latest != earlier
        told.append((commit, latest, latest if is_said or earlier is None else earlier + MILLISECOND))
    kind = pa.timestamp("us", "UTC")
    arrays = [pa.array([row[at] for row in told], pa.int64()).cast(kind) for at in range(3)]
    return pa.table(arrays, names=[LOG_COMMIT, LOG_CLOCK, LOG_ENDS]), latest


def latest_of(paths: Iterable[str], stateful_input: StatefulInput) -> int | None:
    """Return the greatest event time of a log that is stored in files, in microseconds."""
    column = f"c{len(stateful_input.columns) - len(MARKS) + MARKS.index(LOG_CLOCK)}"
    found = (pc.max(pq.read_table(path, columns=[column]).column(0).cast(pa.int64())).as_py() for path in paths)
    return max((time for time in found if time is not None), default=None)
