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
        """Return the branches or tags of a dataset, in the order of their names."""
        from odfpy.coordinator.storage.references import references

        return list(references(self._storage.get(ref), kind))

    def create(self, ref: str, kind: ReferenceKind, name: str, block: str | None = None) -> Reference:
        """Make a branch or tag.

        Args:
            ref: the dataset.
            kind: branch or tag.
            name: its name.
            block: where: a tag, branch, number or hash; the head by default.

        Raises:
            AlreadyExists: the name is taken, at another block.
            BlockNotFound, InvalidValue: no such block, or not a name.
        """
        from odfpy.coordinator.storage.references import create

        with self._storage.get(ref).writing() as dataset:
            return create(dataset, kind, name, block)

    def delete(self, ref: str, kind: ReferenceKind, name: str) -> Multihash:
        """Remove a branch or tag, and return its block; unreachable blocks are kept until `odf gc`.

        Args:
            ref: the dataset.
            kind: branch or tag.
            name: its name.

        Raises:
            NoSuchReference: there is none; the message has a suggestion.
        """
        from odfpy.coordinator.storage.references import delete

        with self._storage.get(ref).writing() as dataset:
            return delete(dataset, kind, name)

    def diff(self, ref: str, branch: str) -> BranchDiff:
        """Return what a branch would add to the head of a dataset.

        Raises:
            NoSuchReference: there is no such branch; the message has a suggestion.
        """
        from odfpy.coordinator.branches.diff import diff

        return diff(self._storage.get(ref), branch)

    def staged_rows(self, found: BranchDiff, limit: int) -> pa.Table:
        """Return the first rows that a branch would add."""
        from odfpy.coordinator.branches.diff import staged_rows

        return staged_rows(self._storage.get(found.handle.id), found, limit)

    def merge(self, ref: str, branch: str, *, fast_forward_only: bool = False) -> MergeResult:
        """Merge a branch, then delete it; `delete` drops it instead.

        Args:
            ref: the dataset.
            branch: the branch to merge.
            fast_forward_only: refuse where the head has moved on, and events would have to be applied again.

        Raises:
            MergeConflict: its changes cannot be applied; nothing was changed.
            NoSuchReference: there is no such branch; the message has a suggestion.
        """
        from odfpy.coordinator.branches.merge import merge

        with self._storage.get(ref).writing() as dataset:
            return merge(self._storage, dataset, branch, fast_forward_only=fast_forward_only)
