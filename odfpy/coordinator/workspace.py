"""The workspace: all operations of the coordinator, for programs and for the command line.

    >>> import odfpy
    >>> workspace = odfpy.Workspace.open(".")
    >>> for result in workspace.pull(all=True):
    ...     print(result.name, result.outcome.value, result.num_records)

Operations are grouped by subject, `workspace.datasets`, `workspace.queries` and so on; the most common ones are also
methods of the workspace. A dataset is named by an alias (`com.example.rates`), an id (`did:odf:f...`), or, where
several are allowed, a pattern (`com.example.%`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from odfpy.coordinator.storage.results import ProgressSink, silent
from odfpy.coordinator.storage.storage import Storage
from odfpy.coordinator.storage.workspace_folder import require_text
from odfpy.coordinator.verbs.arguments import with_checked_arguments
from odfpy.coordinator.verbs.groups import VerbGroups
from odfpy.coordinator.verbs.lazy_results import LazyResults
from odfpy.dataset.names import all_of
from odfpy.errors import AlreadyExists, OdfError

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.chain.block import DatasetSnapshot
    from odfpy.coordinator.dry_run import PullPlan
    from odfpy.coordinator.maintenance.report import VerifyReport
    from odfpy.coordinator.reading.compare import Comparison
    from odfpy.coordinator.reading.export import Exported
    from odfpy.coordinator.storage.config import Config
    from odfpy.coordinator.storage.results import AddResult, LineageNode, PullResult
    from odfpy.data.timestamp import Instant
    from odfpy.provenance.model import Provenance
    from odfpy.query.moments import PointInTime
    from odfpy.query.service import QueryService


@with_checked_arguments
class Workspace(VerbGroups):
    """A folder with datasets; the entry point for programs.

    Attributes:
        storage: the storage of the workspace.
        datasets, branches, sources, updates, remotes, queries, graph, maintenance, engines: operations by subject;
            see `odfpy.coordinator.verbs`.
    """

    @classmethod
    def init(cls, folder: str | Path = ".") -> Workspace:
        """Create a workspace in a folder; the folder is created if necessary.

        Raises:
            AlreadyExists: the folder has a workspace.
            UsageError: the path is not valid text.
        """
        from odfpy.coordinator.template import write_template

        root = Path(folder).resolve()
        require_text(root)
        storage = Storage(root)
        if (storage.odf / "version").exists():
            raise AlreadyExists(f"A workspace already exists in {root}")
        try:
            root.mkdir(parents=True, exist_ok=True)
            write_template(root)
        except OSError as error:
            raise OdfError(f"Cannot create a workspace in {root}: {error.strerror}") from error
        return cls(Storage.find(root))

    @classmethod
    def open(cls, folder: str | Path = ".") -> Workspace:
        """Open the workspace of a folder, or of the nearest parent folder that has one.

        Raises:
            WorkspaceNotFound: neither the folder nor any of its parents has a workspace.
        """
        return cls(Storage.find(Path(folder)))

    def __repr__(self) -> str:
        return f"Workspace({str(self.root)!r})"

    @property
    def root(self) -> Path:
        """Return the root folder of the workspace."""
        return self.storage.root

    @property
    def odf(self) -> Path:
        """Return the path of its folder `.odf`."""
        return self.storage.odf

    @property
    def config(self) -> Config:
        """Return the settings: merged from this workspace, the folders above it, the user, and defaults."""
        return self._context.config

    # --- Common verbs: those with many options create a request and pass it on ---

    def load(
        self, paths: str | Path | Sequence[str | Path], *, recursive: bool = False, stdin: BinaryIO | None = None
    ) -> list[DatasetSnapshot]:
        """Read manifests; see `datasets.load`."""
        return self.datasets.load(paths, recursive=recursive, stdin=stdin)

    def add(
        self,
        snapshots: Sequence[DatasetSnapshot],
        *,
        replace: bool = False,
        keep: bool = False,
        dry_run: bool = False,
        approve: bool = True,
    ) -> list[AddResult]:
        """Create datasets from snapshots, in dependency order; see `datasets.add`."""
        return self.datasets.add(snapshots, replace=replace, keep=keep, dry_run=dry_run, approve=approve)

    def pull(
        self,
        refs: str | Sequence[str] = (),
        *,
        all: bool = False,  # noqa: A002 - the option's name on the command line
        recursive: bool = False,
        force: bool = False,
        fetch_uncacheable: bool = False,
        as_name: str | None = None,
        reset_derivatives: bool = False,
        branch: str | None = None,
        tags: str | Sequence[str] = (),
        files: str | None = None,
        allow_retractions: bool = False,
        allow_future: bool = False,
        progress: ProgressSink = silent,
    ) -> Iterator[PullResult]:
        """Update datasets, in dependency order.

        Args:
            refs: names, ids, patterns, remote references (`repository/name`, `repository/pattern%`), URLs.
            all: whether to pull every dataset of the workspace.
            recursive: whether to include the inputs of the datasets.
            force: whether to fetch sources again, and overwrite copies that have diverged.
            fetch_uncacheable: whether to fetch sources without versions again.
            as_name: local name for a remote dataset.
            reset_derivatives: whether to rebuild derivatives whose inputs have diverged from the history that was read.
            branch: branch for the new blocks, instead of moving the head; see `branches`.
            tags: further tags to fetch, for copies.
            files: the choice of linked files of copies: `all`, `none`, `available`, conditions; stored for later pulls.
            allow_retractions: whether a snapshot may retract any number of rows.
            allow_future: whether to write and copy blocks with system times in the future.
            progress: called with the progress.

        Yields:
            One result per dataset; `error` is set if it failed.

        Raises:
            UsageError, NotFound: a reference is invalid; nothing has been pulled.
        """
        from odfpy.coordinator.requests import PullRequest

        request = PullRequest.of(
            refs,
            all=all,
            recursive=recursive,
            force=force,
            fetch_uncacheable=fetch_uncacheable,
            as_name=as_name,
            reset_derivatives=reset_derivatives,
            branch=branch,
            tags=tags,
            files=files,
            allow_retractions=allow_retractions,
            allow_future=allow_future,
        )
        return LazyResults(self.updates.pull(request, progress), "pull")

    def plan_pull(
        self, refs: str | Sequence[str] = (), *, progress: ProgressSink = silent, **options: Any
    ) -> Iterator[PullPlan]:
        """Yield what `pull` would do, without fetching, changing or locking anything.

        Args:
            refs: the datasets to pull.
            progress: called with the progress.
            options: the other options of `pull`, except for `branch` and `tags`.
        """
        from odfpy.coordinator.requests import PullRequest

        return self.updates.plan_pull(PullRequest.of(refs, **options), progress)

    def ingest(
        self,
        ref: str,
        files: str | Path | Sequence[str | Path] = (),
        *,
        stdin: BinaryIO | None = None,
        source_name: str | None = None,
        event_time: Instant | None = None,
        input_format: str | None = None,
        branch: str | None = None,
        allow_retractions: bool = False,
        progress: ProgressSink = silent,
    ) -> Iterator[PullResult]:
        """Ingest files, or a stream, into a push source; each is committed when its result is consumed.

        Args:
            ref: the dataset.
            files: files to ingest, in this order.
            stdin: a stream to ingest after them.
            source_name: name of the push source, where there are several.
            event_time: event time of rows without one; the time of the ingest by default.
            input_format: format of the input if it differs from that of the source (csv, json, ndjson, parquet).
            branch: branch for the new blocks, instead of moving the head; see `branches`.
            allow_retractions: whether a snapshot may retract any number of rows.
            progress: called with the progress.

        Raises:
            OdfError: a file could not be ingested; files after it were not ingested either.
        """
        from odfpy.coordinator.ingest.ingest_request import IngestRequest

        request = IngestRequest.of(
            ref,
            files,
            stdin=stdin,
            source_name=source_name,
            event_time=event_time,
            input_format=input_format,
            branch=branch,
            allow_retractions=allow_retractions,
        )
        return LazyResults(self.updates.ingest(request, progress), "ingest")

    def watch(
        self,
        ref: str,
        folder: str | Path,
        *,
        pattern: str = "*",
        settle: float | None = None,
        pause: Callable[[], None] | None = None,
        progress: ProgressSink = silent,
        **options: Any,
    ) -> Iterator[PullResult]:
        """Ingest the files of a folder as they arrive, each once, until interrupted while waiting; see `updates.watch`.

        Args:
            ref: the dataset.
            folder: the watched folder; its files are neither moved nor changed.
            pattern: pattern for the names of files, such as `*.csv`.
            settle: seconds for which a file must not change before it is ingested; by default one.
            pause: waits between two scans of the folder; a second by default. KeyboardInterrupt in it ends the watch.
            progress: called with the progress.
            options: the other options of `ingest`, except for `stdin` and `branch`.
        """
        from odfpy.coordinator.ingest.ingest_request import IngestRequest

        request = IngestRequest.of(ref, **options)
        return self.updates.watch(request, folder, pattern=pattern, settle=settle, pause=pause, progress=progress)

    def set_watermark(self, ref: str, watermark: Instant) -> PullResult:
        """Declare that no more rows at or before a time will arrive at a root dataset; see `updates.set_watermark`."""
        return self.updates.set_watermark(ref, watermark)

    def settings_of(self, ref: str) -> Config:
        """Return the settings of a root dataset; see `datasets.settings`."""
        return self.datasets.settings(ref)

    def push(
        self,
        refs: str | Sequence[str] = (),
        *,
        to: str | None = None,
        all: bool = False,  # noqa: A002 - the option's name on the command line
        recursive: bool = False,
        force: bool = False,
        branches: str | Sequence[str] = (),
        tags: str | Sequence[str] = (),
        progress: ProgressSink = silent,
        **options: Any,
    ) -> Iterator[PullResult]:
        """Copy datasets to a repository or URL, which is remembered as the push alias.

        Args:
            refs: names, ids, patterns.
            to: `repository/name`, a repository, a path or a URL; the push alias by default.
            all: whether to push every dataset of the workspace.
            recursive: whether to include the inputs of the datasets.
            force: whether to overwrite a copy that has diverged.
            branches: further branches to push; with several datasets, a dataset without the branch is skipped.
            tags: further tags to push, likewise.
            progress: called with the progress.
            options: the other fields of `PushRequest`, such as `public=True` or `files="none"`.

        Raises:
            NoSuchReference: none of several datasets has a branch or tag; nothing was pushed.
        """
        from odfpy.coordinator.requests import PushRequest

        request = PushRequest(
            refs=all_of(refs),
            to=to,
            all=all,
            recursive=recursive,
            force=force,
            branches=all_of(branches),
            tags=all_of(tags),
            **options,
        )
        return LazyResults(self.remotes.push(request, progress), "push")

    def verify(
        self, refs: str | Sequence[str] = (), *, progress: ProgressSink = silent, **options: bool
    ) -> Iterator[VerifyReport]:
        """Check all files, all chain rules and, by replay, all transforms; inputs before their derivatives.

        Args:
            refs: names, ids, patterns.
            progress: called with the progress.
            options: the other fields of `VerifyRequest`, such as `all=True`.

        Raises:
            IntegrityError: with `all`, after all other results: a dataset has lost its name.
            UsageError: the options are incompatible.
        """
        from odfpy.coordinator.requests import VerifyRequest

        request = VerifyRequest(refs=all_of(refs), **options)
        return LazyResults(self.maintenance.verify(request, progress), "verify")

    def tail(self, ref: str, num_records: int = 10, *, skip: int = 0) -> pa.Table:
        """Return the last rows of a dataset, oldest first; see `queries.tail`."""
        return self.queries.tail(ref, num_records, skip=skip)

    def sql(self, query: str, *, engine: str | None = None, limit: int | None = None) -> pa.Table:
        """Run a read-only query in which every dataset is a table under its name.

        Args:
            query: SQL; dotted names in backquotes for Spark, in double quotes for DataFusion.
            engine: `spark` (default) or `datafusion`.
            limit: the maximum number of rows.
        """
        from odfpy.query.query import Query

        return self.queries.sql(Query(query, engine or "spark", limit=limit))

    @property
    def query_service(self) -> QueryService:
        """Return the service that returns query results in pieces; see `queries.service`."""
        return self.queries.service

    def export(
        self, ref: str | None = None, *, to: str | Path, progress: ProgressSink = silent, **options: Any
    ) -> Exported:
        """Export a dataset, or the result of a query, to a file or a folder of files, with a sidecar.

        Args:
            ref: the dataset: its log, unless another view is requested.
            to: the file, whose name determines the format. A folder, for several files.
            progress: called with the progress.
            options: the other fields of `ExportRequest`, such as `current=True` or `sql=...`.

        Raises:
            AlreadyExists: the target exists.
            CannotExport: the format does not support the columns.
        """
        from odfpy.coordinator.requests import ExportRequest

        return self.queries.export(ExportRequest(ref=ref, to=to, **options), progress)

    def compare(self, ref: str, old: PointInTime, new: PointInTime, *, key: str | Sequence[str] = ()) -> Comparison:
        """Return the changes of a dataset's state between two moments; see `queries.compare`."""
        return self.queries.compare(ref, old, new, key=key)

    def provenance(
        self, ref: str, offset: int, *, column: str | None = None, depth: int | None = None, check: bool = True
    ) -> Provenance:
        """Return the provenance of a row; see `queries.provenance`."""
        return self.queries.provenance(ref, offset, column=column, depth=depth, check=check)

    def lineage(self, ref: str) -> LineageNode:
        """Return a dataset and its inputs, recursively, with watermarks; see `graph.lineage`."""
        return self.graph.lineage(ref)
