"""Replays of transforms: run recorded transforms again over the same inputs, and compare the rows."""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import ExecuteTransform, SetTransform
from odfpy.chain.state import ChainState
from odfpy.coordinator.maintenance.reference_order import in_order_of_names, order_differences
from odfpy.coordinator.maintenance.report import Severity
from odfpy.coordinator.maintenance.verification import Verification
from odfpy.coordinator.storage.storage import Storage
from odfpy.coordinator.transform.arrangements import move
from odfpy.coordinator.transform.commit import watermark_after
from odfpy.coordinator.transform.intervals import InputDiverged, InputInterval, recorded_intervals
from odfpy.coordinator.transform.run import (
    OUR_ENGINES,
    EngineFor,
    make_request,
    require_transform,
    run,
)
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.engine.contract import TransformRequest, TransformResponseSuccess
from odfpy.engine.registry import Engine
from odfpy.errors import OdfError, ReplayMismatch
from odfpy.state.run_names import listed_runs
from odfpy.values import dataclass

_OTHER_ENGINE = (
    "Verify with that version of odfpy and Spark: other versions may return different rows for the same query."
)
_BY_NAME = (
    ", which is how the reference's engine reads several of them at once: the rows are right, but not in the order in"
    " which they came, so a correction may stand before its row"
)
_DERIVE_ANEW = (
    "Nothing is damaged. To get the rows in their original order, derive a dataset with the same query with odfpy."
)

_DIVERGED = (
    "After `odf gc` of {source} it can no longer be verified, and pulls fail. Recompute it from the first row:"
    " `odf pull {name} --reset-derivatives-on-diverged-input`."
)


@dataclass(frozen=True, slots=True)
class ReplayState:
    """State that a replay passes to the next one; it is independent of the dataset and its cache.

    Attributes:
        checkpoint: the checkpoint file, None for none.
        arrangement: the arrangement folder, None for none.
    """

    checkpoint: Path | None = None
    arrangement: Path | None = None

    def replaced(self, checkpoint: Path, arrangement: Path, folder: Path) -> ReplayState:
        """Move the state of a replay into a folder, replacing the state of the previous replay.

        Args:
            checkpoint: path of the file that the engine may have written.
            arrangement: path of the folder that the engine may have written.
            folder: the folder for the state.
        """
        new_checkpoint = checkpoint.replace(folder / "checkpoint") if checkpoint.is_file() else None
        place, incoming = folder / "arrangement", folder / "coming"
        new_arrangement = None
        with suppress(OSError):  # the arrangement is a cache: without it, the next replay reads the history
            if listed_runs(arrangement) is not None:
                move(arrangement, self.arrangement, incoming)
                shutil.rmtree(place, ignore_errors=True)
                new_arrangement = incoming.rename(place)
        return ReplayState(new_checkpoint, new_arrangement)


def replay_all(verification: Verification, storage: Storage, engine_for: EngineFor, *, from_start: bool) -> None:
    """Replay all transforms, each from the checkpoint before it, or all from the start without recorded checkpoints.

    Args:
        verification: the verification, to which findings are added.
        storage: the workspace.
        engine_for: returns the engine of a transform.
        from_start: whether to ignore recorded checkpoints.
    """
    state = ChainState()
    dataset = verification.dataset
    with storage.scratch() as folder:
        replayed = ReplayState()
        for number, (hashed, after) in enumerate(zip(verification.blocks, verification.states, strict=True)):
            event = hashed.block.event
            if isinstance(event, ExecuteTransform):
                verification.report_progress("replaying", number)
                verification.replayed += 1
                checkpoint = replayed.checkpoint if from_start else _recorded_checkpoint(verification, state)
                try:
                    set_transform = require_transform(dataset, state)
                    inputs = recorded_intervals(storage, dataset, set_transform, event)
                    replay = _Replay(verification, hashed, event, state, set_transform, inputs)
                    with storage.scratch() as scratch:
                        previous = ReplayState(checkpoint, replayed.arrangement)
                        replayed = replay.run(engine_for, previous, scratch, folder)
                except OdfError as error:
                    message = f"Cannot be replayed: {error.message}"
                    verification.add_finding("replay", message, hashed, hint=error.hint, cause=type(error))
                    return
            state = after


def remark_on_histories(verification: Verification, storage: Storage) -> None:
    """Add warnings about inputs whose history no longer has the blocks that a derivative was computed from.

    A replay can still read these blocks until `odf gc` removes them, so it does not detect that.

    Args:
        verification: the verification, to which findings are added.
        storage: the workspace.
    """
    for covered in verification.states[-1].query_inputs:
        last = covered.last_block_hash
        with suppress(OdfError):  # missing or damaged inputs are reported by the replay and by their own verification
            source = storage.get(covered.dataset_id)
            if last is not None and last in source.layout.blocks and source.number_in_history(last) is None:
                message = f"Computed from blocks that the history of {source.handle} no longer has (up to {last})"
                hint = _DIVERGED.format(source=source.handle, name=verification.dataset.handle)
                verification.add_finding("lineage", message, hint=hint, severity=Severity.WARNING, cause=InputDiverged)


def _recorded_checkpoint(verification: Verification, state: ChainState) -> Path | None:
    recorded = state.checkpoint
    if recorded is None or recorded.physical_hash in verification.unusable_checkpoints:
        return None
    return verification.dataset.layout.checkpoints.local_path(recorded.physical_hash)


@dataclass(frozen=True, slots=True)
class _Replay:
    """The replay of one transform.

    Attributes:
        verification: the verification, to which findings are added.
        hashed: the block of the transform.
        event: its event.
        before: the state of the chain before the block.
        set_transform: the transform at that block.
        inputs: the intervals of the inputs that the transform has processed.
    """

    verification: Verification
    hashed: HashedBlock
    event: ExecuteTransform
    before: ChainState
    set_transform: SetTransform
    inputs: list[InputInterval]

    def run(self, engine_for: EngineFor, previous: ReplayState, scratch: Path, folder: Path) -> ReplayState:
        """Run the transform again, and compare its result; return the state for the next replay.

        Args:
            engine_for: returns the engine of a transform.
            previous: the state of the previous replay.
            scratch: a folder for the files of this replay.
            folder: the folder for the state of the engine.
        """
        dataset, system_time = self.verification.dataset, self.hashed.block.system_time
        request = make_request(
            dataset, self.set_transform, self.before, self.inputs, system_time, scratch, previous.checkpoint
        )
        arrangement = scratch / "arrangement"
        request = replace(
            request,
            prev_arrangement_path=str(previous.arrangement) if previous.arrangement else None,
            new_arrangement_path=str(arrangement),
        )
        engine = engine_for(self.set_transform.transform)
        response = run(engine, request, self.inputs, dataset, self.before)
        versions = _compare_versions(self.set_transform, engine.version)
        if not self._has_recorded_rows(response) and not self._is_reproducible_by_name(engine, request):
            self._note_other_rows(response, versions)
        elif message := _compare_watermarks(self.set_transform, self.before, response, self.event.new_watermark):
            self._note_mismatch(message + versions, versions)
        return previous.replaced(Path(request.new_checkpoint_path), arrangement, folder)

    @property
    def _recorded(self) -> Multihash | None:
        return self.event.new_data.logical_hash if self.event.new_data else None

    def _has_recorded_rows(self, response: TransformResponseSuccess) -> bool:
        return _logical_hash(response) == self._recorded

    def _is_reproducible_by_name(self, engine: Engine, request: TransformRequest) -> bool:
        """Run the transform with slices in the order of their names; return whether that gives the recorded rows."""
        by_name = in_order_of_names(self.set_transform.transform, request)
        if by_name is None or not self._has_recorded_rows(
            run(engine, by_name, self.inputs, self.verification.dataset, self.before)
        ):
            return False
        message = f"Reproducible with the slices of {order_differences(request, by_name)} in the order of their names"
        self.verification.add_finding(
            "replay", message + _BY_NAME, self.hashed, hint=_DERIVE_ANEW, severity=Severity.WARNING
        )
        return True

    def _note_other_rows(self, response: TransformResponseSuccess, versions: str) -> None:
        replayed = _logical_hash(response) or "no rows"
        path = Path(response.slices[0].path) if response.slices else None
        message = f"Not reproducible: the replay gives {replayed}, the block says {self._recorded or 'no rows'}"
        self._note_mismatch(message + _compare_rows(self.verification, self.event, path) + versions, versions)

    def _note_mismatch(self, message: str, versions: str) -> None:
        hint = _OTHER_ENGINE if versions else None
        self.verification.add_finding("replay", message, self.hashed, hint=hint, cause=ReplayMismatch)


def _compare_watermarks(
    set_transform: SetTransform, before: ChainState, response: TransformResponseSuccess, recorded: Timestamp | None
) -> str:
    """Return a remark if a commit of the replay would record another watermark than the block.

    If a query propagates no watermark, the dataset keeps its watermark. This is checked for runs of odfpy's engines.
    Other engines may advance the watermark where these do not, so their blocks are not compared.
    """
    is_ours = (set_transform.transform.version or "").startswith(OUR_ENGINES)
    computed = watermark_after(before, response)
    if computed == recorded or (response.new_watermark is None and not is_ours):
        return ""
    gives = f"the watermark {computed}" if computed else "no watermark"
    return f"The replay gives {gives}, the block says {recorded or 'none'}"


def _logical_hash(response: TransformResponseSuccess) -> Multihash | None:
    return response.slices[0].logical_hash if response.slices else None


def _compare_rows(verification: Verification, event: ExecuteTransform, replayed: Path | None) -> str:
    """Return a remark on the difference between the rows of a replay and the recorded rows."""
    if replayed is None or event.new_data is None:
        return ""
    recorded = verification.dataset.layout.data.local_path(event.new_data.physical_hash)
    if recorded is None:
        return ""
    if _rows(recorded, verification) == _rows(replayed, verification):
        return "; the rows are the same in another order"
    return "; the rows differ"


def _compare_versions(set_transform: SetTransform, version: str) -> str:
    """Return a remark if the rows were computed with another engine version."""
    recorded = set_transform.transform.version
    return f"; they were computed with {recorded}, this is {version}" if recorded not in (None, version) else ""


def _rows(path: Path, verification: Verification) -> Counter[str]:
    from odfpy.data.slices.slice import read_slice

    vocab = verification.states[-1].vocab
    table = read_slice(path, vocab=vocab)
    columns = sorted(name for name in table.column_names if name != vocab.offset_column)
    return Counter(repr(row) for batch in table.select(columns).to_batches(10_000) for row in batch.to_pylist())
