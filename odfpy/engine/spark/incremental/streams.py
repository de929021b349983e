"""Sources of a pull: the data slices of inputs, and the changelogs of fragments in the scratch folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.data.offset_interval import OffsetInterval
from odfpy.engine.bounds import is_append_only, least_time
from odfpy.engine.contract import TransformRequestInput
from odfpy.engine.lateness.policy import Late, LatePolicy
from odfpy.engine.spark.incremental.run import FragmentRun
from odfpy.engine.spark.incremental.state.attempt import FinishedFragment
from odfpy.engine.spark.incremental.state.difference import OPERATION
from odfpy.engine.spark.incremental.state.source_rows import SourceRows
from odfpy.engine.spark.plan.catalyst import Catalyst, columns
from odfpy.engine.spark.rows.batches import write_parquet
from odfpy.engine.spark.rows.late_table import chosen
from odfpy.engine.spark.rows.parallelism import gather
from odfpy.engine.spark.rows.stored import read_kept
from odfpy.engine.spark.rows.tables import Table, scan, visible_columns
from odfpy.stages import stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class HistoryNeeded(Exception):
    """Signals that a pull needs rows from before its interval that its request lacks; it is then repeated with them."""


@dataclass(frozen=True, slots=True)
class InputStream:
    """One input of the transform as a source of rows, with its policy for late rows applied."""

    catalyst: Catalyst
    source: TransformRequestInput
    scratch: Path
    late: Late = Late.CORRECTED

    def new(self) -> SourceRows | None:
        """Return the rows of the interval that this pull processes, or None if there are none."""
        return self._rows(Table.of(self.source), is_new=True)

    def old(self) -> SourceRows | None:
        """Return all rows before that interval, or None if there are none."""
        if self.source.prev_offset is None:
            return None
        paths = self.source.history_paths
        if paths is None:
            raise HistoryNeeded
        whole = OffsetInterval(0, self.source.prev_offset)
        return self._rows(replace(Table.of(self.source), data_paths=paths, interval=whole), is_new=False)

    def _rows(self, table: Table, *, is_new: bool) -> SourceRows | None:
        if not table.data_paths:
            return None
        schema = table.schema()
        plan = gather(self.catalyst, scan(self.catalyst, table, self.scratch))
        plan = chosen(self.catalyst, self.late, table, plan, self.scratch)
        found = columns(plan)
        seen = [found[at] for at in visible_columns(schema, table.vocab)]
        names = (table.vocab.system_time_column, table.vocab.offset_column, table.vocab.operation_type_column)
        marks = [found[schema.names.index(name)] for name in names]
        return SourceRows(
            self.catalyst.project([*seen, *marks], plan),
            is_append_only(table.data_paths, table.vocab.operation_type_column),
            table.num_rows,
            least_time(table.data_paths, table.vocab.event_time_column) if is_new else None,
        )


@dataclass(frozen=True, slots=True)
class FragmentStream:
    """The changelog of a fragment that this pull has already run, as a source for later fragments.

    Attributes:
        run: the fragment.
        path: file with the changes, if there are any.
        schema: of the file.
        count: how many changes there are.
        rows: how many rows the fragment has to do with.
    """

    run: FragmentRun
    path: Path
    schema: StructType
    count: int
    rows: int

    @classmethod
    def again(cls, run: FragmentRun, path: Path, done: FinishedFragment, rows: int) -> FragmentStream:
        """Return the changes of a fragment that was done before.

        Args:
            run: the run of the fragment.
            path: the file.
            done: its changes, found before.
            rows: how many rows it has to do with.
        """
        if done.count:
            path.write_bytes(done.content)
        return cls(run, path, done.schema, done.count, rows)

    @classmethod
    def of(cls, run: FragmentRun, path: Path, changed: DataFrame, rows: int) -> FragmentStream:
        """Keep the changes of a fragment, which come in order, in one partition.

        Args:
            run: the run of the fragment.
            path: the file.
            changed: its changes, with their offsets.
            rows: how many rows it has to do with.
        """
        return cls(run, path, changed.schema, write_parquet(path, changed), rows)

    def new(self) -> SourceRows | None:
        """Return the changes."""
        if self.count == 0:
            return None
        catalyst = self.run.pull.catalyst
        plan = read_kept(catalyst, self.schema, [self.path])
        *data, operation, offset = columns(plan)
        plan = catalyst.project([*data, offset, operation], plan)
        return SourceRows(plan, is_append_only([str(self.path)], OPERATION), self.count)

    def old(self) -> SourceRows | None:
        """The result of the fragment before this pull, which goes into a file: others look at it several times."""
        catalyst, path = self.run.pull.catalyst, self.path.with_name(f"before-{self.path.name}")
        with self.run.pull.parallelism.within(self.rows):
            before = self.run.before()
            if before is None:
                return None
            frame = catalyst.dataframe(before)
            if not path.exists():
                with stage("result before"):
                    write_parquet(path, frame, even_if_empty=True)
        plan = read_kept(catalyst, frame.schema, [path])
        return SourceRows(plan, is_append_only=True, count=0)


def streams_of(
    catalyst: Catalyst, inputs: Sequence[TransformRequestInput], policy: LatePolicy, scratch: Path
) -> list[InputStream]:
    """Return the inputs of a request as sources.

    Args:
        catalyst: access to Catalyst.
        inputs: the inputs, as the request has them.
        policy: the treatment of late rows.
        scratch: a folder for files on the way.
    """
    return [InputStream(catalyst, source, scratch, late) for source, late in zip(inputs, policy.inputs, strict=True)]
