"""`odf reset`: move the head back to a block, and drop later blocks from the history."""

from __future__ import annotations

from dataclasses import dataclass, field

from odfpy.chain.new_blocks import validate
from odfpy.chain.slices import slice_files, slices_of
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.lineage.lineage import Lineage
from odfpy.coordinator.maintenance.reset_notes import reset_notes
from odfpy.coordinator.storage.references import find_block
from odfpy.coordinator.storage.results import DatasetHandle
from odfpy.coordinator.storage.rewriting import Downstream, downstream_of, who_keeps_old_history
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import IntegrityError


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetResult:
    """The result of a reset, or of its dry run.

    Attributes:
        old_head: hash of the head before the reset.
        new_head: hash of the head after the reset.
        sequence_number: sequence number of the new head.
        num_blocks: number of blocks removed from the history.
        num_records: number of rows in these blocks.
        downstream: the derivatives that must be rebuilt.
        notes: remarks for the user.
    """

    handle: DatasetHandle
    old_head: Multihash
    new_head: Multihash
    sequence_number: int
    num_blocks: int
    num_records: int
    downstream: Downstream = field(default_factory=Downstream)
    notes: tuple[str, ...] = ()

    @property
    def changes(self) -> bool:
        """True if there is anything to do."""
        return self.old_head != self.new_head


def plan_reset(storage: Storage, dataset: StoredDataset, block: str) -> ResetResult:
    """Return what a reset would do, without changes or locks.

    Args:
        storage: the workspace, to find derivatives.
        dataset: the dataset.
        block: hash of the block or a prefix of it, its sequence number, or the name of a tag or branch; blocks dropped
            by a reset or a compaction can be named by their hash as long as they exist.

    Raises:
        BlockNotFound, UsageError: the block is not in the history, or its name is ambiguous.
        DependencyCycle: the query at that block would derive the dataset from itself.
        OdfError: the chain is damaged.
    """
    blocks = {hashed.hash: hashed for hashed in dataset.chain.iter_blocks()}
    old_head = next(iter(blocks))
    wanted = find_block(dataset, block, list(blocks.values()))
    kept = dataset.chain.in_order(wanted)
    after = validate(kept)
    if after.dataset_id != dataset.handle.id:
        raise IntegrityError(f"{dataset.handle}: the block {wanted} belongs to another dataset, {after.dataset_id}")
    Lineage(storage).refuse_cycle(dataset, after)
    slice_files(dataset.layout.data, slices_of(kept))  # slices that only dropped blocks need may have been removed
    dropped = blocks.keys() - {hashed.hash for hashed in kept}
    return ResetResult(
        handle=dataset.handle,
        old_head=old_head,
        new_head=wanted,
        sequence_number=after.sequence_number,
        num_blocks=len(dropped),
        num_records=max(0, dataset.state.num_records - after.num_records),
        downstream=downstream_of(storage, dataset, dropped),
        notes=(*who_keeps_old_history(dataset, dropped), *reset_notes(dataset, dropped, kept, after)),
    )


def reset(storage: Storage, dataset: StoredDataset, to: str) -> ResetResult:
    """Move the head to a block; requires the dataset's lock. Later blocks are retained until `odf gc`.

    Args:
        storage: the workspace, to find derivatives.
        dataset: the dataset.
        to: the block; see `plan_reset`.

    Raises:
        OdfError: see `plan_reset`; nothing has changed.
    """
    plan = plan_reset(storage, dataset, to)
    if plan.changes:
        # Sign before the head moves, as in a commit: readers without a lock never see it at an unsigned block.
        dataset.sign_head(dataset.chain.block(plan.new_head))
        dataset.layout.refs.compare_and_swap(HEAD, plan.old_head, plan.new_head)
    return plan
