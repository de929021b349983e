"""The merge of the Spark lane: its SQL runs in Spark, over columns that the tasks read.

Only columns for comparison and ordering enter Spark's tables, converted one to one to types that Spark has. The result
is a list of operations and positions, in order and in files, by which the tasks that write slices pick the rows
themselves.
"""

# ruff: noqa: S608  (SQL is made of roles)

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.slices.slice import read_slice, slice_schema
from odfpy.ingest.lanes.positions import PLACES, MergedPositions, RepeatedKeys
from odfpy.ingest.lanes.request import LaneRequest
from odfpy.ingest.lanes.runs import Run, rows_of_run, write_table
from odfpy.ingest.merge import StateNeed
from odfpy.ingest.merge.base import order_clause, repeated_keys
from odfpy.ingest.merge_plan import MergePlan, relation
from odfpy.state.comparable import comparable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SYSTEM_TYPES = {"pos": pa.int64(), "op": pa.int32()}
_COUNTS = pa.schema([("partition", pa.int32()), *((f"op{operation}", pa.int64()) for operation in range(4))])


class SparkMerge:
    """The merge of one ingest."""

    def __init__(
        self,
        spark: SparkSession,
        request: LaneRequest,
        runs: Sequence[Run],
        schema: DataSchema,
        plan: MergePlan,
        folder: Path,
    ) -> None:
        """Prepare the relations.

        Args:
            spark: a session that no other job uses.
            request: the ingest.
            runs: the runs, in the order of the input.
            schema: schema of the dataset including these rows.
            plan: the plan of the merge.
            folder: folder for the files of the tasks.
        """
        self._spark = spark
        self._folder = folder
        self.plan = plan
        spark.conf.set("spark.sql.shuffle.partitions", str(request.partitions))
        starts = np.cumsum([0, *(run.rows for run in runs)]).tolist()
        new = [_New(run, start, self.plan) for run, start in zip(runs, starts, strict=False)]
        self._relation("new", new, new[0].read(rows=0))
        if self.plan.merge.needs_state is not StateNeed.NOTHING:
            history = [_History(path, schema, self.plan, request) for path in request.slices]
            self._relation("history", history, _history(pa.table({}), _roles(self.plan, request), schema))
            spark.sql(self._state()).createOrReplaceTempView("state")

    def repeated(self) -> RepeatedKeys:
        """Return the keys that occur more than once."""
        if not self.plan.keys:
            return RepeatedKeys(0, 0, 0)
        query = f"SELECT COUNT(*), SUM(repeats - 1), MIN(first_pos) FROM ({repeated_keys(self.plan.shape)}) AS repeated"
        found = self._spark.sql(query).collect()[0]
        return RepeatedKeys(*(int(number or 0) for number in found))

    def places(self) -> MergedPositions:
        """Return the result of the merge, in order."""
        merge, shape = self.plan.merge, self.plan.shape
        merged = self._spark.sql(f"SELECT * FROM ({merge.sql(shape)}) AS merged {order_clause(merge, shape)}")
        write = _PlaceWriter(str(self._folder))
        found = merged.select("op", "pos").mapInArrow(write, _spark_schema(_COUNTS)).collect()
        # Sorted by partition: their rows are in that order, and offsets are assigned along it.
        written = sorted(tuple(row) for row in found)
        return MergedPositions(
            paths=tuple(write.path(partition) for partition, *_ in written),
            sizes=tuple(sum(counts) for _, *counts in written),
            counts=tuple(sum(row[1 + operation] for row in written) for operation in range(4)),
        )

    def _relation(self, name: str, sources: Sequence[_New | _History], empty: pa.Table) -> None:
        parts = max(len(sources), 1)
        frame: DataFrame = self._spark.range(0, len(sources), 1, parts)
        frame.mapInArrow(_Reader(tuple(sources)), _spark_schema(empty.schema)).createOrReplaceTempView(name)

    def _state(self) -> str:
        if self.plan.merge.needs_state is StateNeed.SEEN_KEYS:
            return "SELECT * FROM history"
        keys = ", ".join(self.plan.shape.key_columns)
        return f"SELECT * FROM history WHERE op IN (0, 3) AND pos IN (SELECT MAX(pos) FROM history GROUP BY {keys})"


# --- Relations that the tasks read -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _New:
    """The relation `new` for one run."""

    run: Run
    first: int
    plan: MergePlan

    def read(self, rows: int | None = None) -> pa.Table:
        return _in_spark_types(relation(rows_of_run(self.run, rows), self.plan, self.first))


@dataclass(frozen=True, slots=True)
class _History:
    """The columns of one slice that the merge needs."""

    path: str
    schema: DataSchema
    plan: MergePlan
    request: LaneRequest

    def read(self) -> pa.Table:
        columns = _roles(self.plan, self.request)
        present = slice_schema(self.path, vocab=self.request.vocab).names
        names = dict.fromkeys(name for name in columns.values() if name in present)  # a key may be the event time
        table = read_slice(self.path, [*names], vocab=self.request.vocab)
        return _history(table, columns, self.schema)


def _roles(plan: MergePlan, request: LaneRequest) -> dict[str, str]:
    """Return the names of columns by role."""
    return {
        "pos": request.vocab.offset_column,
        "op": request.vocab.operation_type_column,
        "t": plan.event_time,
        **dict(zip(plan.shape.key_columns, plan.keys, strict=True)),
        **dict(zip(plan.shape.value_columns, plan.values, strict=True)),
    }


def _history(table: pa.Table, columns: dict[str, str], schema: DataSchema) -> pa.Table:
    types = to_arrow(schema)
    found = {}
    for role, name in columns.items():
        wanted = _SYSTEM_TYPES.get(role) or types.field(name).type  # other writers may have recorded unsigned types
        known = table.column(name) if name in table.column_names else pa.chunked_array([pa.nulls(table.num_rows)])
        found[role] = comparable(known.cast(wanted))
    return _in_spark_types(pa.table(found))


class _Reader:
    """Spark function that yields the rows of the sources that a task is assigned."""

    def __init__(self, sources: tuple[_New | _History, ...]) -> None:
        self._sources = sources

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self._sources[number].read().to_batches(max_chunksize=1 << 16)


class _PlaceWriter:
    """Spark function that writes the positions of a partition, and returns the number of rows by operation."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def path(self, partition: int) -> str:
        """Return the file of a partition."""
        return f"{self._folder}/places-{partition}"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        table = pa.Table.from_batches([batch.cast(PLACES) for batch in batches], PLACES)
        write_table(table, self.path(partition))
        operations = np.bincount(table.column("op").to_numpy(), minlength=4).tolist()
        yield pa.RecordBatch.from_pylist(
            [{"partition": partition, **{f"op{at}": count for at, count in enumerate(operations)}}], _COUNTS
        )


# --- Types of Spark --------------------------------------------------------------------------------------------------


def _in_spark_types(table: pa.Table) -> pa.Table:
    """Return the values converted to types that Spark has; the conversion is one to one and keeps their order."""
    columns = []
    for column in table.columns:
        wanted = _spark_type(column.type)
        columns.append(column if column.type == wanted else column.cast(wanted))
    return pa.table(columns, names=table.column_names)


def _spark_type(arrow: pa.DataType) -> pa.DataType:
    for is_kind, wanted in _SPARK_TYPES:
        if is_kind(arrow):
            return wanted(arrow)
    return arrow


def _field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _spark_type(field.type))


_SPARK_TYPES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], pa.DataType]], ...] = (
    (pa.types.is_null, lambda _: pa.bool_()),
    (pa.types.is_uint8, lambda _: pa.int16()),
    (pa.types.is_uint16, lambda _: pa.int32()),
    (pa.types.is_uint32, lambda _: pa.int64()),
    (pa.types.is_uint64, lambda _: pa.decimal128(20)),
    (lambda arrow: pa.types.is_date32(arrow) or pa.types.is_time32(arrow), lambda _: pa.int32()),
    (lambda arrow: pa.types.is_timestamp(arrow) or pa.types.is_time64(arrow), lambda _: pa.int64()),
    (pa.types.is_duration, lambda _: pa.int64()),
    (pa.types.is_list, lambda arrow: pa.list_(_field(arrow.value_field))),
    (pa.types.is_struct, lambda arrow: pa.struct([_field(field) for field in arrow.fields])),
)


def _spark_schema(schema: pa.Schema) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)
