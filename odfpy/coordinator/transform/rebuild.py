"""Update and rebuild of derivatives: if an input has diverged, either report it, or rebuild the derivative.

A rebuild drops the runs of a derivative, and retains everything else: id, queries, schema, description. The first run
of the new history is done before the head moves, so that an error or a crash leaves the derivative unchanged.
"""

from __future__ import annotations

from dataclasses import replace

from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.storage.rewriting import downstream_of, who_keeps_old_history, without_data
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.coordinator.transform.intervals import InputDiverged
from odfpy.coordinator.transform.run import EngineFor, transform_dataset


def update_derivative(storage: Storage, dataset: StoredDataset, engine_for: EngineFor, *, reset: bool) -> PullResult:
    """Run the query of a derivative over new input data; requires the dataset's lock.

    Args:
        storage: the workspace.
        dataset: the derivative.
        engine_for: returns the engine of a query.
        reset: whether to rebuild the derivative if an input has diverged.

    Raises:
        InputDiverged: an input has diverged, and `reset` is false.
        OdfError: nothing was committed.
    """
    try:
        return transform_dataset(storage, dataset, engine_for)
    except InputDiverged as error:
        if not reset:
            raise
        return _rebuild(storage, dataset, engine_for, error)


def _rebuild(storage: Storage, dataset: StoredDataset, engine_for: EngineFor, reason: InputDiverged) -> PullResult:
    old_head = dataset.state.head
    rewriting = without_data(dataset)
    # The run follows these blocks, and may read them. If it fails, they are unreachable, and `odf gc` removes them with
    # their signatures.
    rewriting.store()
    dataset.sign_blocks(rewriting.new)
    result = transform_dataset(storage, dataset, engine_for, state=rewriting.state, replacing=rewriting.old_head)
    if result.outcome is not PullOutcome.UPDATED:
        rewriting.commit()
    after = dataset.reloaded()
    history = {hashed.hash for hashed in after.chain.iter_blocks()}
    dropped = {hashed.hash for hashed in dataset.chain.iter_blocks(rewriting.old_head)} - history
    diverged = ", ".join(map(str, downstream_of(storage, after, dropped).diverged))
    notes = (f"recomputed: {reason.message}", *who_keeps_old_history(after, dropped))
    return replace(
        result,
        outcome=PullOutcome.UPDATED,
        old_head=old_head,
        new_head=after.state.head,
        num_blocks=after.state.sequence_number - rewriting.new.base.sequence_number,
        num_records=after.state.num_records,
        watermark=after.state.watermark,
        notes=(*result.notes, *notes, *([f"to be recomputed, too: {diverged}"] if diverged else [])),
    )
