"""Convergence after a query change: the first run emits the difference between the new result and the output so far.

What consumers have is the current state of the output, whichever queries have made its rows. The new query is run over
the inputs from their beginning, and the difference between the two states is emitted. So nothing needs to be known
about earlier queries, and the invariant holds again: the state of the output is the query applied to the state of the
inputs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas.arrow import from_arrow, to_arrow
from odfpy.data.schemas.evolution import extend_with_result
from odfpy.data.schemas.schema import DataSchema
from odfpy.engine.contract import SliceDescription, TransformRequest, TransformRequestInput
from odfpy.engine.output import OutputLayout
from odfpy.engine.spark.execution.stateful import Stateful, in_final_order, key_of, run_fragments, write_rows
from odfpy.engine.spark.incremental.properties.plan_info import Fragment, PlanInfo, StatefulInput
from odfpy.engine.spark.incremental.run import FragmentRun
from odfpy.engine.spark.incremental.state.changes import WEIGHT, Changes, net, weight_of
from odfpy.engine.spark.incremental.streams import HistoryNeeded
from odfpy.engine.spark.plan.catalyst import columns
from odfpy.engine.spark.plan.same_bytes import summed_by_row
from odfpy.engine.spark.plan.types import spark_schema
from odfpy.engine.spark.rows.batches import ROWS_IN_ONE_TASK
from odfpy.engine.spark.rows.parallelism import gathered_rows
from odfpy.engine.spark.rows.tables import Table, scan, visible_columns
from odfpy.errors import InvalidQuery, SchemaError
from odfpy.stages import stage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


def write_difference(
    ready: Stateful, request: TransformRequest, engine: str, rows_in_one_task: int = ROWS_IN_ONE_TASK
) -> tuple[SliceDescription, ...]:
    """Run a transform from the beginning of its inputs, and write how its result differs from the output so far.

    Args:
        ready: the prepared transform.
        request: the request.
        engine: name and version of the engine.
        rows_in_one_task: number of rows up to which one task does the work.

    Raises:
        HistoryNeeded: the request lacks earlier rows that are needed.
        InvalidQuery: the result does not fit the schema of the output so far.
    """
    recorded, so_far = request.recorded_schema, request.output_so_far
    if recorded is not None and so_far is None:
        raise HistoryNeeded
    inputs = tuple(map(_from_beginning, request.query_inputs))
    # State and arrangement belong to an earlier query, so they are not used.
    whole_request = replace(
        request, query_inputs=inputs, prev_checkpoint_path=None, prev_arrangement_path=None, new_arrangement_path=None
    )
    runs = run_fragments(ready, whole_request, engine, rows_in_one_task)
    output = ready.steps.output
    info, pull = ready.steps.last.info, runs.pull
    run = FragmentRun(pull, _fragment_of_rows(info, len(pull.streams))) if output is None else runs.fragments[-1]
    with stage("plan"):
        result = _Result(ready, ready.layout, ready.catalyst.dataframe(run.changes()).drop(WEIGHT))
    before = None
    if recorded is not None and so_far is not None:
        table = Table("the output so far", request.vocab, so_far.schema_file, so_far.data_paths)
        result = result.fitted(recorded)
        before = _state_of(ready, table, result)
    changed = result.rows if before is None else _changed(before, result.rows)
    # Rows of an earlier query may have duplicates in the new key: then changes are emitted without corrections.
    key = key_of(info) if before is None or _is_unique(before, key_of(info)) else None
    changes = ready.catalyst.plan(changed)
    with stage("output"):
        slices = write_rows(
            request, result.layout, in_final_order(ready.catalyst, changes, key, result.layout.sources[0])
        )
    runs.write_state(whole_request, engine)
    return slices


def _from_beginning(source: TransformRequestInput) -> TransformRequestInput:
    """Return an input all of whose rows count as new."""
    if source.prev_offset is None:
        return replace(source, prev_watermark=None)
    if source.history_paths is None:
        raise HistoryNeeded
    last = source.prev_offset if source.offset_interval is None else source.offset_interval.end
    return replace(
        source,
        offset_interval=OffsetInterval(0, last),
        data_paths=tuple(dict.fromkeys((*source.history_paths, *source.data_paths))),  # both may contain the same slice
        history_paths=None,
        prev_offset=None,
        prev_watermark=None,
    )


def _fragment_of_rows(info: PlanInfo, source: int) -> Fragment:
    """Return a stateless plan as a fragment that returns the state of its rows."""
    stateful_input = StatefulInput(0, info.stateless_plan, info.columns, ())
    return Fragment(
        source,
        PlanInfo(
            info.columns, build=lambda inputs_at: inputs_at.rows(stateful_input), stateful_inputs=(stateful_input,)
        ),
        {0: ()},
    )


@dataclass(frozen=True, slots=True)
class _Result:
    """The whole result of the new query.

    Attributes:
        ready: the transform.
        layout: the final columns.
        rows: the result, columns `c0`, `c1`...
    """

    ready: Stateful
    layout: OutputLayout
    rows: DataFrame

    def names(self) -> list[str]:
        """Return the names of the result's columns, in its order."""
        by_position = {at: self.layout.schema.field(3 + number).name for number, at in enumerate(self.layout.sources)}
        return [by_position[at] for at in sorted(by_position)]

    def fitted(self, recorded: DataSchema) -> _Result:
        """Return the result with NULL columns for those only in the output so far, and times as they are stored."""
        from pyspark.sql import functions
        from pyspark.sql.types import TimestampNTZType, TimestampType

        _check_fits(recorded, self.layout)
        stored = to_arrow(recorded)
        known = {*self.names(), *self.layout.vocab.columns}
        more = pa.schema([field for field in stored if field.name not in known])
        rows = self.rows
        for field in rows.schema.fields:
            if isinstance(field.dataType, (TimestampType, TimestampNTZType)):
                value = functions.date_trunc("millisecond", functions.col(field.name).cast("timestamp"))
                rows = rows.withColumn(field.name, value)
        first = len(rows.columns)
        for number, wanted in enumerate(spark_schema(more, "the output so far").fields, start=first):
            rows = rows.withColumn(f"c{number}", functions.lit(None).cast(wanted.dataType))
        schema = self.layout.schema
        for extra in more:
            schema = schema.append(extra.with_nullable(True))
        sources = (*self.layout.sources, *range(first, first + len(more)))
        return replace(self, layout=replace(self.layout, schema=schema, sources=sources), rows=rows)


def _check_fits(recorded: DataSchema, layout: OutputLayout) -> None:
    system_columns = (layout.vocab.offset_column, layout.vocab.operation_type_column)
    old, new = (
        DataSchema(tuple(field for field in schema.fields if field.name not in system_columns))
        for schema in (recorded, from_arrow(layout.schema))
    )
    try:
        extend_with_result(old, new)
    except SchemaError as error:
        raise InvalidQuery(f"The result does not fit what the dataset has: {error.message}", hint=error.hint) from error


def _state_of(ready: Stateful, table: Table, result: _Result) -> DataFrame | None:
    """Return the state of the output, with the columns of the result and a weight; None when it has no slices."""
    from pyspark.sql import functions

    if not table.data_paths:
        return None
    catalyst, schema = ready.catalyst, table.schema()
    plan = scan(catalyst, table, ready.scratch)
    all_columns = columns(plan)
    seen = visible_columns(schema, table.vocab)
    weight = weight_of(catalyst, all_columns[schema.names.index(table.vocab.operation_type_column)])
    rows = catalyst.project([*(all_columns[at] for at in seen), weight], plan)
    state = catalyst.dataframe(net(catalyst, Changes(rows, is_append_only=False)))
    position = {schema.names[at]: f"c{number}" for number, at in enumerate(seen)}
    recorded = {field.name: field.dataType for field in state.schema.fields}
    wanted = {field.name: field.dataType for field in result.rows.schema.fields}
    aligned = [
        _widened(functions.col(position[name]), recorded[position[name]], wanted[f"c{at}"]).alias(f"c{at}")
        if name in position
        else functions.lit(None).cast(wanted[f"c{at}"]).alias(f"c{at}")
        for at, name in enumerate(result.names())
    ]
    return state.where(functions.col(WEIGHT) > 0).select(*aligned, WEIGHT)


def _widened(value: Column, recorded: DataType, wanted: DataType) -> Column:
    """Cast a value to the type that the result has now. CAST does not add members to structs, so this does."""
    from pyspark.sql import functions
    from pyspark.sql.types import StructType

    if isinstance(recorded, StructType) and isinstance(wanted, StructType) and set(recorded.names) <= set(wanted.names):
        members = [
            _widened(value.getField(field.name), recorded[field.name].dataType, field.dataType).alias(field.name)
            if field.name in recorded.names
            else functions.lit(None).cast(field.dataType).alias(field.name)
            for field in wanted.fields
        ]
        return functions.when(value.isNotNull(), functions.struct(*members))
    return value.cast(wanted)


def _changed(before: DataFrame, after: DataFrame) -> DataFrame:
    """Return the net of two states, as `difference` computes it."""
    from pyspark.sql import functions

    lost = before.withColumn(WEIGHT, -functions.col(WEIGHT))
    gained = after.withColumn(WEIGHT, functions.lit(1))
    rows = gathered_rows(gained.union(lost))
    summed = summed_by_row(rows, after.columns, {WEIGHT: functions.sum(WEIGHT).cast("int")})
    return summed.where(functions.col(WEIGHT) != 0)


def _is_unique(rows: DataFrame, key: list[str] | None) -> bool:
    """Return whether a key identifies the rows of a state; only then one row can replace another."""
    from pyspark.sql import functions

    if key is None:
        return False
    times = functions.sum(WEIGHT)
    counted = rows.groupBy(*key).agg(times.alias(WEIGHT)) if key else rows.agg(times.alias(WEIGHT))
    return counted.where(functions.col(WEIGHT) > 1).isEmpty()
