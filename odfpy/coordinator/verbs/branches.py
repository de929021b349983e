"""`Workspace.branches`: branches and tags of datasets, and staged changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfpy.coordinator.verbs.arguments import with_checked_arguments
from odfpy.coordinator.verbs.context import WorkspaceContext

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.chain.references import ReferenceKind
    from odfpy.coordinator.branches.diff import BranchDiff
    from odfpy.coordinator.branches.merge import MergeResult
    from odfpy.coordinator.storage.references import Reference
    from odfpy.data.multihash import Multihash


@with_checked_arguments
class Branches:
    """The branches and tags of a workspace's datasets."""

    def __init__(self, context: WorkspaceContext) -> None:
        self._storage = context.storage

    def all(self, ref: str, kind: ReferenceKind) -> list[Reference]:
        """Return the branches or tags of a dataset, sorted by name."""
        from odfpy.coordinator.storage.references import references

        return list(references(self._storage.get(ref), kind))

    def create(self, ref: str, kind: ReferenceKind, name: str, block: str | None = None) -> Reference:
        """Create a branch or tag.

        Args:
            ref: the dataset.
            kind: branch or tag.
            name: name of the branch or tag.
            block: the target: a tag, branch, number or hash; the head by default.

        Raises:
            AlreadyExists: the name is in use for another block.
            BlockNotFound, InvalidValue: the block does not exist, or the name is invalid.
        """
        from odfpy.coordinator.storage.references import create

        with self._storage.get(ref).writing() as dataset:
            return create(dataset, kind, name, block)

    def delete(self, ref: str, kind: ReferenceKind, name: str) -> Multihash:
        """Delete a branch or tag, and return its target; unreachable blocks remain until `odf gc`.

        Args:
            ref: the dataset.
            kind: branch or tag.
            name: name of the branch or tag.

        Raises:
            NoSuchReference: the branch or tag does not exist; the message has a suggestion.
        """
        from odfpy.coordinator.storage.references import delete

        with self._storage.get(ref).writing() as dataset:
            return delete(dataset, kind, name)

    def diff(self, ref: str, branch: str) -> BranchDiff:
        """Return the difference that a branch would add to the head of a dataset.

        Raises:
            NoSuchReference: the branch does not exist; the message has a suggestion.
        """
        from odfpy.coordinator.branches.diff import diff

        return diff(self._storage.get(ref), branch)

    def staged_rows(self, found: BranchDiff, limit: int) -> pa.Table:
        """Return the first rows that a branch would add."""
        from odfpy.coordinator.branches.diff import staged_rows

        return staged_rows(self._storage.get(found.handle.id), found, limit)

    def merge(self, ref: str, branch: str, *, fast_forward_only: bool = False) -> MergeResult:
        """Merge a branch, and delete it; use `delete` to drop it without a merge.

        Args:
            ref: the dataset.
            branch: the branch to merge.
            fast_forward_only: whether to refuse a merge that needs a rebase, since the head has moved.

        Raises:
            MergeConflict: the branch cannot be rebased; nothing has changed.
            NoSuchReference: the branch does not exist; the message has a suggestion.
        """
        from odfpy.coordinator.branches.merge import merge

        with self._storage.get(ref).writing() as dataset:
            return merge(self._storage, dataset, branch, fast_forward_only=fast_forward_only)
