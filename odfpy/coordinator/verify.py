"""Verification: are the bytes what the chain says, and is the data what the queries say?

    1. every block: it has its hash, it can be read, every chain rule holds
    2. every slice: it is there, size and physical hash fit, its rows and their logical hash are as recorded
    3. every checkpoint that is there: size and hash fit; one that is gone is remarked on, since it is a cache
    4. every transform of a derivative dataset is replayed, and gives the same logical hash (unless only the
       integrity is asked for): each from the checkpoint before it or, where that is gone or damaged, from the history
       of the inputs; or all of them from the start, each from what the replay before it has kept
    5. every signature: it is by whom it says it is; a copy is signed by whom the settings want

A finding names block and file. Slices that others wrote with the reference's known deviation of the logical hash
(nulls in a struct and in its members) give a warning, since no correct computation can reproduce it.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import AddData, DataSlice, ExecuteTransform, SetTransform
from odfpy.chain.object_store import ObjectStore
from odfpy.chain.rules import validated
from odfpy.chain.signatures import SignatureReport
from odfpy.chain.state import ChainState
from odfpy.coordinator.damage import damage_of
from odfpy.coordinator.intervals import recorded_intervals
from odfpy.coordinator.remotes import Remotes
from odfpy.coordinator.results import Finding, Progress, ProgressSink, Severity, VerifyReport, silent
from odfpy.coordinator.signers import verify_signatures
from odfpy.coordinator.storage import Storage, StoredDataset
from odfpy.coordinator.transform import (
    EngineFor,
    make_request,
    require_transform,
    run,
    watermark_after,
)
from odfpy.data.multihash import Multihash
from odfpy.dataset.kind import DatasetKind
from odfpy.errors import ChainRuleViolation, HashMismatch, IntegrityError, ObjectNotFound, OdfError, ReplayMismatch

_CHECKPOINT: Final = "checkpoint"
_SIGNATURE: Final = "signature"
_RESTORE = (
    "`odf verify --repair` fetches it from where the dataset was pulled from or pushed to. Or copy the file of that"
    " name from another copy."
)
_OTHER_ENGINE = "Verify with that version of odfpy and Spark: another one may give other rows for the same query."
_MAKE_AGAIN = (
    "Delete the file, or copy that of the same name from another copy of the dataset. Replays and pulls go without it:"
    " what it had is made again from the history of the inputs, which takes longer."
)
_WITHOUT = "Nothing is lost: what it had is made again from the history of the inputs when it is needed."


@dataclass
class _Run:
    """A verification under way.

    Attributes:
        blocks: the blocks that could be read, oldest first.
        states: the state of the chain after each of them.
        missing: checkpoints that are not there, with their blocks.
        lost: checkpoints that are missing or damaged.
    """

    dataset: StoredDataset
    progress: ProgressSink
    blocks: list[HashedBlock] = field(default_factory=list)
    states: list[ChainState] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    missing: list[tuple[HashedBlock, Multihash]] = field(default_factory=list)
    lost: set[Multihash] = field(default_factory=set)
    slices: int = 0
    checkpoints: int = 0
    replayed: int = 0

    def error(
        self,
        check: str,
        message: str,
        block: HashedBlock | None = None,
        *,
        file: str | None = None,
        hint: str | None = None,
        severity: Severity = Severity.ERROR,
        cause: type[OdfError] = IntegrityError,
    ) -> None:
        """Note a finding."""
        finding = Finding(
            severity=severity,
            check=check,
            message=message,
            block=block.hash if block else None,
            sequence_number=block.block.sequence_number if block else None,
            file=file,
            hint=hint,
            code=cause.code,
        )
        self.findings.append(finding)

    @property
    def can_be_replayed(self) -> bool:
        """Whether blocks and slices are what they should be; what a checkpoint has can be made again."""
        found = (finding for finding in self.findings if finding.severity is Severity.ERROR)
        return bool(self.states) and all(finding.check in (_CHECKPOINT, _SIGNATURE) for finding in found)

    def tell(self, action: str, number: int) -> None:
        """A sign of life."""
        self.progress(Progress(str(self.dataset.handle), action, number, len(self.blocks), "blocks"))


def verify(
    storage: Storage,
    dataset: StoredDataset,
    *,
    engine_for: EngineFor | None = None,
    from_start: bool = False,
    progress: ProgressSink = silent,
) -> VerifyReport:
    """Verify one dataset; without `engine_for` only its integrity, `from_start` without using any checkpoint of it."""
    started = time.monotonic()
    this = _Run(dataset, progress)
    _verify_chain(this)
    for number, (hashed, state) in enumerate(zip(this.blocks, this.states, strict=True)):
        this.tell("checking files", number)
        _verify_files(this, hashed, state)
    _remark_on_missing(this)
    if engine_for is not None and this.can_be_replayed and this.states[-1].kind is DatasetKind.DERIVATIVE:
        _replay_all(this, storage, engine_for, from_start=from_start)
    signatures = _verify_signatures(this)
    return VerifyReport(
        handle=dataset.handle,
        blocks=len(this.blocks),
        slices=this.slices,
        checkpoints=this.checkpoints,
        transforms_replayed=this.replayed,
        signatures=signatures,
        findings=tuple(this.findings),
        seconds=time.monotonic() - started,
    )


# --- 1. Blocks -------------------------------------------------------------------------------------------------------


def _verify_chain(this: _Run) -> None:
    walk = this.dataset.chain.iter_blocks()
    try:
        while (hashed := next(walk, None)) is not None:
            this.blocks.append(hashed)
    except OdfError as error:
        this.error("block", error.message, hint=error.hint or _RESTORE, cause=type(error))
        this.blocks.clear()  # the rules need the whole chain, from its seed on
        return
    this.blocks.reverse()
    state = ChainState()
    broken = False
    for hashed in this.blocks:
        try:
            state = state.after(hashed) if broken else validated(state, hashed)
        except ChainRuleViolation as error:
            this.error("chain", error.message, hashed, hint=error.hint, cause=type(error))
            state, broken = state.after(hashed), True
        this.states.append(state)
    if this.states[-1].dataset_id != this.dataset.handle.id:
        this.error("chain", f"The chain is that of another dataset: {this.states[-1].dataset_id}", this.blocks[0])


# --- 2. and 3. Slices and checkpoints --------------------------------------------------------------------------------


def _verify_files(this: _Run, hashed: HashedBlock, state: ChainState) -> None:
    event = hashed.block.event
    if not isinstance(event, (AddData, ExecuteTransform)):
        return
    layout = this.dataset.layout
    if event.new_checkpoint is not None:
        this.checkpoints += 1
        checkpoint = event.new_checkpoint
        name = checkpoint.physical_hash
        if name not in layout.checkpoints:
            this.missing.append((hashed, name))
            this.lost.add(name)
        elif not _verify_object(this, hashed, _CHECKPOINT, layout.checkpoints, name, checkpoint.size):
            this.lost.add(name)
    if event.new_data is not None:
        this.slices += 1
        name = event.new_data.physical_hash
        if _verify_object(this, hashed, "slice", layout.data, name, event.new_data.size):
            _verify_rows(this, hashed, state, event.new_data)


def _remark_on_missing(this: _Run) -> None:
    """One remark on all checkpoints that are gone, at the last of them: a person may have made room."""
    if not this.missing:
        return
    block, name = this.missing[-1]
    message = "Missing checkpoint"
    if len(this.missing) > 1:
        message += f"s: {len(this.missing)} of {this.checkpoints}; the last one"
    file = this.dataset.layout.checkpoints.describe(name)
    this.error(_CHECKPOINT, message, block, file=file, hint=_WITHOUT, severity=Severity.WARNING, cause=ObjectNotFound)


def _verify_object(this: _Run, hashed: HashedBlock, check: str, store: ObjectStore, name: Multihash, size: int) -> bool:
    """Size and physical hash of one file."""
    file, restore = store.describe(name), _MAKE_AGAIN if check == _CHECKPOINT else _RESTORE
    damage = damage_of(store, name, check, size)
    if damage is not None:
        this.error(check, damage.message, hashed, file=file, hint=restore, cause=damage.cause)
    return damage is None


def _verify_rows(this: _Run, hashed: HashedBlock, state: ChainState, data: DataSlice) -> None:
    """What a slice holds: number and offsets of rows, logical hash."""
    from odfpy.data.logical_hash import ambiguous_columns, logical_hash_of_parquet
    from odfpy.data.slice import slice_stats

    store = this.dataset.layout.data
    path = store.local_path(data.physical_hash)
    file = store.describe(data.physical_hash)
    if path is None:
        return
    try:
        stats = slice_stats(path, vocab=state.vocab)
        found = logical_hash_of_parquet(path)
    except OdfError as error:
        this.error("slice", error.message, hashed, file=file, hint=error.hint, cause=type(error))
        return
    interval = data.offset_interval
    rows = interval.end - interval.start + 1
    if (stats.offset_start, stats.offset_end, stats.num_rows) != (interval.start, interval.end, rows):
        this.error(
            "slice",
            f"The slice holds {stats.num_rows} rows with offsets {stats.offset_start} to {stats.offset_end}, the block"
            f" says {rows} rows with offsets {interval.start} to {interval.end}",
            hashed,
            file=file,
        )
    if found == data.logical_hash:
        return
    columns = ambiguous_columns(path)
    if columns:
        message = (
            f"The logical hash cannot be checked: {', '.join(columns)} have nulls in a struct and in its members, for"
            " which the writer's hash is no function of the data; the physical hash is right"
        )
        this.error("slice", message, hashed, file=file, severity=Severity.WARNING)
    else:
        message = f"The logical hash of the rows is {found}, the block says {data.logical_hash}"
        this.error("slice", message, hashed, file=file, cause=HashMismatch)


# --- 4. Replay -------------------------------------------------------------------------------------------------------


def _replay_all(this: _Run, storage: Storage, engine_for: EngineFor, *, from_start: bool) -> None:
    state = ChainState()
    with storage.scratch() as folder:
        kept: Path | None = None
        for number, (hashed, after) in enumerate(zip(this.blocks, this.states, strict=True)):
            event = hashed.block.event
            if isinstance(event, ExecuteTransform):
                this.tell("replaying", number)
                this.replayed += 1
                before = kept if from_start else _recorded_checkpoint(this, state)
                try:
                    kept = _replay(this, storage, hashed, event, state, engine_for, before, folder)
                except OdfError as error:
                    message = f"Cannot be replayed: {error.message}"
                    this.error("replay", message, hashed, hint=error.hint, cause=type(error))
                    return
            state = after


def _recorded_checkpoint(this: _Run, state: ChainState) -> Path | None:
    recorded = state.checkpoint
    if recorded is None or recorded.physical_hash in this.lost:
        return None
    return this.dataset.layout.checkpoints.local_path(recorded.physical_hash)


def _replay(
    this: _Run,
    storage: Storage,
    hashed: HashedBlock,
    event: ExecuteTransform,
    before: ChainState,
    engine_for: EngineFor,
    checkpoint: Path | None,
    folder: Path,
) -> Path | None:
    """Run a transform again and compare; what the engine keeps is put into a folder, in the place of what was there."""
    set_transform = require_transform(this.dataset, before)
    inputs = recorded_intervals(this.dataset, set_transform, event)
    with storage.scratch() as scratch:
        time = hashed.block.system_time
        request = make_request(this.dataset, set_transform, before, inputs, time, scratch, checkpoint)
        engine = engine_for(set_transform.transform)
        response = run(engine, request, inputs, this.dataset, before)
        found = response.slices[0].logical_hash if response.slices else None
        recorded = event.new_data.logical_hash if event.new_data else None
        versions = _compare_versions(set_transform, engine.version)
        if found != recorded:
            path = Path(response.slices[0].path) if response.slices else None
            message = f"Not reproducible: the replay gives {found or 'no rows'}, the block says {recorded or 'no rows'}"
            message += _compare_rows(this, event, path) + versions
            this.error("replay", message, hashed, hint=_OTHER_ENGINE if versions else None, cause=ReplayMismatch)
        elif response.new_watermark is not None and watermark_after(before, response) != event.new_watermark:
            message = f"The replay gives the watermark {response.new_watermark}, the block says {event.new_watermark}"
            hint = _OTHER_ENGINE if versions else None
            this.error("replay", message + versions, hashed, hint=hint, cause=ReplayMismatch)
        made = Path(request.new_checkpoint_path)
        return made.replace(folder / "checkpoint") if made.is_file() else None


def _compare_rows(this: _Run, event: ExecuteTransform, replayed: Path | None) -> str:
    """A remark on how the rows of a replay differ from the recorded ones."""
    if replayed is None or event.new_data is None:
        return ""
    recorded = this.dataset.layout.data.local_path(event.new_data.physical_hash)
    if recorded is None:
        return ""
    if _rows(recorded, this) == _rows(replayed, this):
        return "; the rows are the same in another order"
    return "; the rows differ"


def _compare_versions(set_transform: SetTransform, version: str) -> str:
    """A remark on the engine, where another one has made the rows."""
    recorded = set_transform.transform.version
    return f"; they were made with {recorded}, this is {version}" if recorded not in (None, version) else ""


def _rows(path: Path, this: _Run) -> Counter[str]:
    from odfpy.data.slice import read_slice

    vocab = this.states[-1].vocab
    table = read_slice(path, vocab=vocab)
    columns = sorted(name for name in table.column_names if name != vocab.offset_column)
    return Counter(repr(row) for batch in table.select(columns).to_batches(10_000) for row in batch.to_pylist())


# --- 5. Signatures ---------------------------------------------------------------------------------------------------


def _verify_signatures(this: _Run) -> SignatureReport:
    def tell(error: OdfError, block: HashedBlock, file: str) -> None:
        this.error(_SIGNATURE, error.message, block, file=file, hint=error.hint, cause=type(error))

    remotes = Remotes(this.dataset.storage)
    is_copy = False
    with suppress(OdfError):  # a damaged file of aliases has a finding of its own
        is_copy = bool(remotes.aliases(this.dataset).list("pull"))
    return verify_signatures(this.dataset, this.blocks, remotes.required if is_copy else None, tell)
