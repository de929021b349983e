"""`odf reset`: back to a block, as if what came after it had never been."""

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
        old_head: the head before.
        new_head: the head after.
        sequence_number: of the new head.
        num_blocks: blocks that leave the history.
        num_records: rows in them.
        downstream: who has to be made again.
        notes: remarks for the person.
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
    """Return what a reset would do; nothing is changed or locked.

    Args:
        storage: the workspace, which has what is derived from it.
        dataset: which one.
        block: its hash or the beginning of that, its sequence number, or the name of a tag or branch; also the hash of
            one that a reset or a compaction has left, as long as it is there.

    Raises:
        BlockNotFound, UsageError: it is not in the history, or several are meant.
        DependencyCycle: by the query that was in force then, the dataset would be derived from itself.
        OdfError: the chain is damaged.
    """
    blocks = {hashed.hash: hashed for hashed in dataset.chain.iter_blocks()}
    old_head = next(iter(blocks))
    wanted = find_block(dataset, block, list(blocks.values()))
    kept = dataset.chain.in_order(wanted)
    after = validate(kept)
    if after.dataset_id != dataset.handle.id:
        raise IntegrityError(f"{dataset.handle}: the block {wanted} is one of another dataset, {after.dataset_id}")
    Lineage(storage).refuse_circle(dataset, after)
    slice_files(dataset.layout.data, slices_of(kept))  # they may be gone, unless it is in the history of the head
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
    """Move the head to a block; the caller holds the dataset's lock. What came after it stays until `odf gc`.

    Args:
        storage: the workspace, which has what is derived from it.
        dataset: the dataset.
        to: as for the plan.

    Raises:
        OdfError: as for the plan; nothing has changed.
    """
    plan = plan_reset(storage, dataset, to)
    if plan.changes:
        # Before the head moves, as in a commit: readers without a lock never see it at the block without a signature.
        dataset.sign_head(dataset.chain.block(plan.new_head))
        dataset.layout.refs.compare_and_swap(HEAD, plan.old_head, plan.new_head)
    return plan
