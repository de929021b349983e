"""The verbs of a workspace, by subject.

Each subject is imported on first use: a command needs only one or two of them.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from odfpy.coordinator.storage.storage import Storage
from odfpy.coordinator.verbs.arguments import with_checked_arguments
from odfpy.coordinator.verbs.context import WorkspaceContext

if TYPE_CHECKING:
    from odfpy.coordinator.verbs.branches import Branches
    from odfpy.coordinator.verbs.datasets import DatasetRegistry
    from odfpy.coordinator.verbs.engines import Engines
    from odfpy.coordinator.verbs.graph import Graph
    from odfpy.coordinator.verbs.maintenance import Maintenance
    from odfpy.coordinator.verbs.queries import Queries
    from odfpy.coordinator.verbs.remotes import Remotes
    from odfpy.coordinator.verbs.sources import Sources
    from odfpy.coordinator.verbs.updates import Updates


@with_checked_arguments
class VerbGroups:
    """The verbs of a workspace, with an attribute for each subject.

    Attributes:
        storage: the storage of the workspace.
    """

    def __init__(self, storage: Storage) -> None:
        self._context = WorkspaceContext(storage)
        self.storage = storage

    @cached_property
    def datasets(self) -> DatasetRegistry:
        """List, show, create, rename and delete datasets."""
        from odfpy.coordinator.verbs.datasets import DatasetRegistry

        return DatasetRegistry(self._context)

    @cached_property
    def branches(self) -> Branches:
        """Branches and tags of datasets, and staged changes."""
        from odfpy.coordinator.verbs.branches import Branches

        return Branches(self._context)

    @cached_property
    def sources(self) -> Sources:
        """Actions of sources on this machine, and their approval."""
        from odfpy.coordinator.verbs.sources import Sources

        return Sources(self._context)

    @cached_property
    def updates(self) -> Updates:
        """Pulls, ingests, watched folders, and watermarks."""
        from odfpy.coordinator.verbs.updates import Updates

        return Updates(self._context)

    @cached_property
    def remotes(self) -> Remotes:
        """Copies of datasets in other locations, and named repositories."""
        from odfpy.coordinator.verbs.remotes import Remotes

        return Remotes(self._context)

    @cached_property
    def queries(self) -> Queries:
        """Rows, query results, exports, comparisons, and provenance of rows."""
        from odfpy.coordinator.verbs.queries import Queries

        return Queries(self._context)

    @cached_property
    def graph(self) -> Graph:
        """The lineage of datasets, and inputs that hold back watermarks."""
        from odfpy.coordinator.verbs.graph import Graph

        return Graph(self._context)

    @cached_property
    def maintenance(self) -> Maintenance:
        """Verification, clean-up, compaction and reset."""
        from odfpy.coordinator.verbs.maintenance import Maintenance

        return Maintenance(self._context)

    @cached_property
    def engines(self) -> Engines:
        """The engines that run queries."""
        from odfpy.coordinator.verbs.engines import Engines

        return Engines(self._context)
