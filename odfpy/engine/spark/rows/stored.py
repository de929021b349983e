"""Rows that several plans read, or that are read more than once: few stay in the memory of Java, others go to a file.

For few rows, a scan of a file costs more than the rows: it is planned, it sends settings around, and it reads the end
of the file first. Where they are many, or several tasks compute them, there is no difference between the two.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.engine.spark.plan.catalyst import Catalyst, Node
from odfpy.engine.spark.plan.types import arrow_schema
from odfpy.engine.spark.process.counting import count_jobs
from odfpy.engine.spark.process.shared_files import on_cluster
from odfpy.engine.spark.rows.batches import write_batches, write_parquet
from odfpy.engine.spark.rows.effort import is_gathered, read_plan
from odfpy.stages import stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from odfpy.engine.spark.process.calls import RowsInMemory


def computed(catalyst: Catalyst, plan: Node) -> Node:
    """The rows of a plan, which are computed now if they are few; else the plan as it is."""
    found = _in_memory(catalyst.dataframe(plan))
    return plan if found is None else found.relation()


class Stored:
    """The rows of a data frame, which are computed now."""

    def __init__(self, catalyst: Catalyst, frame: DataFrame, path: Path) -> None:
        """Compute them.

        Args:
            catalyst: the session.
            frame: the rows.
            path: a file for them.
        """
        self._catalyst = catalyst
        self._schema = frame.schema
        self._path = path
        self._memory = _in_memory(frame)
        self.count = write_parquet(path, frame, even_if_empty=True) if self._memory is None else self._memory.count

    @cached_property
    def plan(self) -> Node:
        """A plan that reads them; its columns may have nulls where the data frame has none."""
        if self._memory is None:
            return read_plan(self._catalyst, self._schema, [self._path])
        return self._memory.relation()

    @cached_property
    def file(self) -> Path:
        """A Parquet file with them."""
        if self._memory is not None:
            schema = arrow_schema(self._schema)
            batches = (pa.ipc.read_record_batch(pa.py_buffer(one), schema) for one in self._memory.batches())
            write_batches(schema, True, str(self._path), batches)
        return self._path

    def column(self, name: str) -> pa.ChunkedArray:
        """One of the columns."""
        return pq.read_table(self.file, columns=[name]).column(0)


def _in_memory(frame: DataFrame) -> RowsInMemory | None:
    from odfpy.engine.spark.process.calls import calls_of  # which needs py4j

    spark = frame.sparkSession
    if not is_gathered(spark) or on_cluster(spark):
        return None
    with stage("optimize"):
        frame._jdf.queryExecution().executedPlan()  # noqa: SLF001
    with stage("Spark job"):
        found = calls_of(frame._jdf).in_memory(frame)  # noqa: SLF001
        count_jobs(spark)
    return found
