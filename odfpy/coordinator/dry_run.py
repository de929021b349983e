"""`odf pull --dry-run`: what a pull would do.

Sources are queried for new data, other locations for their heads, and inputs for the number of new records. Nothing is
fetched or written, and no lock is taken.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

from odfpy.chain.events import SetPollingSource
from odfpy.chain.state import new_data_of
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.ingest.ingested_files import IngestedFiles
from odfpy.coordinator.ingest.snapshots import warnings_ahead
from odfpy.coordinator.ingest.watermarks import FOLLOWS, idle_watermark
from odfpy.coordinator.lineage.lineage import Lineage
from odfpy.coordinator.pull import Puller, failed_inputs, fetched_folder, is_polled
from odfpy.coordinator.storage.approvals import SourceNotApproved
from odfpy.coordinator.storage.clock import SourceClock
from odfpy.coordinator.storage.results import DamagedDataset, Progress
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.transfer.outcomes import hint_if_diverged
from odfpy.coordinator.transform.empty_runs import has_unapplied_query, unread_inputs
from odfpy.coordinator.transform.intervals import InputDiverged, InputInterval, new_intervals, without_data
from odfpy.coordinator.transform.run import require_transform
from odfpy.data.amounts import count_of
from odfpy.data.data_warning import DataWarning
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind
from odfpy.errors import DatasetNotFound, OdfError
from odfpy.http.url import without_user
from odfpy.ingest.source_state import POLLING_SOURCE
from odfpy.repository.divergence import DatasetsDiverged, compare_chains, read_block
from odfpy.repository.locations.open import open_dataset
from odfpy.repository.registry import resolve_remote
from odfpy.repository.transfer.clock import require_past
from odfpy.repository.transfer.options import TransferOptions
from odfpy.repository.transfer.simple import HistoryRewritten, resolve_divergence


class Expectation(Enum):
    """The expected outcomes of a pull for one dataset."""

    NEW = "would be updated"
    UP_TO_DATE = "up to date"
    UNKNOWN = "only a pull can tell"
    FAILED = "would fail"


@dataclass(frozen=True, slots=True)
class PlannedInput:
    """A file, URL or dataset that would be read.

    Attributes:
        name: a file, a URL, or a dataset.
        size: its size in bytes, if known.
        num_records: number of its rows, if known before it is fetched.
        kept: bytes that an earlier pull has already fetched.
    """

    name: str
    size: int | None = None
    num_records: int | None = None
    kept: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PullPlan:
    """The plan of a pull for one dataset.

    Attributes:
        name: alias or remote reference, as the user knows it.
        expectation: the expected outcome.
        inputs: the inputs that the pull would read.
        warnings: warnings about these inputs.
        notes: remarks for the user.
        seconds: how many seconds the plan took.
        error: why it would fail.
    """

    name: str
    expectation: Expectation
    inputs: tuple[PlannedInput, ...] = ()
    warnings: tuple[DataWarning, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    error: OdfError | None = None


@dataclass(frozen=True, slots=True)
class DryRun:
    """A dry run: determines what a pull would do.

    Attributes:
        puller: the puller, whose pull is not run.
    """

    puller: Puller

    def plan(self, refs: list[str], nameless: Sequence[DamagedDataset] = ()) -> Iterator[PullPlan]:
        """Yield the plans for ids, names, patterns, remote references and URLs, in the order of the pull.

        Args:
            refs: the datasets to pull.
            nameless: datasets that cannot be read, and so cannot be pulled.

        Raises:
            UsageError, NotFound: a reference is invalid.
        """
        storage = self.puller.storage
        remote = [ref for ref in refs if self.puller.is_remote(ref)]
        local = storage.match([ref for ref in refs if ref not in remote])
        self.puller.check_name(local, remote)
        for damaged in nameless:
            yield PullPlan(name=damaged.name, expectation=Expectation.FAILED, error=damaged.error)
        for ref in remote:
            yield self._timed(without_user(ref), partial(self._new_copy, ref))
        lineage = Lineage(storage)
        changing: set[DatasetId] = set()
        failing: set[DatasetId] = set()
        for dataset in lineage.in_order(local, with_inputs=self.puller.request.recursive):
            plan = self._timed(str(dataset.handle), partial(self._existing, dataset, lineage, changing, failing))
            if plan.expectation in (Expectation.NEW, Expectation.UNKNOWN):
                changing.add(dataset.handle.id)
            elif plan.expectation is Expectation.FAILED:
                failing.add(dataset.handle.id)
            yield plan

    def _timed(self, name: str, work: Callable[[], PullPlan]) -> PullPlan:
        started = time.monotonic()
        self.puller.progress(Progress(name, "asking"))
        try:
            plan = work()
        except OdfError as error:
            plan = PullPlan(name=name, expectation=Expectation.FAILED, error=error)
        return replace(plan, seconds=time.monotonic() - started)

    def _existing(
        self, dataset: StoredDataset, lineage: Lineage, changing: set[DatasetId], failing: set[DatasetId]
    ) -> PullPlan:
        url = self.puller.remotes.pull_url(dataset)
        if url is not None:
            return self._copy(dataset, url)
        cycle = lineage.cycle_of(dataset.handle.id)
        if cycle is not None:
            raise cycle
        skipped = failed_inputs(self.puller.storage, dataset, failing)
        if skipped:
            note = f"would be skipped, since its input would fail: {skipped}"
            return PullPlan(name=str(dataset.handle), expectation=Expectation.FAILED, notes=(note,))
        if dataset.state.kind is DatasetKind.DERIVATIVE:
            return self._derivative(dataset, changing)
        if dataset.state.polling_source is None:
            note = "nothing to pull from; data comes by `odf ingest`"
            return _idle(dataset, PullPlan(name=str(dataset.handle), expectation=Expectation.UP_TO_DATE, notes=(note,)))
        return self._source(dataset, dataset.state.polling_source)

    def _source(self, dataset: StoredDataset, source: SetPollingSource) -> PullPlan:
        from odfpy.ingest.fetch import FetchContext
        from odfpy.ingest.fetch.preview import preview
        from odfpy.ingest.prepare import check_steps

        try:
            self.puller.storage.approvals.require(dataset, source)
        except SourceNotApproved as error:
            if not self.puller.request.all:
                raise
            note = f"would be skipped: {error.message}; {error.hint}"
            return PullPlan(name=str(dataset.handle), expectation=Expectation.UP_TO_DATE, notes=(note,))
        check_steps(source.prepare)
        request, limits, storage = self.puller.request, self.puller.limits, self.puller.storage
        clock = SourceClock(any_time=request.overrides.future)
        context = FetchContext(
            now=Timestamp.now(),
            root=storage.root,
            scratch=storage.run / "never-made",
            kept=fetched_folder(dataset),
            state=dataset.state.source_state(POLLING_SOURCE),
            has_data=dataset.state.num_records > 0,
            force=request.force,
            fetch_uncacheable=request.fetch_uncacheable,
            environment=os.environ,
            timeout=limits.timeout,
            dataset_id=dataset.handle.id,
            options=limits.sources,
            tell_clock=clock.note_time,
        )
        previewed = preview(source.fetch, context)
        if previewed.inputs:
            clock.require()
        notes = () if previewed.remark is None else (previewed.remark,)
        if previewed.inputs is None:
            return PullPlan(name=str(dataset.handle), expectation=Expectation.UNKNOWN, notes=notes)
        inputs = tuple(PlannedInput(item.name, item.size, kept=item.kept) for item in previewed.inputs)
        warnings = (*warnings_ahead(dataset, source, previewed.inputs), *clock.warnings())
        ingested = IngestedFiles.of_source(dataset, source)
        if ingested is not None and not request.force:
            warnings = (*ingested.warnings(context), *warnings)
        plan = replace(_plan(str(dataset.handle), inputs, notes), warnings=warnings)
        return plan if inputs or not is_polled(source, context) else _idle(dataset, plan)

    def _derivative(self, dataset: StoredDataset, changing: set[DatasetId]) -> PullPlan:
        state = dataset.state
        try:
            intervals = new_intervals(self.puller.storage, dataset, require_transform(dataset, state), state)
        except InputDiverged as error:
            if not self.puller.request.reset_derivatives:
                raise
            again = f"would be recomputed: {error.message}"
            return PullPlan(name=str(dataset.handle), expectation=Expectation.NEW, notes=(again,))
        first = [str(item.dataset.handle) for item in intervals if item.dataset.handle.id in changing]
        notes: tuple[str, ...] = (f"{', '.join(first)} would be pulled first, and may have more data",) if first else ()
        has_changed = has_unapplied_query(dataset, state)
        if has_changed:
            notes += ("the query has changed: with state, it would correct the rows so far",)
        waiting = without_data(intervals)
        if set(waiting) - set(first):
            return _plan(str(dataset.handle), (), (*notes, f"waiting for the first data of {', '.join(waiting)}"))
        new = unread_inputs(dataset, state, intervals)
        if new or first or has_changed:
            self.puller.engines.get(require_transform(dataset, state).transform.engine)  # raises if it is missing
        inputs = tuple(PlannedInput(str(item.dataset.handle), num_records=_new_records(item)) for item in new)
        if (first and waiting) or ((first or has_changed) and not inputs):
            return PullPlan(name=str(dataset.handle), expectation=Expectation.UNKNOWN, notes=notes)
        return _plan(str(dataset.handle), inputs, notes)

    def _copy(self, dataset: StoredDataset, url: str) -> PullPlan:
        source, name = open_dataset(url), str(dataset.handle)
        head = source.refs.get(HEAD)
        if head is None:
            raise DatasetNotFound(f"No dataset there: {source.refs.describe(HEAD)}")
        if head == dataset.state.head:
            return _plan(name, ())
        comparison = compare_chains(source, head, dataset.layout, dataset.state.head)
        notes: tuple[str, ...] = ()
        if comparison.target:
            remotes = self.puller.remotes
            options = TransferOptions(seen=remotes.seen_heads(dataset).get(url))
            try:
                with hint_if_diverged(dataset, url, remotes.pull_command(dataset, url)):
                    resolve_divergence(comparison, source, head, dataset.layout, dataset.state.head, options)
            except (DatasetsDiverged, HistoryRewritten):
                if not self.puller.request.force:
                    raise
                notes = (f"drops {count_of(len(comparison.target), 'block')} here: the remote has a different history",)
            else:
                return _plan(name, (), ("the remote has nothing new; this copy is ahead",))
        if not comparison.source:
            return PullPlan(name=name, expectation=Expectation.NEW, notes=notes)
        clock = self.puller.copies.limits.clock
        require_past(
            comparison.source[-1].hashed.block.system_time, dataset.state.system_time, clock, without_user(url)
        )
        slices = [data for block in comparison.source if (data := new_data_of(block.hashed.block.event)) is not None]
        rows = sum(data.offset_interval.num_rows for data in slices)
        copied = PlannedInput(without_user(url), sum(data.size for data in slices), rows)
        return _plan(name, (copied,), (count_of(len(comparison.source), "block"), *notes))

    def _new_copy(self, ref: str) -> PullPlan:
        url = resolve_remote(ref, self.puller.remotes.registry)
        source = open_dataset(url)
        head = source.refs.get(HEAD)
        if head is None:
            raise DatasetNotFound(f"No dataset there: {source.refs.describe(HEAD)}")
        last = read_block(source.blocks, head)
        require_past(last.hashed.block.system_time, None, self.puller.copies.limits.clock, without_user(url))
        return _plan(without_user(ref), (PlannedInput(without_user(url)),), (f"{last.number + 1} blocks",))


def _plan(name: str, inputs: tuple[PlannedInput, ...], notes: tuple[str, ...] = ()) -> PullPlan:
    expectation = Expectation.NEW if inputs else Expectation.UP_TO_DATE
    return PullPlan(name=name, expectation=expectation, inputs=inputs, notes=notes)


def _idle(dataset: StoredDataset, plan: PullPlan) -> PullPlan:
    """Return the plan for a root dataset whose source has nothing new."""
    watermark = idle_watermark(dataset)
    if watermark is None:
        return plan
    return replace(plan, expectation=Expectation.NEW, notes=(*plan.notes, FOLLOWS, f"it would be {watermark}"))


def _new_records(item: InputInterval) -> int:
    last = item.interval.new_offset
    if last is None:
        return 0
    return last - (-1 if item.interval.prev_offset is None else item.interval.prev_offset)
