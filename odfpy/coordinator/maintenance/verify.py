"""Verification: check files against the chain, and data against queries.

    1. every block: its hash matches, it is readable, every chain rule holds; blocks in the future give a warning
    2. every slice: it exists, size and physical hash match, its rows and their logical hash are as recorded
       and every object that they link to: size and hash match (`verify_links`)
    3. every existing checkpoint: size and hash match; a missing one gives a warning, since it is only a cache
    4. every transform of a derivative dataset is replayed, and gives the same logical hash (unless only integrity
       is requested): each from the checkpoint before it or, if that is missing or damaged, from the history of the
       inputs; or all of them from the start, each from the state of the previous replay. If the reference
       implementation has read slices in the order of their names, so does a second replay, with a warning. Blocks of
       inputs that exist, but are no longer in their history, give a warning
    5. the state of a derivative equals the result of its query over the states of its inputs, if requested
    6. every signature: it belongs to its signer; copies are signed by the signers required by the settings

A finding names block and file. Slices of other writers with the reference implementation's known deviation of the
logical hash (nulls in a struct and in its members) give a warning, since no correct computation can reproduce it.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import AddData, DataSlice, ExecuteTransform
from odfpy.chain.rules import state_after
from odfpy.chain.signatures import SignatureReport
from odfpy.chain.state import ChainState
from odfpy.chain.stores.object_store import ObjectStore
from odfpy.coordinator.lineage.graph import DependencyCycle
from odfpy.coordinator.maintenance.batch import BatchVerifier, finding_of, moments
from odfpy.coordinator.maintenance.damage import damage_of, unreadable_as_finding
from odfpy.coordinator.maintenance.replay import remark_on_histories, replay_all
from odfpy.coordinator.maintenance.report import Finding, LinkedFiles, Severity, VerifyReport
from odfpy.coordinator.maintenance.verification import CHECKPOINT, SIGNATURE, Verification
from odfpy.coordinator.maintenance.verify_links import verify_links
from odfpy.coordinator.storage.results import ProgressSink, silent
from odfpy.coordinator.storage.signers import verify_signatures
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.transfer.transfers import Transfers
from odfpy.coordinator.transform.run import EngineFor
from odfpy.data.duration import Duration
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.kind import DatasetKind
from odfpy.errors import ChainRuleViolation, HashMismatch, ObjectNotFound, OdfError
from odfpy.repository.transfer.clock import FromTheFuture, ahead

_RESTORE = (
    "`odf verify {} --repair` fetches it from a repository that has the dataset. Or copy the file of that"
    " name from another copy."
)
_RECOMPUTE = (
    "Delete the file, or copy that of the same name from another copy of the dataset. Replays and pulls work without"
    " it: they recompute its content from the history of the inputs, which takes longer."
)
_FUTURE = (
    "Check the local clock. If it is correct, the clock of the writer was ahead: queries as of now omit such"
    " blocks, and later blocks get their time."
)
_NOT_NEEDED = "Nothing is lost: its content is recomputed from the history of the inputs when it is needed."


def verify(
    storage: Storage,
    dataset: StoredDataset,
    *,
    engine_for: EngineFor | None = None,
    from_start: bool = False,
    batch: BatchVerifier | None = None,
    each_transform: bool = False,
    progress: ProgressSink = silent,
) -> VerifyReport:
    """Verify one dataset.

    Args:
        storage: the workspace.
        dataset: the dataset.
        engine_for: returns the engines for replays; None to verify integrity only.
        from_start: whether to replay without using recorded checkpoints.
        batch: compares derivatives with the results of their queries over all input data, None to skip that.
        each_transform: whether to compare after each transform, not only after the last one.
        progress: called with the progress.
    """
    started = time.monotonic()
    verification = Verification(dataset, progress)
    _verify_chain(verification)
    _remark_on_future(verification)
    linked: LinkedFiles | None = None
    with unreadable_as_finding(dataset, verification.findings):
        for number, (hashed, state) in enumerate(zip(verification.blocks, verification.states, strict=True)):
            verification.report_progress("checking files", number)
            _verify_files(verification, hashed, state)
        linked = verify_links(verification)
    _remark_on_missing(verification)
    is_derivative = verification.can_be_replayed and verification.states[-1].kind is DatasetKind.DERIVATIVE
    if engine_for is not None and is_derivative:
        replay_all(verification, storage, engine_for, from_start=from_start)
    if batch is not None and is_derivative:
        _compare_with_batch(verification, batch, each=each_transform)
    if is_derivative and (engine_for is not None or batch is not None):
        remark_on_histories(verification, storage)
    signatures = _verify_signatures(verification, storage)
    return VerifyReport(
        handle=dataset.handle,
        head=verification.blocks[-1].hash if verification.blocks else None,
        blocks=len(verification.blocks),
        slices=verification.slices,
        checkpoints=verification.checkpoints,
        transforms_replayed=verification.replayed,
        signatures=signatures,
        findings=tuple(verification.findings),
        seconds=time.monotonic() - started,
        against_batch=tuple(verification.comparisons),
        linked=linked,
    )


def with_cycle(report: VerifyReport, cycle: DependencyCycle | None) -> VerifyReport:
    """Add a finding to the report if the dataset is in a dependency cycle."""
    if cycle is None:
        return report
    finding = Finding(severity=Severity.ERROR, check="lineage", message=cycle.message, hint=cycle.hint, code=cycle.code)
    return replace(report, findings=(*report.findings, finding))


# --- 1. Blocks -------------------------------------------------------------------------------------------------------


def _verify_chain(verification: Verification) -> None:
    walk = verification.dataset.chain.iter_blocks()
    try:
        while (hashed := next(walk, None)) is not None:
            verification.blocks.append(hashed)
    except OdfError as error:
        is_lost = isinstance(error, (HashMismatch, ObjectNotFound))
        hint = error.hint if error.hint and not is_lost else _RESTORE.format(verification.dataset.handle)
        verification.add_finding("block", error.message, hint=hint, cause=type(error))
        verification.blocks.clear()  # chain rules can only be checked on a complete chain
        return
    verification.blocks.reverse()
    state = ChainState()
    broken = False
    for hashed in verification.blocks:
        try:
            state = state.after(hashed) if broken else state_after(state, hashed)
        except ChainRuleViolation as error:
            verification.add_finding("chain", error.message, hashed, hint=error.hint, cause=type(error))
            state, broken = state.after(hashed), True
        verification.states.append(state)
    if verification.states[-1].dataset_id != verification.dataset.handle.id:
        message = f"The chain is that of another dataset: {verification.states[-1].dataset_id}"
        verification.add_finding("chain", message, verification.blocks[0])


def _remark_on_future(verification: Verification) -> None:
    """Add one warning for all blocks with a time in the future, at the first of them."""
    now = Timestamp.now()
    early = [hashed for hashed in verification.blocks if ahead(hashed.block.system_time, now) is not None]
    if not early:
        return
    difference = Duration.between(now, early[-1].block.system_time).in_words
    many = f", as are {len(early) - 1} after it" if len(early) > 1 else ""
    message = f"The block has a time in the future{many}: {difference} ahead of the local clock"
    verification.add_finding("clock", message, early[0], hint=_FUTURE, severity=Severity.WARNING, cause=FromTheFuture)


# --- 2. and 3. Slices and checkpoints --------------------------------------------------------------------------------


def _verify_files(verification: Verification, hashed: HashedBlock, state: ChainState) -> None:
    event = hashed.block.event
    if not isinstance(event, (AddData, ExecuteTransform)):
        return
    layout = verification.dataset.layout
    if event.new_checkpoint is not None:
        verification.checkpoints += 1
        checkpoint = event.new_checkpoint
        name = checkpoint.physical_hash
        if name not in layout.checkpoints:
            verification.missing_checkpoints.append((hashed, name))
            verification.unusable_checkpoints.add(name)
        elif not _verify_object(verification, hashed, CHECKPOINT, layout.checkpoints, name, checkpoint.size):
            verification.unusable_checkpoints.add(name)
    if event.new_data is not None:
        verification.slices += 1
        name = event.new_data.physical_hash
        if _verify_object(verification, hashed, "slice", layout.data, name, event.new_data.size):
            _verify_rows(verification, hashed, state, event.new_data)


def _remark_on_missing(verification: Verification) -> None:
    """Add one warning for all missing checkpoints, at the last of them: a user may have freed space."""
    if not verification.missing_checkpoints:
        return
    block, name = verification.missing_checkpoints[-1]
    message = "Missing checkpoint"
    if len(verification.missing_checkpoints) > 1:
        message += f"s: {len(verification.missing_checkpoints)} of {verification.checkpoints}; the last one"
    file = verification.dataset.layout.checkpoints.describe(name)
    verification.add_finding(
        CHECKPOINT, message, block, file=file, hint=_NOT_NEEDED, severity=Severity.WARNING, cause=ObjectNotFound
    )


def _verify_object(
    verification: Verification, hashed: HashedBlock, check: str, store: ObjectStore, name: Multihash, size: int
) -> bool:
    """Verify the size and physical hash of a file."""
    file = store.describe(name)
    hint = _RECOMPUTE if check == CHECKPOINT else _RESTORE.format(verification.dataset.handle)
    damage = damage_of(store, name, check, size)
    if damage is not None:
        verification.add_finding(check, damage.message, hashed, file=file, hint=hint, cause=damage.cause)
    return damage is None


def _verify_rows(verification: Verification, hashed: HashedBlock, state: ChainState, data: DataSlice) -> None:
    """Verify the content of a slice: number and offsets of rows, logical hash."""
    from odfpy.data.slices.logical_hash import ambiguous_columns, logical_hash_of_parquet
    from odfpy.data.slices.slice import slice_stats

    store = verification.dataset.layout.data
    path = store.local_path(data.physical_hash)
    file = store.describe(data.physical_hash)
    if path is None:
        return
    try:
        stats = slice_stats(path, vocab=state.vocab)
        logical_hash = logical_hash_of_parquet(path)
    except OdfError as error:
        verification.add_finding("slice", error.message, hashed, file=file, hint=error.hint, cause=type(error))
        return
    interval = data.offset_interval
    if (stats.offset_start, stats.offset_end, stats.num_rows) != (interval.start, interval.end, interval.num_rows):
        verification.add_finding(
            "slice",
            f"The slice holds {stats.num_rows} rows with offsets {stats.offset_start} to {stats.offset_end}, the block"
            f" says {interval.num_rows} rows with offsets {interval.start} to {interval.end}",
            hashed,
            file=file,
        )
    if logical_hash == data.logical_hash:
        return
    columns = ambiguous_columns(path)
    if columns:
        message = (
            f"The logical hash cannot be checked: {', '.join(columns)} have nulls in a struct and in its members, for"
            " which the writer's hash is not a function of the data; the physical hash is right"
        )
        verification.add_finding("slice", message, hashed, file=file, severity=Severity.WARNING)
    else:
        message = f"The logical hash of the rows is {logical_hash}, the block says {data.logical_hash}"
        verification.add_finding("slice", message, hashed, file=file, cause=HashMismatch)


# --- 5. Batch results ------------------------------------------------------------------------------------------------


def _compare_with_batch(verification: Verification, batch: BatchVerifier, *, each: bool) -> None:
    for moment in moments(verification.blocks, verification.states, each=each):
        verification.report_progress("comparing with the batch result", moment.hashed.block.sequence_number)
        try:
            comparison = batch.compare(verification.dataset, moment)
        except OdfError as error:
            message = f"Cannot be compared with the batch result: {error.message}"
            verification.add_finding("batch", message, moment.hashed, hint=error.hint, cause=type(error))
            return
        if comparison is not None:
            verification.comparisons.append(comparison)
            finding = finding_of(comparison)
            verification.findings += [] if finding is None else [finding]


# --- 6. Signatures ---------------------------------------------------------------------------------------------------


def _verify_signatures(verification: Verification, storage: Storage) -> SignatureReport:
    def add_finding(error: OdfError, block: HashedBlock, file: str) -> None:
        verification.add_finding(SIGNATURE, error.message, block, file=file, hint=error.hint, cause=type(error))

    transfers = Transfers(storage)
    is_copy = False
    with suppress(OdfError):  # a damaged file of aliases has its own finding
        is_copy = bool(transfers.aliases(verification.dataset).list("pull"))
    return verify_signatures(
        verification.dataset, verification.blocks, transfers.required if is_copy else None, add_finding
    )
