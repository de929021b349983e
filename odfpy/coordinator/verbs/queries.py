"""`Workspace.queries`: rows, query results, exports, comparisons, and provenance of rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from odfpy.coordinator.storage.results import ProgressSink, silent
from odfpy.coordinator.verbs.arguments import with_checked_arguments
from odfpy.coordinator.verbs.context import WorkspaceContext
from odfpy.dataset.names import all_of
from odfpy.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.coordinator.reading.compare import Comparison
    from odfpy.coordinator.reading.export import Exported
    from odfpy.coordinator.requests import ExportRequest
    from odfpy.provenance.model import Provenance
    from odfpy.query.moments import PointInTime
    from odfpy.query.query import Query
    from odfpy.query.service import QueryService


@with_checked_arguments
class Queries:
    """The queries of a workspace."""

    def __init__(self, context: WorkspaceContext) -> None:
        self._context = context
        self._storage = context.storage

    @property
    def service(self) -> QueryService:
        """Return the service that runs SQL over the datasets, and streams the results."""
        return self._context.query_service

    def tail(self, ref: str, num_records: int = 10, *, skip: int = 0) -> pa.Table:
        """Return the last rows of a dataset, oldest first, with their system columns.

        Args:
            ref: name or id of the dataset.
            num_records: number of rows.
            skip: number of rows to skip at the end.
        """
        from odfpy.coordinator.reading.read import tail

        return tail(self._storage.get_at(ref), num_records, skip)

    def sql(self, query: Query) -> pa.Table:
        """Return all rows of a read-only query; `service.run` streams them."""
        with self.service.run(query) as answer:
            return answer.read_all()

    def export(self, request: ExportRequest, progress: ProgressSink = silent) -> Exported:
        """Write a dataset, or the result of a query, to a file or a folder of files, with a sidecar.

        Raises:
            AlreadyExists: the target exists.
            CannotExport: the format does not support the columns.
            UsageError: the target is inside of `.odf`.
        """
        from odfpy.coordinator.reading.export import ExportOptions, export
        from odfpy.coordinator.reading.export_target import ExportTarget
        from odfpy.coordinator.reading.projections import moment, table_of
        from odfpy.data.rows.files import RowFileOptions
        from odfpy.query.dialects import dialect_named
        from odfpy.query.service import Query

        ref, as_at, engine = request.ref, request.as_at, request.engine
        if ref is not None:
            dialect = dialect_named(engine or "datafusion")
            table = table_of(self._storage, ref, dialect, current=request.current, as_at=as_at, as_of=request.as_of)
            query = Query(f"SELECT * FROM {table}", dialect.name)  # noqa: S608  names and constants are quoted
            if as_at is not None:
                query = self._bound(query, moment(self._storage, ref, as_at))
        else:
            if request.current or as_at is not None or request.as_of is not None:
                raise UsageError(
                    "The query itself selects the state of a dataset",
                    hint="Write odf_current('name') or odf_as_at('name', ...) in it.",
                )
            query = Query(request.sql or "", dialect_named(engine or "spark").name)
        is_folder = bool(request.partition_by) or request.rows_per_file is not None
        target = ExportTarget.of(request.to, is_folder=is_folder)
        if target.to.resolve().is_relative_to(self._storage.odf.resolve()):
            raise UsageError(
                f"{request.to} is among the workspace's own files, which would then be damaged",
                hint="Export to another folder.",
            )
        options = ExportOptions(
            place=target,
            files=request.files or RowFileOptions.of(target.to.name),
            partition_by=request.partition_by,
            rows_per_file=request.rows_per_file,
            overwrite=request.overwrite,
        )
        return export(self.service, query, options, progress)

    def _bound(self, query: Query, moment: str) -> Query:
        """Bind a query of a past state of one dataset to a block, so that the sidecar names this block.

        The query is unchanged if that block has no schema, which may be so before the first data, or after a
        compaction.
        """
        from odfpy.query.pinning import pinned_as_at

        resolver = self.service.resolver
        with suppress(UsageError):
            pinned = pinned_as_at(resolver, query, moment)
            if all(
                resolver.at(resolver.find(dataset_id), head).state.schema for dataset_id, head in pinned.pins.items()
            ):
                return pinned
        return query

    def compare(self, ref: str, old: PointInTime, new: PointInTime, *, key: str | Sequence[str] = ()) -> Comparison:
        """Return the changes of a dataset's state between two moments.

        Args:
            ref: the dataset.
            old: system time, block, tag or branch of the old state.
            new: system time, block, tag or branch of the new state.
            key: key columns; the primary key of the dataset if empty.

        Raises:
            BlockNotFound, NotYetThen, NoSuchKey: a moment or a column is invalid.
        """
        from odfpy.coordinator.reading.compare import compare

        return compare(self._storage, self.service, ref, old, new, all_of(key))

    def provenance(
        self, ref: str, offset: int, *, column: str | None = None, depth: int | None = None, check: bool = True
    ) -> Provenance:
        """Return the provenance of a row: the rows that it was derived from, through all input datasets.

        Args:
            ref: the dataset of the row.
            offset: offset of the row.
            column: name of a column to which the result is restricted, None for all.
            depth: maximum number of derivatives to follow in sequence; no limit by default.
            check: whether to run the query over the cited rows only, to check that they reproduce the row.

        Raises:
            NoSuchRow, NoSuchColumn: the dataset has no row with the offset, or no such column.
            UnknownProvenance: the provenance cannot be determined.
            DatasetNotFound, InputDiverged: an input is not in the workspace, or its history has changed.
        """
        from odfpy.coordinator.provenance.trace import row_provenance

        engines = self._context.engines
        return row_provenance(self._storage, engines, ref, offset, column=column, depth=depth, check=check)
