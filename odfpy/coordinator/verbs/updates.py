"""`Workspace.updates`: pulls, ingestion, watched folders, and watermarks."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.coordinator.storage.pull_observer import NOBODY, PullObserver
from odfpy.coordinator.storage.results import DamagedDataset, ProgressSink, PullOutcome, PullResult, silent
from odfpy.coordinator.verbs.arguments import with_checked_arguments
from odfpy.coordinator.verbs.context import WorkspaceContext
from odfpy.errors import UsageError
from odfpy.extras import needs_extra
from odfpy.stages import stage

if TYPE_CHECKING:
    from odfpy.coordinator.dry_run import PullPlan
    from odfpy.coordinator.follow import Follow, FollowPace
    from odfpy.coordinator.ingest.ingest_request import IngestRequest
    from odfpy.coordinator.pull import Puller
    from odfpy.coordinator.requests import PullRequest
    from odfpy.coordinator.status import DatasetStatus
    from odfpy.data.timestamp import Instant


@with_checked_arguments
class Updates:
    """The updates of a workspace's datasets."""

    def __init__(self, context: WorkspaceContext) -> None:
        self._context = context
        self._storage = context.storage

    def pull(self, request: PullRequest, progress: ProgressSink = silent) -> Iterator[PullResult]:
        """Update datasets, in dependency order.

        Yields:
            One result per dataset; `error` is set if it failed.

        Raises:
            UsageError, NotFound: a reference is invalid; nothing has been pulled.
        """
        with stage("find datasets"):
            refs, nameless = self._chosen(request)
        observer = self._observer(request)
        puller = replace(self._puller(request, progress), observer=observer)
        return _observed(chain(map(damaged_result, nameless), puller.pull(refs)), observer)

    def plan_pull(self, request: PullRequest, progress: ProgressSink = silent) -> Iterator[PullPlan]:
        """Yield what `pull` would do, without fetches, changes or locks.

        Yields:
            One plan per dataset, in the order of the pull; `error` or a note is set if the pull would fail.

        Raises:
            UsageError, NotFound: a reference is invalid.
        """
        from odfpy.coordinator.dry_run import DryRun

        if request.branch is not None or request.tags:
            raise UsageError("A plan is of heads", hint="Omit branch and tags.")
        puller = self._puller(request, progress)
        refs, nameless = self._chosen(request)
        return DryRun(puller).plan(refs, nameless)

    def status(
        self, refs: str | Sequence[str] = (), *, remote: bool = False, progress: ProgressSink = silent
    ) -> Iterator[DatasetStatus]:
        """Yield the status of datasets, without changes or locks.

        Args:
            refs: names, ids and patterns; all datasets if empty.
            remote: whether to query other locations for their heads, instead of using the last seen ones.
            progress: called with the progress.

        Yields:
            One status per dataset, inputs first.

        Raises:
            DatasetNotFound: a name does not exist, or a pattern matches nothing.
        """
        from odfpy.coordinator.status import StatusReader
        from odfpy.settings.sections import SignaturesSection

        context = self._context
        sign = context.config.section(SignaturesSection).sign
        return StatusReader(self._storage, context.remotes, progress, remote=remote, sign=sign).statuses(refs)

    def follow(
        self, request: PullRequest, pace: FollowPace | None = None, *, progress: ProgressSink = silent
    ) -> Follow:
        """Return a `Follow`, which pulls datasets, and repeats that when the source of a copy among them has changed.

        Args:
            request: the first pull; later pulls are for the same datasets.
            pace: intervals of polls and retries.
            progress: called with the progress.
        """
        from odfpy.coordinator.follow import Follow

        return Follow(self._storage, request, partial(self.pull, progress=progress), pace)

    def ingest(self, request: IngestRequest, progress: ProgressSink = silent) -> Iterator[PullResult]:
        """Ingest files, or a stream, into a push source; each is committed when its result is consumed.

        Raises:
            OdfError: a file could not be ingested; files after it were not ingested either.
        """
        from odfpy.coordinator.ingest.push_ingest import ingest

        return ingest(self._storage, self._context.engines, request, progress)

    def watch(
        self,
        request: IngestRequest,
        folder: str | Path,
        *,
        pattern: str = "*",
        settle: float | None = None,
        pause: Callable[[], None] | None = None,
        progress: ProgressSink = silent,
    ) -> Iterator[PullResult]:
        """Ingest the files of a folder as they arrive, each once, until interrupted while waiting.

        Args:
            request: dataset and options; it must not name files.
            folder: the watched folder; its files are neither moved nor changed.
            pattern: pattern of file names, such as `*.csv`.
            settle: seconds for which a file must be unchanged before it is ingested; one by default.
            pause: waits between two scans of the folder; a second by default. KeyboardInterrupt in it ends the watch.
            progress: called with the progress.

        Yields:
            One result for each file; after a failure, `error` is set, and the file is skipped until it changes.
        """
        from odfpy.coordinator.ingest.watch import INTERVAL, SETTLE, FolderWatcher

        if request.files or request.stdin is not None or request.branch is not None:
            raise UsageError("A folder is watched for the head", hint="Omit files, stream and branch.")
        return FolderWatcher(
            storage=self._storage,
            engines=self._context.engines,
            request=request,
            folder=Path(folder),
            pattern=pattern,
            settle=SETTLE if settle is None else settle,
            pause=pause or partial(time.sleep, INTERVAL),
            progress=progress,
        ).run()

    def set_watermark(self, ref: str, watermark: Instant) -> PullResult:
        """Declare that no more rows at or before a time will arrive in a root dataset.

        Raises:
            UsageError: the dataset is derivative or a copy, so its watermark is determined by other datasets.
            InvalidValue: the watermark is not a time.
            WatermarkWentBack: the current watermark is later.
        """
        from odfpy.coordinator.ingest.watermarks import set_watermark
        from odfpy.data.timestamp import Timestamp

        with self._storage.get(ref).writing() as dataset:
            return set_watermark(dataset, Timestamp.of(watermark))

    def _puller(self, request: PullRequest, progress: ProgressSink) -> Puller:
        from odfpy.coordinator.ingest.fetch_limits import fetch_limits
        from odfpy.coordinator.pull import Puller

        context = self._context
        limits = fetch_limits(context.config)
        return Puller(self._storage, context.engines, context.remotes, request, limits, progress)

    def _observer(self, request: PullRequest) -> PullObserver:
        """Return the observer of a pull; its library is only imported if configured."""
        from odfpy.settings.sections import OpenLineageSection

        settings = self._context.config.section(OpenLineageSection)
        if settings.url is None:
            return NOBODY
        with needs_extra("openlineage", "Events of lineage", UsageError):
            from odfpy.coordinator.openlineage.observer import lineage_observer
        return lineage_observer(self._storage, settings, of_all=request.all)

    def _chosen(self, request: PullRequest) -> tuple[list[str], list[DamagedDataset]]:
        """Return the datasets to pull, and the damaged ones without a name."""
        if not request.all:
            from odfpy.coordinator.transfer.remote_patterns import expand

            return list(expand(request.refs, self._storage, self._context.remotes.registry)), []
        named, nameless = self._storage.scan()
        return [str(dataset.handle.id) for dataset in named], nameless


def _observed(results: Iterator[PullResult], observer: PullObserver) -> Iterator[PullResult]:
    interrupted = True
    try:
        yield from results
        interrupted = False
    finally:
        observer.close(interrupted=interrupted)


def damaged_result(dataset: DamagedDataset) -> PullResult:
    """Return the result of a dataset that cannot be read."""
    return PullResult(name=dataset.name, outcome=PullOutcome.FAILED, error=dataset.error)
