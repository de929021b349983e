"""The shared context of a workspace's verbs: its files, settings, engines, and transfers."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from odfpy.coordinator.storage.storage import Storage

if TYPE_CHECKING:
    from odfpy.coordinator.storage.config import Config
    from odfpy.coordinator.transfer.known_remotes import KnownRemotes
    from odfpy.coordinator.transfer.transfers import Transfers
    from odfpy.engine.registry import EngineRegistry
    from odfpy.query.service import QueryService


class WorkspaceContext:
    """The context shared by all verbs of a workspace.

    Its parts are created on first use: most commands need few of them, and start faster.

    Attributes:
        storage: the storage of the workspace.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    @cached_property
    def config(self) -> Config:
        """Return the settings: merged from this workspace, the folders above it, the user, and defaults."""
        from odfpy.coordinator.storage.config import Config
        from odfpy.coordinator.transfer.transfer_limits import apply_transfer_limits

        return apply_transfer_limits(Config.load(self.storage.root))

    @cached_property
    def engines(self) -> EngineRegistry:
        """Return the registry of engines."""
        from odfpy.coordinator.transform.engines import engine_registry

        return engine_registry(self.storage, self.config)

    @cached_property
    def remotes(self) -> KnownRemotes:
        """Return the known locations of other copies."""
        from odfpy.coordinator.transfer.known_remotes import KnownRemotes

        return KnownRemotes(self.storage)

    @cached_property
    def transfers(self) -> Transfers:
        """Return the transfers to and from other locations."""
        from odfpy.coordinator.transfer.transfers import Transfers

        return Transfers(self.storage)

    @cached_property
    def query_service(self) -> QueryService:
        """Return the service that runs SQL over the datasets, and streams the results."""
        from odfpy.coordinator.reading.read import WorkspaceResolver
        from odfpy.query.service import QueryService

        return QueryService(WorkspaceResolver(self.storage), self.engines)
