"""The sources of a pull: inputs, read from their slices, and blocks, whose changes are kept in the scratch folder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odfpy.data.parquet_io import open_parquet
from odfpy.data.vocabulary import OperationType
from odfpy.engine.contract import OffsetInterval, TransformRequestInput
from odfpy.engine.spark.catalyst import Catalyst, columns
from odfpy.engine.spark.incremental.difference import OFFSET, OPERATION
from odfpy.engine.spark.incremental.leaves import Rows
from odfpy.engine.spark.incremental.run import BlockRun
from odfpy.engine.spark.rows import write_parquet
from odfpy.engine.spark.tables import Table, scan, visible_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)


class HistoryNeeded(Exception):
    """Rows of before the interval are needed that have not been given."""


@dataclass(frozen=True, slots=True)
class InputStream:
    """An input of the transform."""

    catalyst: Catalyst
    source: TransformRequestInput
    scratch: Path

    def new(self) -> Rows | None:
        """The rows of the interval."""
        return self._rows(Table.of(self.source))

    def old(self) -> Rows | None:
        """All rows before the interval."""
        if self.source.prev_offset is None:
            return None
        paths = self.source.history_paths
        if paths is None:
            raise HistoryNeeded
        whole = OffsetInterval(0, self.source.prev_offset)
        return self._rows(replace(Table.of(self.source), data_paths=paths, interval=whole))

    def _rows(self, table: Table) -> Rows | None:
        if not table.data_paths:
            return None
        schema = table.schema()
        plan = scan(self.catalyst, table, self.scratch)
        found = columns(plan)
        seen = [found[at] for at in visible_columns(schema, table.vocab)]
        names = (table.vocab.system_time_column, table.vocab.offset_column, table.vocab.operation_type_column)
        marks = [found[schema.names.index(name)] for name in names]
        only_appends, least = _told(table.data_paths, table.vocab.operation_type_column, table.vocab.event_time_column)
        return Rows(self.catalyst.project([*seen, *marks], plan), only_appends, table.num_rows, least)


@dataclass(frozen=True, slots=True)
class BlockStream:
    """A block, once its changes are known.

    Attributes:
        run: the block.
        path: file with the changes, if there are any.
        schema: of the file.
        count: how many changes there are.
    """

    run: BlockRun
    path: Path
    schema: StructType
    count: int

    @classmethod
    def of(cls, run: BlockRun, path: Path, changed: DataFrame) -> BlockStream:
        """Keep the changes of a block, which come in order, in one partition."""
        from pyspark.sql import functions

        numbered = changed.withColumn(OFFSET, functions.monotonically_increasing_id())
        count = write_parquet(path, numbered)
        return cls(run, path, numbered.schema, count)

    def new(self) -> Rows | None:
        """The changes."""
        if self.count == 0:
            return None
        catalyst = self.run.pull.catalyst
        frame = catalyst.spark.read.schema(self.schema).parquet(str(self.path))
        names = [name for name in frame.columns if name not in (OFFSET, OPERATION)]
        plan = catalyst.plan(frame.select(*names, OFFSET, OPERATION))
        return Rows(plan, _told([str(self.path)], OPERATION, None)[0], self.count)

    def old(self) -> Rows | None:
        """The result of the block before this pull."""
        before = self.run.before()
        return None if before is None else Rows(before, only_appends=True, count=0)


def _told(paths: Sequence[str], operation_type: str, event_time: str | None) -> tuple[bool, int | None]:
    """What files tell of their rows: whether all are appended, and the least time, in microseconds, if they tell it."""
    wanted = int(OperationType.APPEND)
    appends = [bounds == (wanted, wanted) for bounds in _bounds(paths, operation_type)]
    times = [bounds and _micros(bounds[0]) for bounds in _bounds(paths, event_time)] if event_time else [None]
    known = [time for time in times if time is not None]
    return all(appends), min(known) if known and len(known) == len(times) else None


def _bounds(paths: Sequence[str], column: str) -> Iterator[tuple[Any, Any] | None]:
    """The least and the greatest value of a column in each row group, None where the file does not tell."""
    for path in paths:
        with open_parquet(path) as file:
            metadata = file.metadata
            names = [metadata.schema.column(at).path for at in range(metadata.num_columns)]
            for group in range(metadata.num_row_groups):
                found = metadata.row_group(group).column(names.index(column)).statistics if column in names else None
                yield (found.min, found.max) if found is not None and found.has_min_max else None


def _micros(value: datetime | date) -> int:
    moment = value if isinstance(value, datetime) else datetime.combine(value, time.min)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    return (aware - _EPOCH) // timedelta(microseconds=1)


def streams_of(catalyst: Catalyst, inputs: Sequence[TransformRequestInput], scratch: Path) -> list[InputStream]:
    """The inputs of a request as sources."""
    return [InputStream(catalyst, source, scratch) for source in inputs]
