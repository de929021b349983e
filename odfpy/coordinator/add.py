"""Creation of datasets from DatasetSnapshot manifests (ODF specification, "DatasetSnapshot").

1. read the manifests (`odfpy.coordinator.manifests`)
2. sort them by dependency, regardless of the order of the files
3. resolve inputs to ids, normalize queries
4. let the engine analyze each query (`odfpy.coordinator.transform.checks`), so that unsupported ones are rejected
   here, not at the first pull
5. make the dataset in a scratch folder, with every chain rule checked
6. move it into the workspace in one step
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from odfpy.chain.block import DatasetSnapshot
from odfpy.chain.events import (
    AddData,
    AddPushSource,
    DisablePollingSource,
    DisablePushSource,
    ExecuteTransform,
    MetadataEvent,
    Seed,
    SetDataSchema,
    SetPollingSource,
    SetTransform,
    SetVocab,
    Source,
    TransformInput,
)
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.new_blocks import NewBlocks
from odfpy.chain.rules import NoOpEvent
from odfpy.chain.sources import FetchContainer
from odfpy.chain.state import ChainState
from odfpy.coordinator.lineage.graph import DependencyOrder, cycle_error
from odfpy.coordinator.lineage.lineage import Lineage
from odfpy.coordinator.manifests import changes_of_manifest
from odfpy.coordinator.planned_datasets import PlannedDatasets, absent, similar_input
from odfpy.coordinator.schedules.change import ScheduleChange, schedule_change
from odfpy.coordinator.schedules.file import notify_changed
from odfpy.coordinator.storage.approvals import runs_something
from odfpy.coordinator.storage.clock import warnings_of_last_block
from odfpy.coordinator.storage.commit import commit_time
from odfpy.coordinator.storage.results import AddOutcome, AddResult, DatasetHandle
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.transform.run import with_version
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId, KeyPair
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.names import DatasetAlias, DatasetRef
from odfpy.errors import (
    AlreadyExists,
    ConcurrentUpdate,
    DatasetNotFound,
    InvalidQuery,
    OdfError,
    SchemaError,
    UsageError,
)

_NOT_IN_SNAPSHOTS = (Seed, AddData, ExecuteTransform, SetDataSchema)

Check = Callable[[ChainState, "PlannedDatasets"], tuple[str, ...]]
"""Analyzes the queries of a dataset; returns remarks, and raises an error for unsupported ones."""


def add(
    storage: Storage,
    snapshots: Sequence[DatasetSnapshot],
    *,
    check: Check,
    replace_existing: bool = False,
    keep_existing: bool = False,
    dry_run: bool = False,
    approve: bool = True,
) -> list[AddResult]:
    """Create datasets from snapshots: all of them, or none if one is invalid or a dataset is locked.

    Each dataset is a separate commit: if the machine crashes or the disk fills up meanwhile, earlier ones are kept.

    Args:
        storage: the workspace.
        snapshots: the snapshots, in any order.
        check: checks a planned dataset, with the help of its engine.
        replace_existing: whether to append the changes to datasets that exist.
        keep_existing: whether to leave existing datasets unchanged, and continue with the others.
        dry_run: whether only to check; missing inputs are then remarks.
        approve: whether to approve their sources in this workspace.

    Raises:
        DatasetLocked, ConcurrentUpdate: another process writes to an existing one; nothing was added.
        OdfError: a snapshot is invalid; nothing was added, unless a file could not be written.
    """
    may_exist = replace_existing or keep_existing
    ordered = _in_order(storage, snapshots, may_exist=may_exist, may_lack_inputs=dry_run)
    with storage.editing():
        planned = PlannedDatasets(storage, may_lack_inputs=dry_run)
        steps: list[_Step] = []
        for snapshot in ordered:
            with _hint_at_changed_inputs(snapshot, steps):
                steps.append(_plan(storage, planned, snapshot, check, may_exist=may_exist))
        for step in steps:
            step.is_kept = step.existing is not None and not replace_existing
        if dry_run:
            return [step.describe() for step in steps]
        with ExitStack() as held:
            for step in steps:  # before the first commit, so that none is made if one is impossible
                step.lock(held)
            return [step.describe() if step.is_kept else step.carry_out(approve=approve) for step in steps]


def _in_order(
    storage: Storage, snapshots: Sequence[DatasetSnapshot], *, may_exist: bool, may_lack_inputs: bool
) -> list[DatasetSnapshot]:
    """Sort the snapshots, inputs first, also where dependencies pass through existing datasets."""
    by_name: dict[DatasetAlias, DatasetSnapshot] = {}
    for snapshot in snapshots:
        if snapshot.name in by_name:
            raise AlreadyExists(
                f"Two manifests describe the same dataset {str(snapshot.name)!r}",
                hint="Keep one of them, or give one another name.",
            )
        by_name[snapshot.name] = snapshot
    existing = Lineage(storage)

    def inputs_of(name: DatasetAlias) -> Iterable[DatasetAlias]:
        if name not in by_name:
            return existing.names_of_inputs(name)
        refs = [item.dataset_ref for item in _inputs(by_name[name])]
        for ref in refs:
            if isinstance(ref, DatasetAlias) and ref not in by_name and not may_lack_inputs:
                _require_input(storage, name, ref, by_name)
        names = [existing.name_of(ref) if isinstance(ref, DatasetId) else ref for ref in refs]
        known = [input_name for input_name in names if input_name is not None]
        return known if may_exist else [input_name for input_name in known if input_name in by_name]

    order = DependencyOrder(inputs_of, by_name)
    for name in by_name:
        if order.cycle_of(name):
            raise cycle_error(list(map(str, order.way_round(name))), hint="Remove one of the inputs.")
    return [by_name[name] for name in order.nodes if name in by_name]


def _inputs(snapshot: DatasetSnapshot) -> tuple[TransformInput, ...]:
    return tuple(item for event in snapshot.metadata if isinstance(event, SetTransform) for item in event.inputs)


@contextmanager
def _hint_at_changed_inputs(snapshot: DatasetSnapshot, steps: Sequence[_Step]) -> Iterator[None]:
    """Extend the hint of a query error: inputs that the same command changes get their new columns only later."""
    try:
        yield
    except InvalidQuery as error:
        inputs = {item.dataset_ref for item in _inputs(snapshot)}
        changed = [str(step.alias) for step in steps if step.alias in inputs and step.existing and step.new.encoded]
        if not changed:
            raise
        later = f"New columns of {', '.join(changed)} come with its next rows: first add and pull only that."
        raise error.with_message(error.message, hint=f"{error.hint or ''} {later}".strip()) from error


def _require_input(
    storage: Storage, name: DatasetAlias, ref: DatasetRef, planned: Iterable[DatasetAlias]
) -> StoredDataset:
    try:
        return storage.get(ref)
    except DatasetNotFound as error:
        raise DatasetNotFound(
            f"{name}: {absent(ref)}",
            hint=similar_input(storage, ref, name, planned) or "Add the input first, or in the same command.",
        ) from error


class _Step:
    """One dataset to be created or changed."""

    def __init__(self, storage: Storage, alias: DatasetAlias, new: NewBlocks, notes: tuple[str, ...]) -> None:
        self.storage = storage
        self.alias = alias
        self.new = new
        self.notes = notes
        self.key: KeyPair | None = None
        self.existing: StoredDataset | None = None
        self.is_kept = False
        self.sources: tuple[Source, ...] = ()
        self.schedule = ScheduleChange()

    def describe(self) -> AddResult:
        state = self.new.state
        changes: tuple[str, ...] = ()
        if self.existing is None:
            outcome = AddOutcome.CREATED
        elif not self.new.encoded and not self.schedule.lines:
            outcome = AddOutcome.UNCHANGED
        else:
            outcome = AddOutcome.KEPT if self.is_kept else AddOutcome.UPDATED
            changes = changes_of_manifest(self.alias, self.new.base, state) + self.schedule.lines
        handle = DatasetHandle(state.dataset_id, self.alias)
        notes = () if self.is_kept else self.notes + self.schedule.notes
        return AddResult(handle=handle, kind=state.kind, outcome=outcome, changes=changes, notes=notes)

    def lock(self, held: ExitStack) -> None:
        """Lock a dataset to be changed, and check that it has not changed since it was planned.

        Args:
            held: the stack that releases the lock.
        """
        if self.existing is None or self.is_kept:
            return
        self.existing = held.enter_context(self.existing.writing())
        if self.existing.state.head != self.new.base.head:
            raise ConcurrentUpdate(
                f"{self.alias} was written to in the meantime", hint="Run the command again. Nothing was changed."
            )

    def carry_out(self, *, approve: bool) -> AddResult:
        if self.existing is not None:
            self.existing.chain.commit(self.new)
            self.schedule.save(self.existing.folder)
        elif self.key is not None:
            with self.storage.scratch() as scratch:
                folder = scratch / "dataset"
                layout = DatasetLayout.local(folder)
                signing = self.storage.signing
                layout.witnessed(lambda new: signing.sign(layout, lambda: self.key, new)).commit(self.new)
                self.schedule.save(folder)
                # Before the dataset appears: a crash in between leaves an unused key, not a dataset without its key.
                self.storage.keys.save(self.key)
                self.storage.create(self.alias, self.new.state.dataset_id, folder)
        if approve:  # last: uncommitted sources must not be approved
            self.storage.approvals.approve(self.new.state.dataset_id, self.sources)
        elif any(map(runs_something, self.sources)):
            self.notes += (f"its source runs here once you have approved it: odf source trust {self.alias}",)
        if self.schedule:
            notify_changed(self.storage)
        self.notes += self.storage.signing.remarks()
        if self.existing is not None and self.new.encoded:
            self.notes += tuple(item.message for item in warnings_of_last_block(self.new.base.system_time))
        return self.describe()


def _plan(
    storage: Storage,
    planned: PlannedDatasets,
    snapshot: DatasetSnapshot,
    check: Check,
    *,
    may_exist: bool,
) -> _Step:
    try:
        step = _plan_existing(storage, planned, snapshot) if may_exist else None
        step = step or _plan_new(storage, planned, snapshot)
        events = _events(snapshot, planned)
        step.schedule = schedule_change(snapshot, step.existing)
        step.sources = tuple(event for event in events if isinstance(event, (SetPollingSource, AddPushSource)))
        if step.new.encoded:
            step.notes += check(step.new.state, planned) + _spoken_aloud(step.new.state, storage.root)
    except OdfError as error:
        if error.message.startswith(str(snapshot.name)):
            raise
        raise error.with_context(snapshot.name) from error
    planned.put(snapshot.name, step.new.state)
    return step


def _spoken_aloud(state: ChainState, root: Path) -> tuple[str, ...]:
    """Return remarks on what a pull runs on this machine: a manifest may be untrusted, or need a secret."""
    source = state.polling_source
    if source is None:
        return ()
    from odfpy.coordinator.ingest.source_actions import actions_of

    remarks = [f"each pull {action.text}" for action in actions_of(source, root) if action.reaches_out]
    if isinstance(source.fetch, FetchContainer) and any("${{" in text for text in source.fetch.args or ()):
        remarks.append(
            "other users of this machine can see the values in `args` while it runs; secrets belong in `env`"
        )
    return tuple(remarks)


def _plan_new(storage: Storage, planned: PlannedDatasets, snapshot: DatasetSnapshot) -> _Step:
    storage.check_free(snapshot.name)
    key = KeyPair.generate()
    now = Timestamp.now()
    new = NewBlocks(ChainState())
    new.add(Seed(key.dataset_id, snapshot.kind), now)
    for event in _events(snapshot, planned):
        new.add(event, now)
    step = _Step(storage, snapshot.name, new, ())
    step.key = key
    return step


def _plan_existing(storage: Storage, planned: PlannedDatasets, snapshot: DatasetSnapshot) -> _Step | None:
    """Plan the changes of the manifest as new blocks of the existing dataset; its history is kept."""
    from odfpy.coordinator.transform.checks import remarks_on_sources

    try:
        dataset = storage.get(snapshot.name)
    except DatasetNotFound:
        return None
    state = dataset.state
    if state.kind is not snapshot.kind:
        raise AlreadyExists(
            f"the existing dataset is {state.kind.value}, the manifest says {snapshot.kind.value}",
            hint="Delete the dataset first, or choose another name.",
        )
    new = NewBlocks(state)
    now = commit_time(state)
    for event in (*_disabled(snapshot, state), *_events(snapshot, planned)):
        _check_vocabulary(event, state)
        if not (isinstance(event, SetTransform) and _is_same_query(event, state.set_transform)):
            _add_if_new(new, event, now)
    step = _Step(storage, snapshot.name, new, remarks_on_sources(state, new.state))
    step.existing = dataset
    return step


def _disabled(snapshot: DatasetSnapshot, state: ChainState) -> Iterable[MetadataEvent]:
    """Yield events that disable sources which a manifest no longer has; a manifest without any sources changes none."""
    sources = [event for event in snapshot.metadata if isinstance(event, (SetPollingSource, AddPushSource))]
    if not sources:
        return
    if state.polling_source is not None and not any(isinstance(source, SetPollingSource) for source in sources):
        yield DisablePollingSource()
    names = {source.source_name for source in sources if isinstance(source, AddPushSource)}
    for source in state.push_sources:
        if source.source_name not in names:
            yield DisablePushSource(source.source_name)


def _check_vocabulary(event: MetadataEvent, state: ChainState) -> None:
    """Refuse to rename system columns that existing slices have."""
    if not isinstance(event, SetVocab) or state.schema is None:
        return
    names = replace(ChainState(), set_vocab=event).vocab.columns
    for before, after in zip(state.vocab.columns, names, strict=True):
        if before != after:
            raise SchemaError(
                f"the system column {before!r} may not be renamed to {after!r}: there is data in it",
                hint="Keep the names of SetVocab, or put the data into a new dataset.",
            )


def _is_same_query(event: SetTransform, recorded: SetTransform | None) -> bool:
    """Return whether only the engine's version differs, which every run records."""
    return recorded is not None and with_version(event, "") == with_version(recorded, "")


def _add_if_new(new: NewBlocks, event: MetadataEvent, now: Timestamp) -> None:
    try:
        new.add(event, now)
    except NoOpEvent:
        return


def _events(snapshot: DatasetSnapshot, planned: PlannedDatasets) -> Iterable[MetadataEvent]:
    kinds = [type(event) for event in snapshot.metadata]
    if snapshot.kind is DatasetKind.DERIVATIVE and SetTransform not in kinds:
        raise UsageError("a derivative dataset needs a SetTransform", hint="`odf new --derivative NAME` shows one.")
    for event in snapshot.metadata:
        if isinstance(event, _NOT_IN_SNAPSHOTS):
            raise UsageError(f"{type(event).__name__} is not allowed in a snapshot: only the coordinator writes it")
        yield _normalized(event, planned, snapshot.name)


def _normalized(event: MetadataEvent, planned: PlannedDatasets, name: DatasetAlias) -> MetadataEvent:
    """Return the event as it is stored: inputs by id with an alias, queries as steps."""
    if isinstance(event, SetTransform):
        inputs = tuple(
            TransformInput(planned.id_of(item.dataset_ref, name), item.alias or str(item.dataset_ref))
            for item in event.inputs
        )
        aliases = [str(item.alias).lower() for item in inputs]
        if len(set(aliases)) < len(aliases):
            raise UsageError("two inputs have the same alias")
        return SetTransform(inputs, event.transform.normalized())
    if isinstance(event, (SetPollingSource, AddPushSource)) and event.preprocess is not None:
        return replace(event, preprocess=event.preprocess.normalized())
    return event
