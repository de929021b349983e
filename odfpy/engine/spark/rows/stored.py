"""Materialized rows, for several plans or several reads: few rows stay in Java's memory, others go to a file.

For few rows, a file scan costs more than the rows: it is planned, sends settings, and reads the footer of the file
first. For many rows, or several tasks, there is no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.engine.spark.plan.catalyst import Catalyst, Node
from odfpy.engine.spark.plan.types import arrow_schema, spark_schema
from odfpy.engine.spark.rows.batches import file_schema, write_batches, write_parquet
from odfpy.engine.spark.rows.parallelism import read_plan
from odfpy.engine.spark.rows.relation import nullable_schema
from odfpy.engine.spark.rows.write import are_few, calls_by, in_memory, read_batches, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


_MAX_BYTES: Final = 512 << 10
_MAX_IN_MEMORY: Final = 8 << 20
"""Larger files, or files with more bytes of rows, are read by Spark."""
_ROWS_AT_ONCE: Final = 512


def read_stored(catalyst: Catalyst, schema: StructType, paths: Sequence[Path]) -> Node:
    """Return the rows of files that the engine has written for itself.

    Args:
        catalyst: the session.
        schema: the schema of the rows.
        paths: the files.

    Raises:
        EngineError: a file is not there.
    """
    few = _read_few(paths, _wanted(schema)) if are_few(catalyst.spark) else None
    return read_plan(catalyst, schema, paths) if few is None else _sent(catalyst, schema, few)


def table_rows(catalyst: Catalyst, schema: StructType, table: pa.Table, path: Path) -> Node:
    """Return the rows of a table read from the engine's own files; many rows go to a file.

    Args:
        catalyst: the session.
        schema: the schema of the rows; the table may have other columns, too.
        table: the rows.
        path: the file.
    """
    if are_few(catalyst.spark) and table.nbytes <= _MAX_IN_MEMORY:
        wanted = _wanted(schema)
        return _sent(catalyst, schema, table.select(wanted.names).cast(wanted))
    pq.write_table(table, path, compression="zstd", compression_level=1)
    return read_plan(catalyst, schema, [path])


def fetched(frame: DataFrame) -> pa.Table | None:
    """Return the rows of a data frame as a table of Arrow, if they are few."""
    if not are_few(frame.sparkSession):
        return None
    table = table_of(frame)
    return table if table.nbytes <= _MAX_IN_MEMORY else None


def sent(catalyst: Catalyst, table: pa.Table, schema: StructType | None = None) -> Node:
    """Return a small table, which is sent to Java.

    Args:
        catalyst: the session.
        table: the rows, with columns of the types in which Spark hands over rows.
        schema: schema of the rows; by default derived from the types of the columns.
    """
    return _sent(catalyst, schema or spark_schema(table.schema, "rows"), table)


def _sent(catalyst: Catalyst, schema: StructType, table: pa.Table) -> Node:
    session, wanted = catalyst.session, nullable_schema(catalyst, schema)
    return calls_by(session).received(session, wanted, table.to_batches()).relation()


def _wanted(schema: StructType) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in arrow_schema(schema)])


def _read_few(paths: Sequence[Path], wanted: pa.Schema) -> pa.Table | None:
    batches, size = list[pa.RecordBatch](), 0
    try:
        if sum(path.stat().st_size for path in paths) > _MAX_BYTES:
            return None
        for path in paths:
            for batch in pq.ParquetFile(path).iter_batches(_ROWS_AT_ONCE, columns=wanted.names):
                size += batch.nbytes
                if size > _MAX_IN_MEMORY:
                    return None
                batches.append(batch.select(wanted.names))
        return pa.Table.from_batches(batches).cast(wanted) if batches else wanted.empty_table()
    except (OSError, ValueError):
        return None  # Spark reports what is wrong with them


def computed(catalyst: Catalyst, plan: Node) -> Node:
    """Return the rows of a plan, which are computed now if they are few; else the plan as it is."""
    materialized = in_memory(catalyst.dataframe(plan))
    return plan if materialized is None else materialized.relation()


class Stored:
    """The rows of a data frame, which are computed when this is made."""

    def __init__(self, catalyst: Catalyst, frame: DataFrame, path: Path) -> None:
        """Compute the rows.

        Args:
            catalyst: the session.
            frame: the rows.
            path: a file for the rows.
        """
        self._catalyst = catalyst
        self._frame = frame
        self._path = path
        self._memory = in_memory(frame)
        self.count = write_parquet(path, frame, even_if_empty=True) if self._memory is None else self._memory.count

    @cached_property
    def plan(self) -> Node:
        """A plan that reads the rows; its columns may have nulls where the data frame has none."""
        if self._memory is None:
            return read_plan(self._catalyst, self._frame.schema, [self._path])
        return self._memory.relation()

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return self._frame.columns

    @cached_property
    def file(self) -> Path:
        """A Parquet file with the rows."""
        if self._few is not None:
            write_batches(self._few.schema, str(self._path), iter(self._few.to_batches()), even_if_empty=True)
        return self._path

    @property
    def table(self) -> pa.Table:
        """The rows as a table of Arrow."""
        return pq.read_table(self._path) if self._few is None else self._few

    def column(self, name: str) -> pa.ChunkedArray:
        """One column of the rows."""
        if self._few is None:
            return pq.read_table(self._path, columns=[name]).column(0)
        return self._few.column(name)

    @cached_property
    def _few(self) -> pa.Table | None:
        """The rows, if they are in the memory of Java; None if they are in the file."""
        if self._memory is None:
            return None
        schema = file_schema(self._frame)
        return pa.Table.from_batches(read_batches(self._memory.batches(), schema), schema)
