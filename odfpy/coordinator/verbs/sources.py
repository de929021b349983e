"""`Workspace.sources`: the actions of sources on this machine, and their approval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from odfpy.coordinator.verbs.arguments import with_checked_arguments
from odfpy.coordinator.verbs.context import WorkspaceContext
from odfpy.data.scalars import count_given
from odfpy.dataset.names import all_of

if TYPE_CHECKING:
    from odfpy.coordinator.ingest.source_actions import KnownSource
    from odfpy.coordinator.ingest.source_report import SourceReport


@with_checked_arguments
class Sources:
    """The sources of a workspace's root datasets."""

    def __init__(self, context: WorkspaceContext) -> None:
        self._context = context
        self._storage = context.storage

    def all(self, refs: str | Sequence[str] = ()) -> list[KnownSource]:
        """Return the sources of datasets, their actions on this machine, and whether they are approved.

        Args:
            refs: names, ids and patterns; all datasets by default.

        Raises:
            UsageError, NotFound: a reference is invalid.
        """
        from odfpy.coordinator.ingest.source_actions import known_sources

        refs = all_of(refs)
        datasets = self._storage.match(refs) if refs else self._storage.scan()[0]
        return [known for dataset in datasets for known in known_sources(dataset)]

    def report(self, ref: str, *, num_commits: int = 5) -> SourceReport:
        """Return the sources of one dataset with their states, and the last data commits, newest first.

        Raises:
            UsageError: the dataset is derivative.
        """
        from odfpy.coordinator.ingest.source_report import source_report

        num_commits = count_given(num_commits, "num_commits")
        dataset = self._storage.get(ref)
        aliases = self._context.remotes.aliases(dataset).shown("pull")
        return source_report(dataset, num_commits, copied_from=next(iter(aliases), None))

    def trust(self, ref: str) -> list[KnownSource]:
        """Approve the current sources of a dataset; changed sources need a new approval.

        Raises:
            NotFound: the dataset does not exist.
        """
        with self._storage.editing():
            dataset = self._storage.get(ref)
            self._storage.approvals.approve(dataset.handle.id, dataset.state.sources)
        return self.all([str(dataset.handle.id)])

    def untrust(self, ref: str) -> bool:
        """Withdraw the approval of a dataset's sources, and return whether there was one; see `trust` for errors."""
        with self._storage.editing():
            return self._storage.approvals.withdraw(self._storage.get(ref).handle.id)
