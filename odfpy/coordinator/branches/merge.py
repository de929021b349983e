"""Merging of a branch into the head.

    1. where branch and head part        the last block of both
    2. compare the changes of each       blocks; rows; by key, which are new, changed or gone
    3. fast-forward                      if the head has no changes of its own, it moves to the end of the branch
    4. otherwise apply the events again  on top of the head, if the changes of both sides do not conflict

A branch that is applied again is first rebased as a whole onto the head; then the head moves to its end. If that is
interrupted, running the command again completes it, and adds no row twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.chain.new_blocks import validate
from odfpy.chain.references import ReferenceKind
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.branches.diff import diff
from odfpy.coordinator.branches.rebase import MergeConflict, rebase
from odfpy.coordinator.lineage.lineage import Lineage
from odfpy.coordinator.storage.references import delete
from odfpy.coordinator.storage.results import DatasetHandle
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.data.multihash import Multihash


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """The outcome of a merge.

    Attributes:
        old_head: the head before.
        new_head: the head after.
        num_blocks: number of blocks that the head has gained.
        num_records: number of their rows.
        applied_again: whether the events of the branch were applied again in new blocks, since the head had moved.
        notes: remarks for the user.
    """

    handle: DatasetHandle
    branch: str
    old_head: Multihash
    new_head: Multihash
    num_blocks: int
    num_records: int
    applied_again: bool
    notes: tuple[str, ...] = ()


def merge(storage: Storage, dataset: StoredDataset, branch: str, *, fast_forward_only: bool = False) -> MergeResult:
    """Merge a branch into the head, and delete it; the caller holds the dataset's lock.

    Args:
        storage: the workspace.
        dataset: the dataset, seen from its head.
        branch: name of the branch.
        fast_forward_only: whether to refuse a merge that has to apply events again.

    Raises:
        MergeConflict: events cannot be applied again; nothing has changed.
        DependencyCycle: by a query on the branch, the dataset would be derived from itself; the head has not moved.
        NoSuchReference: there is no such branch; with a suggestion.
        OdfError: something is damaged; nothing has changed.
    """
    branch_diff = diff(dataset, branch)
    applied_again = bool(branch_diff.blocks and branch_diff.head_blocks)
    if applied_again:
        if fast_forward_only:
            raise MergeConflict(
                f"{dataset.handle}: the head has moved since {branch} began",
                hint="Omit --ff-only to rebase the branch on the head.",
            )
        rebase(dataset, branch_diff)
        branch_diff = diff(dataset, branch)
    if branch_diff.blocks:
        after = validate(branch_diff.blocks, dataset.chain.state(branch_diff.base))
        Lineage(storage).refuse_cycle(dataset, after)
        dataset.sign_head(branch_diff.blocks[-1])  # before the head moves, so that it is never unsigned
        dataset.layout.refs.compare_and_swap(HEAD, branch_diff.head, branch_diff.tip)
    # Last: until the head has moved, only the branch protects its blocks from `odf gc`.
    delete(dataset, ReferenceKind.BRANCH, branch)
    return MergeResult(
        handle=dataset.handle,
        branch=branch,
        old_head=branch_diff.head,
        new_head=branch_diff.tip if branch_diff.blocks else branch_diff.head,
        num_blocks=len(branch_diff.blocks),
        num_records=branch_diff.num_records,
        applied_again=applied_again,
        notes=dataset.workspace_folder.signing.remarks(),
    )
