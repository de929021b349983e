"""`odf reset`: back to a block, as if what came after it had never been."""

from __future__ import annotations

from dataclasses import dataclass, field

from odfpy.chain.block import HashedBlock
from odfpy.chain.metadata_chain import validate
from odfpy.chain.ref_store import HEAD, is_name
from odfpy.coordinator.results import DatasetHandle
from odfpy.coordinator.rewriting import Downstream, downstream_of, told_elsewhere
from odfpy.coordinator.slices import slice_paths, slices_of
from odfpy.coordinator.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import IntegrityError, InvalidValue, NotFound, UsageError, did_you_mean


class BlockNotFound(NotFound, code="E641"):
    """A dataset has no such block in its history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetResult:
    """What a reset does, or has done.

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
        """Whether there is anything to do."""
        return self.old_head != self.new_head


def plan_reset(dataset: StoredDataset, block: str) -> ResetResult:
    """What a reset would do; nothing is changed or locked.

    Args:
        dataset: which one.
        block: its hash or the beginning of that, its sequence number, or the name of a tag or branch; also the hash of
            one that a reset or a compaction has left, as long as it is there.

    Raises:
        BlockNotFound, UsageError: it is not in the history, or several are meant.
        OdfError: the chain is damaged.
    """
    blocks = {hashed.hash: hashed for hashed in dataset.chain.iter_blocks()}
    old_head = next(iter(blocks))
    wanted = _named(dataset, block) or _in_history(dataset, list(blocks.values()), block)
    kept = dataset.chain.in_order(wanted)
    after = validate(kept)
    if after.dataset_id != dataset.handle.id:
        raise IntegrityError(f"{dataset.handle}: the block {wanted} is one of another dataset, {after.dataset_id}")
    slice_paths(dataset.layout.data, slices_of(kept))  # they may be gone, unless it is in the history of the head
    dropped = blocks.keys() - {hashed.hash for hashed in kept}
    return ResetResult(
        handle=dataset.handle,
        old_head=old_head,
        new_head=wanted,
        sequence_number=after.sequence_number,
        num_blocks=len(dropped),
        num_records=max(0, dataset.state.num_records - after.num_records),
        downstream=downstream_of(dataset.storage, dataset, dropped),
        notes=told_elsewhere(dataset),
    )


def reset(dataset: StoredDataset, block: str) -> ResetResult:
    """Move the head to a block; the caller holds the dataset's lock. What came after it stays until `odf gc`.

    Raises:
        OdfError: as for the plan; nothing has changed.
    """
    plan = plan_reset(dataset, block)
    if plan.changes:
        dataset.layout.refs.compare_and_swap(HEAD, plan.old_head, plan.new_head)
    return plan


def _named(dataset: StoredDataset, text: str) -> Multihash | None:
    """The block that a tag or branch names."""
    refs = dataset.layout.refs
    return refs.get(text) if is_name(text) and text in refs.names() else None


def _in_history(dataset: StoredDataset, blocks: list[HashedBlock], text: str) -> Multihash:
    last = blocks[0].block.sequence_number
    if text.isdecimal() and len(text) < len(str(blocks[0].hash)):
        found = [one for one in blocks if one.block.sequence_number == int(text)]
    else:
        found = [one for one in blocks if str(one.hash).startswith(text)] if _is_hash(text) else []
    if len(found) == 1:
        return found[0].hash
    if len(text) == len(str(blocks[0].hash)) and _is_hash(text) and Multihash.parse(text) in dataset.layout.blocks:
        return Multihash.parse(text)  # of a history that was left, and not removed yet
    if found:
        raise UsageError(f"{len(found)} blocks of {dataset.handle} begin with {text}", hint="Write more of the hash.")
    names = [name for name in dataset.layout.refs.names() if name != HEAD]
    about = f"Its blocks have the numbers 0 to {last}; `odf log {dataset.handle}` shows them."
    raise BlockNotFound(
        f"{dataset.handle} has no block {text!r} in its history", hint=did_you_mean(text, names, otherwise=about)
    )


_SHORTEST = len("f1620") + 4
"""Letters of a hash that mean a block: `f1620` is how all of them begin."""


def _is_hash(text: str) -> bool:
    try:
        Multihash.parse(text)
    except InvalidValue:
        return text.startswith("f16") and len(text) >= _SHORTEST
    return True
