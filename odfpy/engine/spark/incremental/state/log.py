"""Logs: changelog rows with the columns (marks) that temporal tables need beside the data.

The marks are the operation type, what orders the rows, and the greatest event time so far. Rows are ordered by commit
(the system time) and offset. Both pass through a stateless plan as one struct, in the place of the offset.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfpy.data.vocabulary import OperationType
from odfpy.engine.spark.incremental.properties.plan_info import StatefulInput
from odfpy.engine.spark.incremental.state.changes import WEIGHT, Changes, with_identity_of
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
"""The system time of the commit that added the row."""

LOG_SOURCE: Final = "__odf_source"
LOG_BRANCH: Final = "__odf_way"
LOG_OFFSET: Final = "__odf_place"
"""The input of a row, its branch of the query, and its offset in the input: with the commit, they order the rows."""

LOG_OP: Final = "__odf_kind"
"""The operation type of the row."""

LOG_CLOCK: Final = "__odf_clock"
"""The greatest event time of all rows up to the end of the row's commit."""

LOG_ENDS: Final = "__odf_ends"
"""The event time at which a key ends that the commit retracts, if the retraction does not state it.

It is the greatest event time of the commit or, if that is not later than all earlier ones, a millisecond after the
greatest earlier one.
"""

MARKS: Final = (LOG_TIME, LOG_COMMIT, LOG_SOURCE, LOG_BRANCH, LOG_OFFSET, LOG_OP, LOG_CLOCK, LOG_ENDS)
ORDER: Final = (LOG_COMMIT, LOG_SOURCE, LOG_OFFSET, LOG_BRANCH)
_CLOCK_MARKS: Final = (LOG_CLOCK, LOG_ENDS)
ADDITIONS: Final = (int(OperationType.APPEND), int(OperationType.CORRECT_TO))


def marks(catalyst: Catalyst) -> list[Node]:
    """Return the columns that a log has besides its data."""
    from pyspark.sql.types import IntegerType, LongType, TimestampType

    types = {LOG_SOURCE: IntegerType(), LOG_BRANCH: IntegerType(), LOG_OFFSET: LongType(), LOG_OP: IntegerType()}
    return columns(catalyst.empty(struct_of((name, types.get(name, TimestampType())) for name in MARKS)))


def log_over(catalyst: Catalyst, leaf: Node, rows: SourceRows | None) -> Node:
    """Return the rows of an input as `leaf_over` does, but with a struct of system time and offset as the offset.

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
    placed = _TEMPLATES.over(catalyst, plan, "places", _with_commit_and_offset, names=positions)
    return leaf_over(catalyst, leaf, SourceRows(placed, is_append_only=False, count=0))


def _with_commit_and_offset(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    *names, commit, offset, op = rows.columns
    union_changes = functions.struct(functions.col(commit).alias("commit"), functions.col(offset).alias("offset"))
    return rows.select(*names, union_changes.alias(offset), op)


def log_of(catalyst: Catalyst, stateful_input: StatefulInput, delta: Node, latest: int | None) -> Changes:
    """Return the rows that a pull adds to a log, with all marks.

    Args:
        catalyst: the session.
        stateful_input: a stateful input with a log.
        delta: the rows, with the carried columns.
        latest: the greatest event time of all earlier rows of the log, in microseconds; None for no rows.
    """
    return _as_changes(catalyst, _log_rows(catalyst, stateful_input, delta), stateful_input.columns, latest)


def _log_rows(catalyst: Catalyst, stateful_input: StatefulInput, delta: Node) -> Node:
    """Return the rows of a log: columns `c0`, `c1`... and all marks but `LOG_CLOCK` and `LOG_ENDS`."""
    columns_of_data, time = stateful_input.columns[: -len(MARKS)], stateful_input.log

    carried = {column.name(): column for column in columns(delta)[-len(CARRIED) :]}
    rows = catalyst.project([*columns_of_data, catalyst.alias(time, LOG_TIME), *carried.values()], delta)
    names = [f"c{at}" for at in range(len(columns_of_data))]
    return _TEMPLATES.over(catalyst, rows, "log", _select_marks, names=[*names, LOG_TIME, *carried])


def _select_marks(rows: DataFrame) -> DataFrame:
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


def _as_changes(catalyst: Catalyst, rows: Node, wanted: tuple[Node, ...], latest: int | None) -> Changes:
    """Return the rows with all marks, under the identities of the wanted columns, as append-only changes."""
    from pyspark.sql.types import TimestampType

    with stage("log"):
        few = fetched(frame := catalyst.dataframe(rows))
        if few is None:
            marked, latest = _joined_with_clock_marks(catalyst, rows, latest)
        else:
            marked_rows, latest = _with_clock_marks(few, latest)
            fields = [(field.name, field.dataType) for field in frame.schema]
            marked = sent(
                catalyst, marked_rows, struct_of([*fields, *((name, TimestampType()) for name in _CLOCK_MARKS)])
            )
    named = [with_identity_of(catalyst, column, other) for column, other in zip(columns(marked), wanted, strict=True)]
    weight = catalyst.alias(catalyst.integer(1), WEIGHT)
    return Changes(catalyst.project([*named, weight], marked), is_append_only=True, latest=latest)


def _with_clock_marks(rows: pa.Table, latest: int | None) -> tuple[pa.Table, int | None]:
    """Add `LOG_CLOCK` and `LOG_ENDS` to few rows; also return the greatest event time after them."""
    if rows[LOG_COMMIT].null_count:
        rows = rows.filter(pc.is_valid(rows[LOG_COMMIT]))
    gained = pc.is_in(rows[LOG_OP], pa.array(ADDITIONS, rows[LOG_OP].type))
    micros = [rows[name].cast(pa.int64()) for name in (LOG_COMMIT, LOG_TIME)]
    times = pa.table([micros[0], pc.if_else(gained, micros[1], None)], names=[LOG_COMMIT, LOG_TIME])
    commits = times.group_by(LOG_COMMIT).aggregate([(LOG_TIME, "max")])
    pairs = zip(commits[LOG_COMMIT].to_pylist(), commits[f"{LOG_TIME}_max"].to_pylist(), strict=True)
    clocks, latest = _commit_clocks(pairs, latest)
    at = pc.index_in(rows[LOG_COMMIT], clocks[LOG_COMMIT])
    for name in _CLOCK_MARKS:
        rows = rows.append_column(name, clocks[name].take(at))
    return rows, latest


def _joined_with_clock_marks(catalyst: Catalyst, rows: Node, latest: int | None) -> tuple[Node, int | None]:
    """Add `LOG_CLOCK` and `LOG_ENDS` to many rows, in Spark; also return the greatest event time after them."""
    clocks, latest = _commit_clocks(_commits(catalyst, rows), latest)
    (commit,) = (column for column in columns(rows) if column.name() == LOG_COMMIT)
    # Broadcast the commits: the rows need not be sorted for this join.
    clock_rows = catalyst.plan(catalyst.dataframe(sent(catalyst, clocks)).hint("broadcast"))
    same_commit = catalyst.expression("EqualTo", commit, columns(clock_rows)[0])
    outputs = [*columns(rows), *columns(clock_rows)[1:]]
    return catalyst.project(outputs, catalyst.inner_join(rows, clock_rows, same_commit)), latest


def _commits(catalyst: Catalyst, rows: Node) -> list[tuple[int, int | None]]:
    """Return the commits of a log, each with the greatest event time that it added, if any; all in microseconds."""
    read = {column.name(): column for column in columns(rows)}
    plan = catalyst.project([read[name] for name in (LOG_COMMIT, LOG_OP, LOG_TIME)], rows)
    commits = catalyst.dataframe(_TEMPLATES.over(catalyst, plan, "commits", _by_commit))
    return [(row[LOG_COMMIT], row[LOG_TIME]) for batch in batches_of(commits) for row in batch.to_pylist()]


def _by_commit(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    gained = functions.when(functions.col(LOG_OP).isin(*ADDITIONS), functions.unix_micros(LOG_TIME))
    commits = rows.where(functions.col(LOG_COMMIT).isNotNull()).groupBy(
        functions.unix_micros(LOG_COMMIT).alias(LOG_COMMIT)
    )
    return commits.agg(functions.max(gained).alias(LOG_TIME))


def _commit_clocks(commits: Iterable[tuple[int, int | None]], latest: int | None) -> tuple[pa.Table, int | None]:
    """Return a table of commits with `LOG_CLOCK` and `LOG_ENDS`, and the greatest event time after all of them.

    Args:
        commits: commits, each with the greatest event time that it added, if any; all in microseconds.
        latest: the greatest event time before them, in microseconds; None for none.
    """
    clocks: list[tuple[int, int | None, int | None]] = []
    for commit, time in sorted(commits):
        earlier = latest
        latest = max((known_time for known_time in (earlier, time) if known_time is not None), default=None)
        has_new_time = earlier is None or latest != earlier
        clocks.append((commit, latest, latest if has_new_time or earlier is None else earlier + MILLISECOND))
    timestamps = pa.timestamp("us", "UTC")
    arrays = [pa.array([row[at] for row in clocks], pa.int64()).cast(timestamps) for at in range(3)]
    return pa.table(arrays, names=[LOG_COMMIT, LOG_CLOCK, LOG_ENDS]), latest


def latest_event_time(paths: Iterable[str], stateful_input: StatefulInput) -> int | None:
    """Return the greatest event time of a log that is stored in files, in microseconds."""
    column = f"c{len(stateful_input.columns) - len(MARKS) + MARKS.index(LOG_CLOCK)}"
    times = (pc.max(pq.read_table(path, columns=[column]).column(0).cast(pa.int64())).as_py() for path in paths)
    return max((time for time in times if time is not None), default=None)
