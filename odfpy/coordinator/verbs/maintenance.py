"""`Workspace.maintenance`: verification, clean-up, compaction and reset."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from odfpy.coordinator.lineage.lineage import Lineage
from odfpy.coordinator.storage.results import Progress, ProgressSink, engine_listener, silent
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.verbs.arguments import with_checked_arguments
from odfpy.coordinator.verbs.context import WorkspaceContext
from odfpy.dataset.names import all_of
from odfpy.errors import SandboxRequired

if TYPE_CHECKING:
    from odfpy.coordinator.maintenance.batch import BatchVerifier
    from odfpy.coordinator.maintenance.compact import CompactOptions, CompactResult
    from odfpy.coordinator.maintenance.gc import GcReport
    from odfpy.coordinator.maintenance.removable_objects import RemovalPolicy
    from odfpy.coordinator.maintenance.repair import Repair
    from odfpy.coordinator.maintenance.report import VerifyReport
    from odfpy.coordinator.maintenance.reset import ResetResult
    from odfpy.coordinator.requests import VerifyRequest
    from odfpy.data.duration import Duration
    from odfpy.engine.cancellation import CancellationToken
    from odfpy.engine.registry import EngineRegistry


def _checked(progress: ProgressSink, control: CancellationToken) -> ProgressSink:
    """Return a sink that checks for cancellation with each progress report."""

    def check_and_report(item: Progress) -> None:
        control.check()
        progress(item)

    return check_and_report


def _with_repair(report: VerifyReport, repair: Repair, restored_names: Sequence[str]) -> VerifyReport:
    """Return the report of the verification after a repair, with the results of the repair."""
    findings = (*report.findings, *repair.findings_beside(report.findings))
    return replace(report, repaired=(*restored_names, *repair.repaired), findings=findings)


@with_checked_arguments
class Maintenance:
    """The maintenance of a workspace."""

    def __init__(self, context: WorkspaceContext) -> None:
        self._context = context
        self._storage = context.storage

    def verify(
        self,
        request: VerifyRequest,
        progress: ProgressSink = silent,
        *,
        engines: EngineRegistry | None = None,
        control: CancellationToken | None = None,
    ) -> Iterator[VerifyReport]:
        """Check all files, all chain rules and, by replay, all transforms; inputs before their derivatives.

        Args:
            request: the datasets to verify, and how thoroughly.
            progress: called with the progress.
            engines: engines for replays; those of the workspace by default.
            control: cancellation by another thread; also reports the progress of engines to `progress`.

        Raises:
            IntegrityError: with `all`, after all other results: a dataset has lost its name.
            QueryCancelled: the verification was cancelled.
        """
        from odfpy.coordinator.maintenance.fsck import with_files
        from odfpy.coordinator.maintenance.last_verification import record_verification
        from odfpy.coordinator.maintenance.restore_names import restore_names
        from odfpy.coordinator.maintenance.verify import verify, with_cycle

        restored_names = restore_names(self._storage, None if request.all else request.refs) if request.repair else {}
        if request.all:
            datasets, nameless = self._storage.scan()
        else:
            datasets, nameless = self._storage.match(list(request.refs), allow_at_block=True), []
        lineage = Lineage(self._storage)
        datasets = lineage.in_order(datasets, with_inputs=request.recursive)
        registry = engines or self._context.engines
        if control is not None:
            registry = registry.with_cancellation(control)
            progress = _checked(progress, control)
        engine_for = None if request.integrity_only else lambda transform: registry.get(transform.engine)

        def reports(batch: BatchVerifier | None) -> Iterator[VerifyReport]:
            for dataset in datasets:
                repair = self._repair(dataset, progress) if request.repair else None
                with self._reporting_engine(str(dataset.handle), progress, control, is_needed=engine_for is not None):
                    report = verify(
                        self._storage,
                        dataset,
                        engine_for=engine_for,
                        from_start=request.from_start,
                        batch=batch,
                        each_transform=request.each_transform,
                        progress=progress,
                    )
                report = with_cycle(with_files(dataset, report), lineage.cycle_of(dataset.handle.id))
                if repair is not None:
                    report = _with_repair(report, repair, restored_names.get(dataset.handle.id, ()))
                if control is not None:
                    control.check()  # a cancelled verification must not be recorded
                if not any(finding.code == SandboxRequired.code for finding in report.findings):
                    record_verification(dataset, report, integrity_only=request.integrity_only)
                yield report
            if nameless:
                raise nameless[0].error

        return reports(None) if not request.against_batch else self._with_batch(reports)

    def _reporting_engine(
        self, name: str, progress: ProgressSink, control: CancellationToken | None, *, is_needed: bool
    ) -> AbstractContextManager[None]:
        """Report the progress of the engine during the block, if replays are needed."""
        if not is_needed:
            return nullcontext()
        listener = engine_listener(name, progress)
        if control is None:
            return self._context.engines.reporting_to(listener)
        control.on_progress = listener
        return nullcontext()

    def _with_batch(self, reports: Callable[[BatchVerifier | None], Iterator[VerifyReport]]) -> Iterator[VerifyReport]:
        """Yield reports with batch verifications; stop their engine after the last one."""
        from odfpy.coordinator.maintenance.batch import BatchVerifier

        batch = BatchVerifier(self._storage, self._context.config)
        try:
            yield from reports(batch)
        finally:
            batch.close()

    def _repair(self, dataset: StoredDataset, progress: ProgressSink) -> Repair:
        from odfpy.coordinator.maintenance.repair import Repair

        with self._storage.get(dataset.handle.id).writing() as locked:
            repair = Repair(locked, self._context.transfers, progress)
            repair.run()
        return repair

    def gc(
        self,
        refs: str | Sequence[str] = (),
        *,
        checkpoints: bool = False,
        caches: bool = False,
        dry_run: bool = False,
        may_remove: RemovalPolicy | None = None,
        progress: ProgressSink = silent,
    ) -> Iterator[GcReport]:
        """Delete garbage: unreachable objects, left-overs of killed processes, and unused caches.

        Args:
            refs: names, ids, patterns; by default all datasets, and garbage outside of datasets.
            checkpoints: whether to remove checkpoints that later ones have superseded.
            caches: whether to remove caches that are in use; they are rebuilt when needed.
            dry_run: whether only to report.
            may_remove: permits the removal of linked objects whose rows record it; None never to remove them.
            progress: called with the progress.

        Yields:
            One report per dataset, and one without a name for garbage outside of datasets; `error` is set after a
            failure.
        """
        from odfpy.coordinator.maintenance.gc import GarbageCollector, GcOptions, GcReport

        refs = all_of(refs)
        datasets, nameless = (self._storage.match(refs), []) if refs else self._storage.scan()
        options = GcOptions(checkpoints=checkpoints, caches=caches, dry_run=dry_run, may_remove=may_remove)
        yield from GarbageCollector(self._storage, options, progress).collect(datasets, everything=not refs)
        for damaged in nameless:
            yield GcReport(name=damaged.name, error=damaged.error)

    def gc_repository(
        self,
        place: str,
        names: str | Sequence[str] = (),
        *,
        older_than: Duration | None = None,
        dry_run: bool = False,
        progress: ProgressSink = silent,
    ) -> Iterator[GcReport]:
        """Delete garbage from a folder or bucket that datasets are pushed to.

        Args:
            place: name of a repository, path or URL.
            names: names and patterns of its datasets; all by default.
            older_than: minimum age of objects to remove; two weeks by default.
            dry_run: whether only to report.
            progress: called with the progress.

        Yields:
            One report per dataset; `error` is set after a failure.

        Raises:
            UsageError: objects of the repository cannot be removed.
            DatasetNotFound: a name or pattern matches nothing.
        """
        from odfpy.coordinator.maintenance.repository_gc import GOOD_WHILE, RepositoryGarbage
        from odfpy.coordinator.transfer.search import prefix_and_url_of

        _, url = prefix_and_url_of(self._context.remotes.registry, place)
        yield from RepositoryGarbage(url, older_than or GOOD_WHILE, dry_run, progress).collect(all_of(names))

    def plan_compact(self, ref: str, options: CompactOptions | None = None) -> CompactResult:
        """Return what `compact` would do, without changes or locks."""
        from odfpy.coordinator.maintenance.compact import CompactOptions, plan_compaction

        return plan_compaction(self._storage, self._storage.get(ref), options or CompactOptions())

    def compact(
        self, ref: str, options: CompactOptions | None = None, *, progress: ProgressSink = silent
    ) -> CompactResult:
        """Rewrite the slices of a root dataset as fewer, larger ones, with a new history and the same rows.

        Args:
            ref: name or id of the dataset.
            options: target sizes, None for the defaults.
            progress: called with the progress.

        Raises:
            UsageError: the dataset is derivative, and not only its metadata is kept.
            OdfError: a file is damaged; nothing has changed.
        """
        from odfpy.coordinator.maintenance.compact import CompactOptions, compact

        with self._storage.get(ref).writing() as dataset:
            return compact(self._storage, dataset, options or CompactOptions(), progress)

    def plan_reset(self, ref: str, block: str | int) -> ResetResult:
        """Return what `reset` would do, without changes or locks."""
        from odfpy.coordinator.maintenance.reset import plan_reset

        return plan_reset(self._storage, self._storage.get(ref), str(block))

    def reset(self, ref: str, block: str | int) -> ResetResult:
        """Reset a dataset to a block.

        Args:
            ref: name or id of the dataset.
            block: hash of the block or a prefix of it, its sequence number, or the name of a tag or branch.

        Raises:
            BlockNotFound, UsageError: the block is not in the history, or its name is ambiguous.
        """
        from odfpy.coordinator.maintenance.reset import reset

        with self._storage.get(ref).writing() as dataset:
            return reset(self._storage, dataset, str(block))
