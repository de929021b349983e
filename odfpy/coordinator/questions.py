"""Questions to a workspace: rows, answers, files of them, and changes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.coordinator.housekeeping import Housekeeping
from odfpy.coordinator.storage.results import ProgressSink, silent
from odfpy.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.coordinator.reading.compare import Comparison
    from odfpy.coordinator.reading.export import Exported
    from odfpy.data.rows.files import RowFileOptions
    from odfpy.query.question import Query
    from odfpy.query.service import QueryService


class Questions(Housekeeping):
    """The queries of a workspace; `odfpy.Workspace` adds the verbs that move data."""

    def tail(self, ref: str, num_records: int = 10, *, skip: int = 0) -> pa.Table:
        """The last rows of a dataset, oldest first, with their system columns."""
        from odfpy.coordinator.reading.read import tail

        return tail(self.storage.look(ref), num_records, skip)

    def sql(self, query: str, *, engine: str | None = None, limit: int | None = None) -> pa.Table:
        """Run a read-only query in which every dataset is a table under its name.

        Args:
            query: SQL; dotted names in backquotes for Spark, in double quotes for DataFusion.
            engine: `spark` (default) or `datafusion`.
            limit: rows at most.
        """
        from odfpy.query.service import Query

        with self.query_service.run(Query(query, engine or "spark", limit=limit)) as answer:
            return answer.read_all()

    @cached_property
    def query_service(self) -> QueryService:
        """Answers SQL over the datasets, in pieces as they are made."""
        from odfpy.coordinator.reading.read import WorkspaceResolver
        from odfpy.query.service import QueryService

        return QueryService(WorkspaceResolver(self.storage), self.engines)

    def export(
        self,
        ref: str | None = None,
        *,
        to: str | Path,
        sql: str | None = None,
        engine: str | None = None,
        current: bool = False,
        as_at: str | None = None,
        as_of: str | None = None,
        files: RowFileOptions | None = None,
        partition_by: Sequence[str] = (),
        rows_per_file: int | None = None,
        overwrite: bool = False,
        progress: ProgressSink = silent,
    ) -> Exported:
        """Write a dataset, or the answer to a query, to a file or a folder of files, with a sidecar.

        Args:
            ref: the dataset: its log, unless something else of it is asked for.
            to: the file; its name says the format. A folder, if it is partitioned or cut.
            sql: a query instead of a dataset.
            engine: `spark` (default of queries) or `datafusion` (default of datasets).
            current: its current state.
            as_at: what was known at a system time, or up to a block, tag or branch.
            as_of: what held at an event time.
            files: how files are written; by their name if None.
            partition_by: columns whose values become names of folders.
            rows_per_file: rows of a file at most.
            overwrite: whether it may take the place of what was exported there before.
            progress: is told how far the work is.

        Raises:
            AlreadyExists: something is there.
            CannotExport: the format has no such columns.
        """
        from odfpy.coordinator.reading.export import ExportOptions, export
        from odfpy.coordinator.reading.export_place import ExportTarget
        from odfpy.coordinator.reading.projections import moment, table_of
        from odfpy.data.rows.files import RowFileOptions
        from odfpy.query.dialects import dialect_named
        from odfpy.query.service import Query

        if (ref is None) == (sql is None):
            raise UsageError("Either a dataset or a query", hint="Name one dataset, or give one query.")
        if ref is not None:
            dialect = dialect_named(engine or "datafusion")
            table = table_of(self.storage, ref, dialect, current=current, as_at=as_at, as_of=as_of)
            query = Query(f"SELECT * FROM {table}", dialect.name)  # noqa: S608  names and constants are quoted
            if as_at is not None:
                query = self._bound(query, moment(self.storage, ref, as_at))
        else:
            if current or as_at is not None or as_of is not None:
                raise UsageError(
                    "A query says itself which state of a dataset it reads",
                    hint="Write odf_current('name') or odf_as_at('name', ...) in it.",
                )
            query = Query(sql or "", dialect_named(engine or "spark").name)
        place = ExportTarget.of(to, is_folder=bool(partition_by) or rows_per_file is not None)
        options = ExportOptions(
            place=place,
            files=files or RowFileOptions.of(place.to.name),
            partition_by=tuple(partition_by),
            rows_per_file=rows_per_file,
            overwrite=overwrite,
        )
        return export(self.query_service, query, options, progress)

    def _bound(self, query: Query, moment: str) -> Query:
        """A query of one dataset as it was, bound to the block of then, so that this is what it says it was made from.

        It is as it was where there is no such block with a schema: before the first data, or since it was compacted.
        """
        from odfpy.query.pins import pinned_as_at

        resolver = self.query_service.resolver
        with suppress(UsageError):
            pinned = pinned_as_at(resolver, query, moment)
            if all(resolver.at(resolver.find(one), head).state.schema for one, head in pinned.pins.items()):
                return pinned
        return query

    def compare(self, ref: str, old: str, new: str, *, key: Sequence[str] = ()) -> Comparison:
        """Return what has changed in the state of a dataset between two moments.

        Args:
            ref: the dataset.
            old: a system time, a block, a tag or a branch.
            new: another one.
            key: columns by which rows are known; the primary key of the dataset if empty.

        Raises:
            BlockNotFound, NotYetThen, NoSuchKey: a moment or a column is none.
        """
        from odfpy.coordinator.reading.compare import compare

        return compare(self.storage, self.query_service, ref, old, new, key)
