"""Temporal tables: an input or an earlier step as versions by primary key, each valid for an interval of event time.

Queries see the data columns and two more, `valid_from` (inclusive) and `valid_to` (exclusive), both TIMESTAMP. A
version without an end has the `valid_to` 9999-12-31T23:59:59.999Z. At any time, a primary key has at most one version.

How a row of the changelog affects the versions of its key:

| row | effect |
|---|---|
| `+A` | a version begins at its event time, and ends the version that was valid then |
| `-C` `+C`, the second later | an update: a version begins at the event time of `+C` |
| `-C` `+C`, the second not later | a correction: the new row replaces the old one |
| `-R` at another event time than that of its row | the version that is valid then ends at that time |
| `-R` at the event time of its row, where the key has other rows | a correction: the row counts as never added |
| `-R` at the event time of its row, the only one of its key | a deletion of the key: its version ends, see below |

Two versions of one key cannot begin at the same time: the last row wins. A `-C` whose `+C` a query has filtered out, or
moved to another key, counts as a `-R`.

The merge strategies Snapshot and UpsertStream retract a key with the row that it had, event time included: the
changelog does not state when the key ended. The version then ends at the greatest event time of the commit that
retracts the key. If that is not later than all earlier event times, it ends a millisecond after the greatest of them.
If the key comes back with an earlier event time, it counts as never ended. Ledgers and append streams consist of `+A`
only; a ChangelogStream states itself what its rows mean.

The changelog of a stateful step (a GROUP BY, a join...) depends on how inputs are divided into pulls. So each row of
its current result begins a version; of several at one time, the greatest by all columns wins.

Of an append-only log, the state consists of the last row of each key up to the watermark, and all rows after the
watermark: rows that come on time need no others. When a row comes late or is retracted, the whole log is read; from the
first retraction or correction on, all of it is stored. Joins store less: see `as_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from odfpy.dataset.transform import SqlQueryStep, TemporalTable
from odfpy.engine.spark.incremental.operators.sources import TableSource
from odfpy.engine.spark.incremental.properties.keys import sources_read
from odfpy.engine.spark.incremental.properties.plan_info import (
    Fragment,
    InputsAt,
    Key,
    PlanInfo,
    Retention,
    StatefulInput,
    StateRequirement,
    TimeColumn,
    Validity,
    Values,
    fragment_of,
)
from odfpy.engine.spark.incremental.state.changes import renamed
from odfpy.engine.spark.incremental.state.log import LOG_TIME, MARKS, ORDER, marks
from odfpy.engine.spark.incremental.state.versions import (
    VALID_FROM,
    VALID_TO,
    versions_of_growing_log,
    versions_of_log,
    versions_of_state,
)
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, column_id, columns
from odfpy.engine.spark.plan.same_bytes import sortable
from odfpy.engine.spark.plan.storable_types import can_be_key, check_rows
from odfpy.engine.spark.plan.templates import Templates
from odfpy.engine.spark.plan.time_values import is_time
from odfpy.engine.spark.plan.times import Clock, DerivedWatermark, SourceWatermark
from odfpy.errors import InvalidQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TEMPLATES: Final = Templates()
_IS_PAST: Final = "__odf_past"


def declared_tables(
    tables: Sequence[TemporalTable], inputs: Sequence[str], steps: Sequence[SqlQueryStep]
) -> dict[str, TemporalTable]:
    """Return the temporal tables of a transform by name.

    Args:
        tables: the declarations.
        inputs: names of the inputs.
        steps: the steps of the transform.

    Raises:
        InvalidQuery: one has no key, or the name is not that of one input or earlier step.
    """
    readable_names = [*inputs, *(step.alias for step in steps[:-1] if step.alias is not None)]
    by_name: dict[str, TemporalTable] = {}
    for table in tables:
        if table.name not in readable_names:
            raise InvalidQuery(
                f"The temporal table `{table.name}` is neither an input nor an earlier step",
                hint=f"There are: {', '.join(f'`{name}`' for name in readable_names)}.",
            )
        if table.name in by_name:
            raise InvalidQuery(f"The temporal table `{table.name}` is declared twice", hint="Once is enough.")
        if not table.primary_key:
            raise InvalidQuery(
                f"The temporal table `{table.name}` has no primary key",
                hint="`primaryKey` lists the columns that identify what a row is a version of.",
            )
        by_name[table.name] = table
    return by_name


@dataclass(frozen=True, slots=True)
class Versions:
    """A temporal table as queries see it: the fragment that computes it, and its properties as a source."""

    fragment: Fragment
    source: TableSource


def temporal_table(
    catalyst: Catalyst, table: TemporalTable, info: PlanInfo, event_time: str, number: int, num_inputs: int
) -> Versions:
    """Plan the fragment that turns a stateless plan into the versions of a temporal table.

    Args:
        catalyst: the session.
        table: the declaration.
        info: the properties of the plan that becomes a temporal table; it is stateless.
        event_time: name of the column with the event time.
        number: number of the source that the temporal table forms.
        num_inputs: sources with smaller numbers are inputs.

    Raises:
        InvalidQuery: a column is missing, or one of the added columns exists already.
    """
    keys = _keys(table, info, event_time)
    time = next(column for column in info.columns if column.name() == event_time)
    is_log = all(source < num_inputs for source in sources_read(info.stateless_plan))
    stored_columns = (*info.columns, *marks(catalyst)) if is_log else info.columns
    time_column = info.times.get(column_id(time))
    retained = (
        partial(_retained_rows, stored_columns, keys, time_column.watermark)
        if is_log and time_column and type(time_column.watermark) is SourceWatermark
        else None
    )
    stateful_input = StatefulInput(
        0,
        info.stateless_plan,
        stored_columns,
        keys,
        retention=Retention.ALL,
        log=time if is_log else None,
        top_rows=retained,
    )
    outputs = _outputs(catalyst, info)
    versions = PlanInfo(
        outputs,
        build=lambda inputs_at: _build(inputs_at, stateful_input, outputs, time),
        keys=tuple(Key({0: at}, Values.of([key])) for at, key in enumerate(keys)),
        stateful_inputs=(stateful_input,),
        unique=frozenset(column_id(column) for column in (*keys, outputs[-2])),
        requirements=(requirement_of(table),),
    )
    return Versions(fragment_of(versions, number, table.name), _source(table, info, outputs, time))


def _retained_rows(
    stored_columns: tuple[Node, ...], keys: tuple[Node, ...], watermark: DerivedWatermark, rows: Node, clock: Clock
) -> Node:
    """Return the rows of an append-only log to store: the last of each key up to the watermark, and all later ones.

    Args:
        stored_columns: the columns of the log, marks last.
        keys: the columns of the primary key.
        watermark: the watermark of the event time.
        rows: the rows.
        clock: the watermarks of the sources.
    """
    catalyst, limit = clock.catalyst, watermark.at(clock)
    if limit is None:
        return rows
    ids = [column_id(column) for column in stored_columns]
    data = [f"c{at}" for at in range(len(stored_columns) - len(MARKS))]
    by = [data[ids.index(column_id(key))] for key in keys]
    log_columns = columns(rows)
    time = log_columns[len(data) + MARKS.index(LOG_TIME)]
    is_past = catalyst.expression("LessThanOrEqual", time, catalyst.time(limit, time))
    marked = catalyst.project([*log_columns, catalyst.alias(is_past, _IS_PAST)], rows)
    names = [*data, *MARKS, _IS_PAST]
    query = partial(_last_of_each, keys=by, data=data)
    return renamed(catalyst, _TEMPLATES.over(catalyst, marked, ("latest", *by), query, names=names), stored_columns)


def _last_of_each(rows: DataFrame, keys: Sequence[str], data: Sequence[str]) -> DataFrame:
    from pyspark.sql import Window, functions

    order = [functions.col(name).desc() for name in (LOG_TIME, *ORDER)]
    order += [sortable(rows, name).desc() for name in data]
    place = functions.row_number().over(Window.partitionBy(*keys, _IS_PAST).orderBy(*order))
    retained = rows.withColumn("place", place).where(~functions.col(_IS_PAST) | (functions.col("place") == 1))
    return retained.drop("place", _IS_PAST)


def requirement_of(table: TemporalTable) -> StateRequirement:
    """Return what a temporal table keeps, for `odf inspect query`."""
    by = ", ".join(table.primary_key)
    return StateRequirement("temporal table", f"`{table.name}` has versions by {by}", f"all versions of `{table.name}`")


def _keys(table: TemporalTable, info: PlanInfo, event_time: str) -> tuple[Node, ...]:
    """Return the columns of the primary key; raises `InvalidQuery` if the plan cannot be a temporal table."""
    by_name = {str(column.name()): column for column in info.columns}
    for name in (VALID_FROM, VALID_TO):
        if name in by_name:
            raise InvalidQuery(
                f"The temporal table `{table.name}` already has a column `{name}`",
                hint="Give it another name in a step before, and declare that step as the temporal table.",
            )
    if event_time not in by_name or not is_time(by_name[event_time]):
        raise InvalidQuery(
            f"The temporal table `{table.name}` has no column `{event_time}` with times",
            hint="Versions begin at the event time of a row: select it, as a TIMESTAMP or a DATE.",
        )
    for name in table.primary_key:
        if name not in by_name:
            raise InvalidQuery(
                f"The temporal table `{table.name}` has no column `{name}`, which is to be its primary key",
                hint=f"It has: {', '.join(f'`{known}`' for known in by_name)}. Names are case-sensitive.",
            )
        if name == event_time:
            raise InvalidQuery(
                f"The primary key of the temporal table `{table.name}` contains the event time, `{name}`",
                hint="With it, no row would be another version of an earlier one: omit it.",
            )
        if not can_be_key(by_name[name]):
            raise InvalidQuery(
                f"The primary key of the temporal table `{table.name}` contains `{name}`, which has the type "
                f"{by_name[name].dataType().sql()}, and rows cannot be looked up by it",
                hint="Convert it to a text or a number in an earlier step.",
            )
    check_rows(info.columns, lambda _: f" (in the temporal table `{table.name}`)", are_stored=True)
    return tuple(by_name[name] for name in table.primary_key)


def _outputs(catalyst: Catalyst, info: PlanInfo) -> tuple[Node, ...]:
    """Return the columns of a temporal table: those of the plan, `valid_from` and `valid_to`."""
    from pyspark.sql.types import StructField, StructType, TimestampType

    fields = [StructField(name, TimestampType(), nullable=False) for name in (VALID_FROM, VALID_TO)]
    return (*info.columns, *columns(catalyst.empty(StructType(fields))))


def _source(table: TemporalTable, info: PlanInfo, outputs: Sequence[Node], time: Node) -> TableSource:
    """Return the properties of a temporal table as a source; raises `InvalidQuery` if its time has no watermark."""
    positions = {column_id(column): at for at, column in enumerate(outputs)}
    begin, end = len(outputs) - 2, len(outputs) - 1
    by_name = {str(column.name()): at for at, column in enumerate(info.columns)}
    unique = frozenset([*(by_name[name] for name in table.primary_key), begin])
    time_column = info.times.get(column_id(outputs[positions[column_id(time)]]))
    if time_column is None or time_column.windows:
        raise InvalidQuery(
            f"The event time of the temporal table `{table.name}` has no watermark",
            hint="Queries could never know which version is in force: pass on the event time of an input.",
        )
    watermark = time_column.watermark
    validity = {begin: Validity(is_end=False, watermark=watermark), end: Validity(is_end=True, watermark=watermark)}
    return TableSource({end: TimeColumn(watermark)}, unique, validity)


def _build(inputs_at: InputsAt, stateful_input: StatefulInput, outputs: Sequence[Node], time: Node) -> Node:
    """Return the versions at one moment, from a log or from the result of a stateful step."""
    catalyst = inputs_at.clock.catalyst
    ids = [column_id(column) for column in stateful_input.columns]
    data = [f"c{at}" for at in range(len(outputs) - 2)]
    keys = [data[ids.index(column_id(key))] for key in stateful_input.keys]
    rows, names = inputs_at.rows(stateful_input), [*data, *MARKS]
    versions: Callable[..., DataFrame]
    if stateful_input.log is None:
        names, begin = data, data[ids.index(column_id(time))]
        purpose, versions = f"state by {begin}", partial(versions_of_state, time=begin)
    elif inputs_at.is_append_only(stateful_input):
        purpose, versions = "growing log", versions_of_growing_log
    else:
        purpose, versions = "log", versions_of_log
    query = partial(versions, data=data, keys=keys)
    return renamed(catalyst, _TEMPLATES.over(catalyst, rows, (purpose, *keys), query, names=names), outputs)
