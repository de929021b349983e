"""The rows of a plan as Arrow batches, in an order that no partitioning can change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.engine.corrections import Numbers, TaggedRows
from odfpy.engine.spark.plan.catalyst import Catalyst, Node
from odfpy.engine.spark.plan.same_bytes import sortable
from odfpy.engine.spark.plan.step import CARRIED_BRANCH, CARRIED_OFFSET, CARRIED_OPERATION
from odfpy.engine.spark.plan.types import arrow_schema
from odfpy.engine.spark.process.shared_files import on_cluster
from odfpy.engine.spark.row_by_row.carried import CARRIED, Delta
from odfpy.engine.spark.rows.parallelism import is_gathered
from odfpy.engine.spark.rows.write import batches_of, write_file
from odfpy.errors import InternalError, UnsupportedQuery
from odfpy.stages import stage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ROWS_IN_ONE_TASK: Final = 1_000_000
"""Up to this many input rows are sorted in one task; more are sorted in ranges of this size, which are fetched one by
one, so that only one of them is in memory while the next is computed."""

_FAN_OUT: Final = 10
"""How many rows one input row may be expected to become where it may become several."""


def has_rows(catalyst: Catalyst, plan: Node) -> bool:
    """Return whether a plan returns any rows."""
    if not is_gathered(catalyst.spark):
        return not catalyst.dataframe(plan).isEmpty()
    any_of = catalyst.dataframe(catalyst.project([catalyst.alias(catalyst.integer(1), "one")], plan))
    return bool(sum(batch.num_rows for batch in batches_of(any_of)))


def write_parquet(path: Path, frame: DataFrame, *, even_if_empty: bool = False) -> int:
    """Write the rows of a data frame to one Parquet file, in order if they are in one partition.

    Args:
        path: the file.
        frame: the rows.
        even_if_empty: whether to write a file if there are no rows.

    Returns:
        How many rows there are.

    Raises:
        InternalError: a column has a type that no file has: rows of such types are not kept.
    """
    return write_file(frame, path, partial(write_batches, file_schema(frame), even_if_empty=even_if_empty))


def file_schema(frame: DataFrame) -> pa.Schema:
    """Return the schema of a file with the rows of a data frame.

    Raises:
        InternalError: a column has a type that no file has: rows of such types are not kept.
    """
    try:
        return arrow_schema(frame.schema)
    except UnsupportedQuery as error:
        types = ", ".join(field.dataType.simpleString().upper() for field in frame.schema.fields)
        raise InternalError(f"Rows with columns of the types {types} are to be kept, and cannot be") from error


def write_batches(schema: pa.Schema, path: str, batches: Iterator[pa.RecordBatch], *, even_if_empty: bool) -> int:
    """Write batches to one Parquet file.

    Args:
        schema: schema of the batches.
        path: the file.
        batches: the batches.
        even_if_empty: whether to write a file if there are no rows.

    Returns:
        The number of rows.
    """
    writer: pq.ParquetWriter | None = None
    rows = 0
    try:
        for batch in batches:
            with stage("Parquet", again=writer is not None):
                if writer is None:
                    writer = pq.ParquetWriter(path, schema, compression="zstd", compression_level=1)
                writer.write_batch(batch)
            rows += batch.num_rows
        if writer is None and even_if_empty:
            writer = pq.ParquetWriter(path, schema)
    finally:
        if writer is not None:
            with stage("Parquet", again=True):
                writer.close()
    return rows


def in_input_order(
    frame: DataFrame, delta: Delta, input_rows: Sequence[int], rows_in_one_task: int = ROWS_IN_ONE_TASK
) -> DataFrame:
    """Sorted by input in declared order, then branch of the plan, then offset.

    Rows from one input row keep their order: one task creates them, with Spark's increasing row number. Partners in a
    join are ordered by their values. So the order is total, and does not depend on the partitioning of the rows.

    Args:
        frame: rows with `CARRIED`.
        delta: the plan of these rows.
        input_rows: rows that are read, of each input.
        rows_in_one_task: makes no difference to the result.
    """
    from pyspark.sql import functions

    source, branch, offset, _ = CARRIED
    numbered = frame.withColumn("__odf_fan", functions.monotonically_increasing_id())
    # Branches before offsets: where a query reads one input twice, both halves of a pair stay together.
    keys: list[str | Column] = [source, branch, offset, "__odf_fan"]
    if any(way.is_joined for way in delta.branches):
        keys[3:3] = _values(frame)
    rows = sum(input_rows[way.input] * (_FAN_OUT if way.fans_out else 1) for way in delta.branches)
    if rows <= rows_in_one_task:
        return numbered.coalesce(1).sortWithinPartitions(*keys)
    if on_cluster(frame.sparkSession):  # one task writes all of them
        return numbered.repartition(1).sortWithinPartitions(*keys)
    return numbered.repartitionByRange(-(-rows // rows_in_one_task), *keys).sortWithinPartitions(*keys)


def _values(frame: DataFrame) -> list[Column]:
    """Return all values of a row as sort keys; texts by their bytes, whatever their collation."""
    return [sortable(frame, name) for name in frame.columns if name not in CARRIED]


def tagged_rows(batches: Iterator[pa.RecordBatch], branches_that_fan_out: Sequence[bool]) -> Iterator[TaggedRows]:
    """Yield the rows of a delta with their carried columns, from batches of its columns, `CARRIED` and row number."""
    fans_out = np.array(branches_that_fan_out)
    for batch in batches:
        branches = _numbers(batch.column(CARRIED_BRANCH))
        yield TaggedRows(
            rows=batch,
            operation_types=_numbers(batch.column(CARRIED_OPERATION)),
            branches=np.where(fans_out[branches], -1, branches),
            offsets=_numbers(batch.column(CARRIED_OFFSET)),
        )


def _numbers(array: pa.Array) -> Numbers:
    return np.asarray(array.to_numpy(), dtype=np.int64)
