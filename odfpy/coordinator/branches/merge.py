"""Merge of a branch into the head.

    1. find the last common block
    2. compare the changes of both sides  blocks; rows; new, changed and removed keys
    3. fast-forward                       if the head has no changes of its own, it moves to the end of the branch
    4. otherwise rebase                   apply the events of the branch on top of the head, if there is no conflict

A rebase moves the branch first; then the head moves to the end of the branch. If that is interrupted, running the
command again completes it, and adds no row twice.
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
        old_head: hash of the head before the merge.
        new_head: hash of the head after the merge.
        num_blocks: number of blocks added to the head.
        num_records: number of rows in these blocks.
        applied_again: whether the branch was rebased, since the head had moved.
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
        dataset: the dataset, opened at its head.
        branch: name of the branch.
        fast_forward_only: whether to refuse a merge that needs a rebase.

    Raises:
        MergeConflict: the branch cannot be rebased; nothing has changed.
        DependencyCycle: a query on the branch would derive the dataset from itself; the head has not moved.
        NoSuchReference: the branch does not exist; the message has a suggestion.
        OdfError: a file is damaged; nothing has changed.
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
