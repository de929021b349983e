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
from odfpy.engine.spark.rows.stored import read_stored
from odfpy.engine.spark.rows.tables import Table, scan, visible_columns
from odfpy.stages import stage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType


class HistoryNeeded(Exception):
    """Signals that a pull needs earlier rows that its request lacks; the coordinator repeats it with history."""


@dataclass(frozen=True, slots=True)
class InputStream:
    """An input of the transform as a source of rows, with its policy for late rows applied."""

    catalyst: Catalyst
    source: TransformRequestInput
    scratch: Path
    late: Late = Late.CORRECTED

    def new(self) -> SourceRows | None:
        """Return the rows of the interval that this pull processes; None if there are none."""
        return self._rows(Table.of(self.source), is_new=True)

    def old(self) -> SourceRows | None:
        """Return all rows before that interval; None if there are none.

        Raises:
            HistoryNeeded: the request does not contain them.
        """
        if self.source.prev_offset is None:
            return None
        paths = self.source.history_paths
        if paths is None:
            raise HistoryNeeded
        interval = OffsetInterval(0, self.source.prev_offset)
        return self._rows(replace(Table.of(self.source), data_paths=paths, interval=interval), is_new=False)

    def _rows(self, table: Table, *, is_new: bool) -> SourceRows | None:
        if not table.data_paths:
            return None
        schema = table.schema()
        plan = gather(self.catalyst, scan(self.catalyst, table, self.scratch))
        plan = chosen(self.catalyst, self.late, table, plan, self.scratch)
        all_columns = columns(plan)
        visible = [all_columns[at] for at in visible_columns(schema, table.vocab)]
        names = (table.vocab.system_time_column, table.vocab.offset_column, table.vocab.operation_type_column)
        marks = [all_columns[schema.names.index(name)] for name in names]
        return SourceRows(
            self.catalyst.project([*visible, *marks], plan),
            is_append_only(table.data_paths, table.vocab.operation_type_column),
            table.num_rows,
            least_time(table.data_paths, table.vocab.event_time_column) if is_new else None,
        )


@dataclass(frozen=True, slots=True)
class FragmentStream:
    """The changelog of a fragment that this pull has already run, as a source for later fragments.

    Attributes:
        run: the run of the fragment.
        path: the file with the changes, if there are any.
        schema: schema of the file.
        count: number of changes.
        rows: number of rows that the fragment reads, from which the parallelism follows.
    """

    run: FragmentRun
    path: Path
    schema: StructType
    count: int
    rows: int

    @classmethod
    def of_finished(cls, run: FragmentRun, path: Path, finished: FinishedFragment, rows: int) -> FragmentStream:
        """Return the changes of a fragment that an earlier attempt has finished.

        Args:
            run: the run of the fragment.
            path: a file for the changes.
            finished: the changes.
            rows: number of rows that the fragment reads.
        """
        if finished.count:
            path.write_bytes(finished.content)
        return cls(run, path, finished.schema, finished.count, rows)

    @classmethod
    def of_changes(cls, run: FragmentRun, path: Path, changes: DataFrame, rows: int) -> FragmentStream:
        """Write the changes of a fragment to a file.

        Args:
            run: the run of the fragment.
            path: a file for the changes.
            changes: the changes with their offsets, in order and in one partition.
            rows: number of rows that the fragment reads.
        """
        return cls(run, path, changes.schema, write_parquet(path, changes), rows)

    def new(self) -> SourceRows | None:
        """Return the changes of this pull; None if there are none."""
        if self.count == 0:
            return None
        catalyst = self.run.pull.catalyst
        plan = read_stored(catalyst, self.schema, [self.path])
        *data, operation, offset = columns(plan)
        plan = catalyst.project([*data, offset, operation], plan)
        return SourceRows(plan, is_append_only([str(self.path)], OPERATION), self.count)

    def old(self) -> SourceRows | None:
        """Return the result of the fragment before this pull, materialized in a file; None if there was none.

        Raises:
            HistoryNeeded: the result has to be computed from rows that the request lacks.
        """
        catalyst, path = self.run.pull.catalyst, self.path.with_name(f"before-{self.path.name}")
        with self.run.pull.parallelism.within(self.rows):
            before = self.run.before()
            if before is None:
                return None
            frame = catalyst.dataframe(before)
            if not path.exists():
                with stage("result before"):
                    write_parquet(path, frame, even_if_empty=True)
        plan = read_stored(catalyst, frame.schema, [path])
        return SourceRows(plan, is_append_only=True, count=0)


def streams_of(
    catalyst: Catalyst, inputs: Sequence[TransformRequestInput], policy: LatePolicy, scratch: Path
) -> list[InputStream]:
    """Return the inputs of a request as sources.

    Args:
        catalyst: access to Catalyst.
        inputs: the inputs, as the request has them.
        policy: the treatment of late rows.
        scratch: a folder for temporary files.
    """
    return [InputStream(catalyst, source, scratch, late) for source, late in zip(inputs, policy.inputs, strict=True)]
