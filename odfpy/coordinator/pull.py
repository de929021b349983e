"""Pull: update roots from their sources, derivatives from their inputs, copies from remotes.

A pull processes datasets in dependency order. When one fails, the others continue, except for its derivatives.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.chain.events import SetPollingSource
from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.chain.sources import FetchContainer, FetchUrl
from odfpy.coordinator.ingest.fetch_limits import FetchLimits
from odfpy.coordinator.ingest.ingest import DEFAULT_SOURCE, advance_source, ingest_file, reporting_rows
from odfpy.coordinator.ingest.ingest_request import SourceFile
from odfpy.coordinator.ingest.ingested_files import IngestedFiles, content_of, saving
from odfpy.coordinator.ingest.watermarks import idle_watermark, with_idle_watermark
from odfpy.coordinator.lineage.cycles import is_copy
from odfpy.coordinator.lineage.lineage import Lineage
from odfpy.coordinator.requests import PullRequest
from odfpy.coordinator.storage.approvals import SourceNotApproved
from odfpy.coordinator.storage.clock import SourceClock
from odfpy.coordinator.storage.commit import up_to_date, with_time
from odfpy.coordinator.storage.last_failure import remember
from odfpy.coordinator.storage.pull_observer import NOBODY, PullObserver
from odfpy.coordinator.storage.references import staging
from odfpy.coordinator.storage.results import Progress, ProgressSink, PullOutcome, PullResult, engine_listener
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.transfer.known_remotes import KnownRemotes
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.names import is_pattern, is_url
from odfpy.engine.registry import EngineRegistry
from odfpy.errors import DatasetLocked, DatasetNotFound, EngineError, OdfError, UsageError
from odfpy.repository.locations.open import is_path
from odfpy.stages import stage, staged
from odfpy.values import dataclass

if TYPE_CHECKING:
    from odfpy.coordinator.pull_copies import CopyPuller
    from odfpy.data.data_warning import DataWarning
    from odfpy.ingest.fetch import FetchContext, FetchedFile


@dataclass(frozen=True, slots=True)
class Puller:
    """A pull in one workspace.

    Attributes:
        remotes: the known remote locations of the workspace.
        request: the request.
        limits: limits on fetching.
        observer: is notified when each dataset begins and ends.
    """

    storage: Storage
    engines: EngineRegistry
    remotes: KnownRemotes
    request: PullRequest
    limits: FetchLimits
    progress: ProgressSink
    observer: PullObserver = NOBODY

    @property
    def copies(self) -> CopyPuller:
        """Return the puller for copies, which is only imported if needed."""
        from odfpy.coordinator.pull_copies import CopyPuller

        return CopyPuller(self.storage, self.request, self.progress, self.observer)

    def pull(self, refs: list[str]) -> Iterator[PullResult]:
        """Pull ids, names, patterns, remote references and URLs, in dependency order.

        Raises:
            UsageError, NotFound: a reference is invalid; nothing has been pulled.
        """
        local: list[StoredDataset] = []
        remote: list[str] = []
        with stage("find datasets"):
            for ref in refs:
                if self.is_remote(ref):
                    remote.append(ref)
                else:
                    local.extend(self.storage.match([ref]))
        self.check_name(local, remote)
        self.check_branch(remote)
        for ref in remote:
            yield from self.copies.pull_remote(ref)
        failed: set[DatasetId] = set()
        with stage("order"):
            lineage = Lineage(self.storage)
            chosen = lineage.in_order(local, with_inputs=self.request.recursive)
        several = len(chosen) > 1
        skipped: Counter[ReferenceName] = Counter()
        for dataset in chosen:
            self.observer.started(dataset)
            result = self._pull_unless_blocked(dataset, lineage, failed)
            self.observer.finished(dataset, result)
            if result.error is not None:
                failed.add(dataset.handle.id)
            # A concurrent writer or a failed input is not a failure of the dataset itself.
            if result.outcome is not PullOutcome.SKIPPED and not isinstance(result.error, DatasetLocked):
                remember(dataset, result.error)
            yield result
            for name in self.request.tag_names if result.error is None else ():
                tagged = self.copies.pull_tag(dataset, name, skip=several)
                skipped[name] += tagged.outcome is PullOutcome.SKIPPED
                yield tagged
        for name, count in skipped.items():
            if count and count == len(chosen) - len(failed):
                yield self.copies.found_nowhere(name, len(chosen))

    # --- What to pull ---

    def check_branch(self, remote: list[str]) -> None:
        """Check that only local datasets are pulled to a branch, without inputs.

        Raises:
            UsageError, InvalidValue: the pull has other datasets or inputs, or the name of the branch is invalid.
        """
        if self.request.branch is None:
            return
        ReferenceName.of(ReferenceKind.BRANCH, self.request.branch)
        if remote or self.request.recursive:
            what = (
                f"a dataset that is not here yet: {remote[0]}"
                if remote
                else "--recursive: derivatives read the heads of inputs"
            )
            raise UsageError(f"--branch cannot be combined with {what}", hint="Pull it without --branch first.")

    def check_name(self, local: list[StoredDataset], remote: list[str]) -> None:
        """Check that `--as` is only given for a single remote dataset.

        Raises:
            UsageError: the request has another number of datasets, or local ones.
        """
        if self.request.as_name is not None and (local or len(remote) != 1):
            raise UsageError("--as takes exactly one remote dataset", hint="odf pull URL --as NAME")

    def is_remote(self, ref: str) -> bool:
        """Return whether a reference names a remote dataset."""
        if is_url(ref) or is_path(ref):
            return True
        if is_pattern(ref) or ref.startswith("did:odf:") or "/" not in ref:
            return False
        try:
            self.storage.get(ref)
        except DatasetNotFound:
            return True
        return False

    def _pull_unless_blocked(self, dataset: StoredDataset, lineage: Lineage, failed: set[DatasetId]) -> PullResult:
        name = str(dataset.handle)
        try:
            error = None if is_copy(dataset) else lineage.cycle_of(dataset.handle.id)
            if error is not None:
                return PullResult(name=name, outcome=PullOutcome.FAILED, error=error)
            blocked = None if is_copy(dataset) else failed_inputs(self.storage, dataset, failed)
            if blocked:
                skipped = EngineError(f"Skipped, since its input failed: {blocked}")
                return PullResult(name=name, outcome=PullOutcome.SKIPPED, error=skipped)
        except OdfError as damage:
            return PullResult(name=name, outcome=PullOutcome.FAILED, error=damage)

        with self.engines.reporting_to(engine_listener(name, self.progress)):
            return with_time(name, partial(self._pull_existing, dataset))

    # --- Pulling one ---

    def _pull_existing(self, dataset: StoredDataset) -> PullResult:
        dataset = staging(dataset, self.request.branch)
        url = self.remotes.pull_url(dataset)
        if url is not None:
            return self.copies.pull_from(dataset, url)
        with dataset.writing() as locked:
            if locked.state.kind is DatasetKind.DERIVATIVE:
                from odfpy.coordinator.transform.rebuild import update_derivative  # loads the engine's contract

                self.progress(Progress(str(dataset.handle), "transforming"))
                reset = self.request.reset_derivatives
                return update_derivative(
                    self.storage, locked, lambda transform: self.engines.get(transform.engine), reset=reset
                )
            if locked.state.polling_source is None:
                note = "nothing to pull from; data comes by `odf ingest`"
                return with_idle_watermark(locked, replace(up_to_date(locked), notes=(note,)))
            return self._poll_if_approved(locked, locked.state.polling_source)

    def _poll_if_approved(self, dataset: StoredDataset, source: SetPollingSource) -> PullResult:
        try:
            self.storage.approvals.require(dataset, source)
        except SourceNotApproved as error:
            if not self.request.all:
                raise
            return replace(up_to_date(dataset), outcome=PullOutcome.SKIPPED, notes=(f"{error.message}; {error.hint}",))
        return self._poll(dataset, source)

    def _poll(self, dataset: StoredDataset, source: SetPollingSource) -> PullResult:
        """Ingest every new file of a polling source in a commit of its own; an error does not undo earlier commits."""
        results = [up_to_date(dataset)]
        try:
            return self._ingest_new_files(dataset, source, results)
        except OdfError as error:
            if not any(result.num_blocks for result in results):
                raise
            return replace(sum_up(results), outcome=PullOutcome.FAILED, error=error)

    def _ingest_new_files(
        self, dataset: StoredDataset, source: SetPollingSource, results: list[PullResult]
    ) -> PullResult:
        """Ingest every new file, and add a result for each.

        The next file is only fetched after the previous one has been committed; sources may rely on that.
        """
        from odfpy.ingest.fetch import fetch
        from odfpy.ingest.prepare import check_steps

        check_steps(source.prepare)  # do not fetch data that cannot be prepared
        ingested = IngestedFiles.of_source(dataset, source)
        with self.storage.scratch() as scratch, saving(ingested):
            clock = SourceClock(any_time=self.request.overrides.future)
            context = self._fetch_context(dataset, scratch, clock)
            with closing(fetch(source.fetch, context)) as files:
                for number, fetched in enumerate(staged("fetch", files)):
                    clock.require()
                    if fetched.is_empty:
                        results.append(advance_source(dataset.reloaded(), fetched.state))
                        continue
                    self.progress(Progress(str(dataset.handle), f"ingesting {fetched.name}", number, None, "files"))
                    folder = scratch / f"commit-{number}"
                    folder.mkdir()
                    before = content_of(fetched.path)
                    results.append(self._ingest_fetched(dataset, source, fetched, context.now, folder))
                    if ingested is not None:
                        ingested.record(fetched.name, fetched.path, before)
                    if fetched.is_temporary:
                        fetched.path.unlink(missing_ok=True)
            if context.kept is not None:
                shutil.rmtree(context.kept, ignore_errors=True)  # all of it has been committed
            skipped: tuple[DataWarning, ...] = ()
            if ingested is not None:
                skipped = ingested.warnings(self._fetch_context(dataset.reloaded(), scratch, clock))
        if len(results) == 1 and not is_polled(source, context):
            note = "the source has no versions, so only `odf pull --fetch-uncacheable` fetches it again"
            return replace(results[0], notes=(note,))
        if idle_watermark(dataset.reloaded()) is not None:
            clock.require()
        result = with_idle_watermark(dataset, sum_up(results))
        return replace(result, warnings=(*result.warnings, *skipped, *clock.warnings()))

    def _ingest_fetched(
        self, dataset: StoredDataset, source: SetPollingSource, fetched: FetchedFile, pull_time: Timestamp, folder: Path
    ) -> PullResult:
        """Prepare a fetched file and commit its rows.

        Args:
            dataset: the dataset; reloaded here, since the previous file may have been committed in the meantime.
            source: the polling source.
            fetched: the file.
            pull_time: the time of the pull, which is the event time of files without a time of their own.
            folder: a folder for temporary files.
        """
        from odfpy.ingest.prepare import PrepareContext, prepare

        context = PrepareContext(scratch=folder, limits=self.limits.unpack, timeout=self.limits.prepare_timeout)
        with stage("prepare"):
            prepared = prepare(source.prepare, fetched.path, context, name=fetched.name)
        # Files without a time of their own need different event times: with equal ones, all but one would be late.
        event_time = Timestamp.now() if fetched.event_time == pull_time else fetched.event_time
        file = SourceFile(prepared, fetched.name, event_time, fetched.state)
        with reporting_rows(self.progress, str(dataset.handle), fetched.name):
            result = ingest_file(dataset.reloaded(), source, file, self.engines, folder, self.request.overrides)
        if prepared != fetched.path:
            prepared.unlink()
        return result if fetched.remark is None else replace(result, notes=(*result.notes, fetched.remark))

    def _fetch_context(self, dataset: StoredDataset, scratch: Path, clock: SourceClock) -> FetchContext:
        from odfpy.ingest.fetch import FetchContext

        state = dataset.state
        return FetchContext(
            now=Timestamp.now(),
            root=self.storage.root,
            scratch=scratch,
            state=state.source_state(DEFAULT_SOURCE),
            has_data=state.num_records > 0,
            force=self.request.force,
            fetch_uncacheable=self.request.fetch_uncacheable,
            kept=fetched_folder(dataset),
            environment=os.environ,
            progress=lambda done, total: self.progress(Progress(str(dataset.handle), "fetching", done, total, "bytes")),
            max_bytes=self.limits.max_bytes,
            timeout=self.limits.timeout,
            retries=self.limits.retries,
            pause=partial(self._wait_to_try_again, str(dataset.handle)),
            dataset_id=dataset.handle.id,
            options=self.limits.sources,
            tell_clock=clock.note_time,
        )

    def _wait_to_try_again(self, name: str, seconds: float) -> None:
        self.progress(Progress(name, f"trying again in {seconds:.0f} s"))
        time.sleep(seconds)


def failed_inputs(storage: Storage, dataset: StoredDataset, failed: Container[DatasetId]) -> str:
    """Return the names of a dataset's inputs that have failed.

    Args:
        storage: the workspace.
        dataset: the dataset.
        failed: ids of the datasets that have failed.
    """
    return ", ".join(str(storage.get(item).handle) for item in dataset.input_ids if item in failed)


def fetched_folder(dataset: StoredDataset) -> Path:
    """Return the folder for fetched files of a dataset that are not committed yet."""
    return dataset.cache / "fetched"


def is_polled(source: SetPollingSource, context: FetchContext) -> bool:
    """Return whether a pull queries the source at all; one without versions is not, after its first data."""
    return not (context.is_uncacheable and isinstance(source.fetch, (FetchUrl, FetchContainer)))


def sum_up(results: list[PullResult]) -> PullResult:
    """Combine the results of several commits to one dataset."""
    counts: dict[str, int] = {}
    for result in results:
        for key, count in result.counts.items():
            counts[key] = counts.get(key, 0) + count
    updated = any(result.outcome is PullOutcome.UPDATED for result in results)
    return replace(
        results[-1],
        outcome=PullOutcome.UPDATED if updated else PullOutcome.UP_TO_DATE,
        old_head=results[0].old_head,
        num_blocks=sum(result.num_blocks for result in results),
        num_records=sum(result.num_records for result in results),
        counts=counts,
        warnings=tuple(dict.fromkeys(warning for result in results for warning in result.warnings)),
        notes=tuple(dict.fromkeys(note for result in results for note in result.notes)),
    )
