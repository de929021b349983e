"""The sources of a pull: inputs, read from their slices, and blocks, whose changes are kept in the scratch folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from odfpy.data.parquet_io import open_parquet
from odfpy.data.vocabulary import OperationType
from odfpy.engine.contract import OffsetInterval, TransformRequestInput
from odfpy.engine.spark.catalyst import Catalyst, columns
from odfpy.engine.spark.incremental.difference import OFFSET, OPERATION
from odfpy.engine.spark.incremental.gates import Rows
from odfpy.engine.spark.incremental.run import BlockRun
from odfpy.engine.spark.tables import Table, scan, visible_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
        marks = [
            found[schema.names.index(name)] for name in (table.vocab.offset_column, table.vocab.operation_type_column)
        ]
        only_appends = all(_only_appends(path, table.vocab.operation_type_column) for path in table.data_paths)
        return Rows(self.catalyst.project([*seen, *marks], plan), only_appends, table.num_rows)


@dataclass(frozen=True, slots=True)
class BlockStream:
    """A block, once its changes are known.

    Attributes:
        run: the block.
        path: folder with the changes.
    """

    run: BlockRun
    path: Path

    @classmethod
    def of(cls, run: BlockRun, path: Path, changed: DataFrame) -> BlockStream:
        """Keep the changes of a block, which come in order, in one partition."""
        from pyspark.sql import functions

        changed.withColumn(OFFSET, functions.monotonically_increasing_id()).write.parquet(str(path))
        return cls(run, path)

    def new(self) -> Rows | None:
        """The changes."""
        files = sorted(str(file) for file in self.path.glob("*.parquet"))
        count = sum(pq.read_metadata(file).num_rows for file in files)
        if count == 0:
            return None
        catalyst = self.run.pull.catalyst
        frame = catalyst.spark.read.parquet(*files)
        names = [name for name in frame.columns if name not in (OFFSET, OPERATION)]
        plan = catalyst.plan(frame.select(*names, OFFSET, OPERATION))
        return Rows(plan, all(_only_appends(file, OPERATION) for file in files), count)

    def old(self) -> Rows | None:
        """The result of the block before this pull."""
        before = self.run.before()
        return None if before is None else Rows(before, only_appends=True, count=0)


def _only_appends(path: str, column: str) -> bool:
    """Whether a file tells that it has no rows but appended ones."""
    with open_parquet(path) as file:
        metadata = file.metadata
        names = [metadata.schema.column(at).path for at in range(metadata.num_columns)]
        if column not in names:
            return False
        at = names.index(column)
        statistics = [metadata.row_group(group).column(at).statistics for group in range(metadata.num_row_groups)]
    wanted = int(OperationType.APPEND)
    return all(found is not None and found.has_min_max and found.min == found.max == wanted for found in statistics)


def streams_of(catalyst: Catalyst, inputs: Sequence[TransformRequestInput], scratch: Path) -> list[InputStream]:
    """The inputs of a request as sources."""
    return [InputStream(catalyst, source, scratch) for source in inputs]
