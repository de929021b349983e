"""The context of all verbs of a workspace: its files, settings, engines, and transfers."""

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
    """The context that all verbs of a workspace share.

    Its parts are made when they are first needed: most commands need few of them, and start the quicker.

    Attributes:
        storage: the workspace's files.
    """

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    @cached_property
    def config(self) -> Config:
        """Settings, from this workspace, the folders above it, the user, and defaults."""
        from odfpy.coordinator.storage.config import Config
        from odfpy.coordinator.transfer.transfer_limits import apply_transfer_limits

        return apply_transfer_limits(Config.load(self.storage.root))

    @cached_property
    def engines(self) -> EngineRegistry:
        """Return the engines that queries can name."""
        from odfpy.coordinator.transform.engines import engine_registry

        return engine_registry(self.storage, self.config)

    @cached_property
    def remotes(self) -> KnownRemotes:
        """Return the known locations of other copies."""
        from odfpy.coordinator.transfer.known_remotes import KnownRemotes

        return KnownRemotes(self.storage)

    @cached_property
    def transfers(self) -> Transfers:
        """Return the transfers to other locations."""
        from odfpy.coordinator.transfer.transfers import Transfers

        return Transfers(self.storage)

    @cached_property
    def query_service(self) -> QueryService:
        """Return the service that answers SQL over the datasets, in pieces as they are made."""
        from odfpy.coordinator.reading.read import WorkspaceResolver
        from odfpy.query.service import QueryService

        return QueryService(WorkspaceResolver(self.storage), self.engines)
