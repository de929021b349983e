"""The number of Spark tasks for a number of rows. Results are the same with any number.

A pull consists of building a plan and running a few Spark jobs: with few rows, this is all that it costs. So few rows
stay in one partition from the file on, where joins, groups and windows need no exchange and no broadcast, each of which
would be a separate stage or job. And plans over them are interpreted: compiling them to Java takes longer than running.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from odfpy.engine.spark.plan.catalyst import Catalyst, Node
from odfpy.engine.spark.process.session import SMALL_PAGE, change_settings, settings_of, use_pages
from odfpy.engine.spark.rows.relation import parquet_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_BROADCAST: Final = "spark.sql.autoBroadcastJoinThreshold"
_COMPILED: Final = "spark.sql.codegen.wholeStage"
_COMPILED_PARTS: Final = "spark.sql.codegen.factoryMode"
_CONSTRAINTS: Final = "spark.sql.constraintPropagation.enabled"
_INTERPRETED: Final = {_COMPILED: "false", _COMPILED_PARTS: "NO_CODEGEN", _CONSTRAINTS: "false"}
_EXCLUDED: Final = "spark.sql.optimizer.excludedRules"
_BELOW_GATHERING: Final = "org.apache.spark.sql.catalyst.optimizer.PushDownLeftSemiAntiJoin"
"""Pushes a semi-join below the operator that gathers rows in one partition: its rows would be exchanged again."""
_CHANGED: Final = (_PARTITIONS, _BROADCAST, _EXCLUDED, *_INTERPRETED)
_GATHERED: Final[WeakSet[SparkSession]] = WeakSet()
"""Sessions in which rows of files are gathered in one partition."""

_ROWS_IN_ONE_PARTITION: Final = 100_000
_ROWS_TO_INTERPRET: Final = 20_000
_KEPT_TO_GATHER: Final = 2 << 20
_KEPT_TO_INTERPRET: Final = 512 << 10
_LARGE_PAGE: Final = 16 << 20
"""Size of a memory page in bytes if many rows are exchanged. A task aggregates rows before the exchange within one
page, as far as there is room; but each sort and each map starts with a page."""


class Parallelism:
    """The number of tasks for a number of rows, up to the initial setting of the session."""

    def __init__(self, catalyst: Catalyst, rows_in_one_task: int, kept: Iterable[Path] = ()) -> None:
        """Prepare to choose.

        Args:
            catalyst: the session.
            rows_in_one_task: more rows than that go to several partitions.
            kept: files with stored earlier rows, which are read in addition.
        """
        self._spark = catalyst.spark
        self._most = settings_of(self._spark, _CHANGED)
        self._is_set = self._most
        self._rows_in_one_task = rows_in_one_task
        self._rows_in_one = min(rows_in_one_task, _ROWS_IN_ONE_PARTITION)
        self._kept = sum(path.stat().st_size for path in kept)
        self._rows = 0

    def set(self, rows: int) -> None:
        """Prepare for a number of rows, without stored ones."""
        self._rows = rows
        self._change(rows, self._kept)

    def add(self, rows: int) -> None:
        """Prepare for additional rows."""
        self.set(self._rows + rows)

    @contextmanager
    def within(self, rows: int) -> Iterator[None]:
        """Prepare for plans over a number of rows, without stored ones, until the plans in the block have run."""
        self._change(min(rows, self._rows), kept=0)
        try:
            yield
        finally:
            self._change(self._rows, self._kept)

    def _change(self, rows: int, kept: int) -> None:
        partitions = max(1, min(int(self._most[_PARTITIONS]), -(-rows // self._rows_in_one)))
        if partitions > 1:
            # More tasks than processors only help as long as one task would have many rows: each costs a file per
            # preceding task, a job for its result, and memory.
            processors = self._spark.sparkContext.defaultParallelism
            partitions = min(partitions, max(processors, -(-rows // self._rows_in_one_task)))
        are_few = partitions == 1 and rows <= _ROWS_IN_ONE_PARTITION and kept <= _KEPT_TO_GATHER
        wanted = {**self._most, _PARTITIONS: str(partitions)}
        _GATHERED.discard(self._spark)
        if are_few:
            _GATHERED.add(self._spark)
            wanted |= {_BROADCAST: "-1", _EXCLUDED: ",".join(filter(None, [self._most[_EXCLUDED], _BELOW_GATHERING]))}
        if are_few and rows <= _ROWS_TO_INTERPRET and kept <= _KEPT_TO_INTERPRET:
            wanted |= _INTERPRETED
        changed = {name: value for name, value in wanted.items() if self._is_set[name] != value}
        if changed:
            change_settings(self._spark, changed)
        self._is_set = wanted
        use_pages(self._spark, SMALL_PAGE if partitions == 1 else _LARGE_PAGE)


def gather_few(spark: SparkSession, rows: int) -> None:
    """Gather rows of files in one partition from now on if they are few, and interpret plans over very few."""
    if rows <= _ROWS_IN_ONE_PARTITION:
        _GATHERED.add(spark)
    if rows <= _ROWS_TO_INTERPRET:
        change_settings(spark, _INTERPRETED)


def is_gathered(spark: SparkSession) -> bool:
    """Return whether the rows of a fragment are few, and in one partition from the beginning."""
    return spark in _GATHERED


def gather(catalyst: Catalyst, plan: Node) -> Node:
    """Return rows of files, or of several plans, in one partition if they are few."""
    return catalyst.coalesced(plan) if is_gathered(catalyst.spark) else plan


def gathered_rows(frame: DataFrame) -> DataFrame:
    """Return whether the rows of a data frame are gathered."""
    return frame.coalesce(1) if is_gathered(frame.sparkSession) else frame


def read_plan(catalyst: Catalyst, schema: StructType, paths: Iterable[Path]) -> Node:
    """Return the rows of files that the engine has written for itself.

    Args:
        catalyst: access to Catalyst.
        schema: the schema of the rows.
        paths: the files.
    """
    return gather(catalyst, parquet_rows(catalyst, schema, map(str, paths)))
