"""Keeping order in a workspace: what is of no use goes, histories become shorter, names change, datasets end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from odfpy.coordinator.catalog import Catalog
from odfpy.coordinator.lineage.lineage import Lineage
from odfpy.coordinator.storage.results import DatasetHandle, ProgressSink, silent
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.coordinator.maintenance.batch import BatchVerifier
    from odfpy.coordinator.maintenance.compact import CompactOptions, CompactResult
    from odfpy.coordinator.maintenance.gc import GcReport
    from odfpy.coordinator.maintenance.repair import Repair
    from odfpy.coordinator.maintenance.reset import ResetResult
    from odfpy.coordinator.storage.results import VerifyReport
    from odfpy.data.duration import Duration


def check_choice(verb: str, refs: Sequence[str], *, all: bool) -> None:  # noqa: A002
    """Check that datasets are named, or all are meant, but not both.

    Raises:
        UsageError: neither, or both.
    """
    if all and refs:
        raise UsageError(f"Either all datasets or {', '.join(refs)}", hint="Leave out the names, or --all.")
    if not all and not refs:
        raise UsageError(f"Nothing to {verb}", hint="Name datasets, or use --all.")


class Housekeeping(Catalog):
    """The maintenance of a workspace; `odfpy.Workspace` adds the verbs that move data."""

    def verify(
        self,
        refs: Sequence[str] = (),
        *,
        all: bool = False,  # noqa: A002 - the word of the command line
        integrity_only: bool = False,
        from_start: bool = False,
        against_batch: bool = False,
        each_transform: bool = False,
        recursive: bool = False,
        repair: bool = False,
        progress: ProgressSink = silent,
    ) -> Iterator[VerifyReport]:
        """Check every file, every chain rule and, by replay, every transform; inputs come before what is derived.

        Args:
            refs: names, ids, patterns.
            all: every dataset of the workspace.
            integrity_only: no replay.
            from_start: replay without the checkpoints that are recorded.
            against_batch: compare what derivatives amount to with their queries run once over what their inputs
                amounted to, in an engine of its own; `VerifyReport.against_batch` has what came of it.
            each_transform: with `against_batch`, after each transform, not only after the last one.
            recursive: also what they are derived from.
            repair: fetch what is missing or damaged from where the datasets were pulled from or pushed to.
            progress: is told how far the work is.

        Raises:
            IntegrityError: with `all`, and after everything else: a dataset has lost its name.
            UsageError: what is asked for does not go together.
        """
        from odfpy.coordinator.maintenance.fsck import with_files
        from odfpy.coordinator.maintenance.lost_names import restore_names
        from odfpy.coordinator.maintenance.verify import verify, with_circle

        check_choice("verify", refs, all=all)
        if integrity_only and against_batch:
            raise UsageError("--integrity runs no queries, and --against-batch does", hint="Leave one of them out.")
        if each_transform and not against_batch:
            raise UsageError("--each-transform says when to compare --against-batch", hint="Add that.")
        named = restore_names(self.storage, None if all else refs) if repair else {}
        datasets, nameless = self.storage.scan() if all else (self.storage.match(list(refs), to_look_at=True), [])
        lineage = Lineage(self.storage)
        datasets = lineage.in_order(datasets, with_inputs=recursive)
        engine_for = None if integrity_only else lambda transform: self.engines.get(transform.engine)

        def reports(batch: BatchVerifier | None) -> Iterator[VerifyReport]:
            for dataset in datasets:
                mending = self._repaired(dataset, progress) if repair else None
                report = verify(
                    self.storage,
                    dataset,
                    engine_for=engine_for,
                    from_start=from_start,
                    batch=batch,
                    each_transform=each_transform,
                    progress=progress,
                )
                report = with_circle(with_files(dataset, report), lineage.circle_of(dataset.handle.id))
                if mending is not None:
                    findings = (*report.findings, *mending.findings)
                    names = named.get(dataset.handle.id, ())
                    report = replace(report, repaired=(*names, *mending.repaired), findings=findings)
                yield report
            if nameless:
                raise nameless[0].error

        return reports(None) if not against_batch else self._with_batch(reports)

    def _with_batch(self, reports: Callable[[BatchVerifier | None], Iterator[VerifyReport]]) -> Iterator[VerifyReport]:
        """Reports with second opinions; the engine that gives them ends with the last one."""
        from odfpy.coordinator.maintenance.batch import BatchVerifier

        batch = BatchVerifier(self.storage, self.config)
        try:
            yield from reports(batch)
        finally:
            batch.close()

    def _repaired(self, dataset: StoredDataset, progress: ProgressSink) -> Repair:
        from odfpy.coordinator.maintenance.repair import Repair
        from odfpy.coordinator.transfer.remotes import Remotes

        with self.storage.get(dataset.handle.id).writing() as locked:
            repair = Repair(locked, Remotes(self.storage), progress)
            repair.run()
        return repair

    def gc(
        self,
        refs: Sequence[str] = (),
        *,
        checkpoints: bool = False,
        caches: bool = False,
        dry_run: bool = False,
        progress: ProgressSink = silent,
    ) -> Iterator[GcReport]:
        """Remove what nobody needs: objects that no reference reaches, leftovers, caches of what is gone.

        Args:
            refs: names, ids, patterns; all datasets, and what belongs to none, by default.
            checkpoints: also checkpoints that later ones have replaced.
            caches: also caches that are of use: they are made again when they are needed.
            dry_run: only find out.
            progress: is told how far the work is.

        Yields:
            One report a dataset, and one without a name for the rest; one that failed has `error` set.
        """
        from odfpy.coordinator.maintenance.gc import GarbageCollector, GcOptions, GcReport

        datasets, nameless = (self.storage.match(list(refs)), []) if refs else self.storage.scan()
        options = GcOptions(checkpoints=checkpoints, caches=caches, dry_run=dry_run)
        yield from GarbageCollector(self.storage, options, progress).collect(datasets, everything=not refs)
        for damaged in nameless:
            yield GcReport(name=damaged.name, error=damaged.error)

    def gc_repository(
        self,
        place: str,
        names: Sequence[str] = (),
        *,
        older_than: Duration | None = None,
        dry_run: bool = False,
        progress: ProgressSink = silent,
    ) -> Iterator[GcReport]:
        """Remove what nobody needs from a folder or bucket that datasets are pushed to.

        Args:
            place: name of a repository, path or URL.
            names: names and patterns of datasets there; all by default.
            older_than: how long ago what is removed was written; two weeks by default.
            dry_run: only find out.
            progress: is told how far the work is.

        Yields:
            One report a dataset; one that failed has `error` set.

        Raises:
            UsageError: nothing can be removed there from here.
            DatasetNotFound: a name or pattern fits nothing.
        """
        from odfpy.coordinator.maintenance.repository_gc import GOOD_WHILE, RepositoryGarbage
        from odfpy.coordinator.transfer.remotes import Remotes
        from odfpy.coordinator.transfer.search import place_of

        _, url = place_of(Remotes(self.storage).registry, place)
        yield from RepositoryGarbage(url, older_than or GOOD_WHILE, dry_run, progress).collect(names)

    def plan_compact(self, ref: str, options: CompactOptions | None = None) -> CompactResult:
        """Return what `compact` would do; nothing is changed or locked."""
        from odfpy.coordinator.maintenance.compact import CompactOptions, plan_compaction

        return plan_compaction(self.storage, self.storage.get(ref), options or CompactOptions())

    def compact(
        self, ref: str, options: CompactOptions | None = None, *, progress: ProgressSink = silent
    ) -> CompactResult:
        """Make fewer, larger slices of those of a root dataset, with another history and the same rows.

        Raises:
            UsageError: the dataset is derivative, and not only its metadata is to be kept.
            OdfError: something is damaged; nothing has changed.
        """
        from odfpy.coordinator.maintenance.compact import CompactOptions, compact

        with self.storage.get(ref).writing() as dataset:
            return compact(self.storage, dataset, options or CompactOptions(), progress)

    def plan_reset(self, ref: str, block: str) -> ResetResult:
        """Return what `reset` would do; nothing is changed or locked."""
        from odfpy.coordinator.maintenance.reset import plan_reset

        return plan_reset(self.storage, self.storage.get(ref), block)

    def reset(self, ref: str, block: str) -> ResetResult:
        """Take a dataset back to a block.

        Args:
            ref: name or id.
            block: its hash or the beginning of that, its sequence number, or the name of a tag or branch.

        Raises:
            BlockNotFound, UsageError: it is not in the history, or several are meant.
        """
        from odfpy.coordinator.maintenance.reset import reset

        with self.storage.get(ref).writing() as dataset:
            return reset(self.storage, dataset, block)

    def doomed(
        self,
        refs: Sequence[str] = (),
        *,
        all: bool = False,  # noqa: A002 - the word of the command line
        recursive: bool = False,
        force: bool = False,
    ) -> list[DatasetHandle]:
        """Return what `delete` would remove, what is derived first; arguments and errors as there."""
        return [dataset.handle for dataset in self._doomed(refs, all=all, recursive=recursive, force=force)]

    def delete(
        self,
        refs: Sequence[str] = (),
        *,
        all: bool = False,  # noqa: A002 - the word of the command line
        recursive: bool = False,
        force: bool = False,
    ) -> list[DatasetHandle]:
        """Remove datasets.

        Args:
            refs: names, ids, patterns.
            all: every dataset that has a name.
            recursive: also everything that is derived from them.
            force: also when others are derived from them, which then can neither be pulled nor verified.

        Raises:
            UsageError: others are derived from them; the message names these.
        """
        with self.storage.editing():
            doomed = self._doomed(refs, all=all, recursive=recursive, force=force)
            for dataset in doomed:
                with dataset.writing():
                    self.storage.delete(dataset)
            return [dataset.handle for dataset in doomed]

    def rename(self, ref: str, new_name: str) -> DatasetHandle:
        """Give a dataset another name; its id stays.

        Raises:
            AlreadyExists: the name is taken.
        """
        alias = DatasetAlias.parse(new_name)
        if self.storage.has_lost_its_name(ref):
            with self.storage.editing():
                return self.storage.name_again(DatasetId.parse(ref), alias).handle
        with self.storage.editing(), self.storage.get(ref).writing() as dataset:
            return self.storage.rename(dataset, alias).handle

    def _doomed(
        self,
        refs: Sequence[str],
        *,
        all: bool,  # noqa: A002 - the word of the command line
        recursive: bool,
        force: bool,
    ) -> list[StoredDataset]:
        chosen = self.storage.datasets() if all else self.storage.match(list(refs))
        lineage = Lineage(self.storage)
        if recursive:
            chosen = lineage.with_dependents(chosen)
        ids = {dataset.handle.id for dataset in chosen}
        for dataset in () if force else chosen:
            others = [other for other in lineage.dependents_of(dataset.handle.id) if other.id not in ids]
            if others:
                raise UsageError(
                    f"{dataset.handle} is an input of {', '.join(map(str, others))}",
                    hint="--recursive deletes these too; --force leaves them: they can be pulled or verified no more.",
                )
        return lineage.in_order(chosen, with_inputs=False)[::-1]
