"""Readers: the data visible to the caller behind an agent, by the access rules of `odf serve`.

Over HTTP, each request has its caller. Over stdio, the caller is the local user, or the holder of a token. A model
writes the SQL, possibly influenced by data that it has read. So for all callers, SQL runs in Spark only in a full
sandbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from odfpy.coordinator.storage.keys import answer_key
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId, KeyPair
from odfpy.errors import DatasetNotFound
from odfpy.query.service import QueryService
from odfpy.serving.callers.access import Caller
from odfpy.serving.callers.resolver import CallerResolver
from odfpy.serving.callers.tokens import AccessToken, Scope
from odfpy.serving.rest.catalog import Catalog, CatalogEntry, entry_of

if TYPE_CHECKING:
    from odfpy.agents.proofs import ProofStore
    from odfpy.coordinator.storage.storage import StoredDataset
    from odfpy.coordinator.workspace import Workspace
    from odfpy.dataset.names import DatasetAlias, DatasetPattern
    from odfpy.engine.registry import EngineRegistry
    from odfpy.query.wire.response import ResponseLimits
    from odfpy.serving.callers.engines import ServedEngines
    from odfpy.serving.callers.reachable_objects import ReachableObjectsCache
    from odfpy.serving.callers.registry import ServedRegistry


@dataclass(frozen=True, slots=True)
class LocalUser(Caller):
    """The local user who started the server, who may read everything in the workspace without a token."""

    def is_still_known(self) -> bool:
        """Return True: the user is valid while the process runs."""
        return True


def local_user(workspace: Workspace) -> Caller:
    """Return a caller that may read everything in a workspace, and change nothing."""
    return LocalUser(AccessToken("keyboard", Scope.READ, Timestamp.now()), workspace.storage)


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The datasets served to agents, for any caller.

    Attributes:
        workspaces: the workspaces; the key and engines of the first one are used.
        registry: the datasets by name.
        reaches: the blocks reachable from references.
        catalog: the datasets for lists.
        engines: the engines by caller.
        limits: limits on the answer to a query, before it is truncated for a model.
        proofs: the store of proofs.
        only: names and patterns of the visible datasets; all if empty.
    """

    workspaces: Sequence[Workspace]
    registry: ServedRegistry
    reaches: ReachableObjectsCache
    catalog: Catalog
    engines: ServedEngines
    limits: ResponseLimits
    proofs: ProofStore
    only: tuple[DatasetPattern | DatasetAlias, ...] = ()

    def reader(self, caller: Caller, url: str | None = None, address: str | None = None) -> Reader:
        """Return the reader of a caller.

        Args:
            caller: the caller.
            url: the server's URL as used by the caller, None over stdio.
            address: network address of the caller.
        """
        return Reader(self, caller, CallerResolver(self.registry, self.reaches, caller, self.only), url, address)


@dataclass(frozen=True, slots=True)
class Reader:
    """The datasets visible to a caller.

    Attributes:
        served: the served workspace.
        caller: the caller.
        resolver: resolves datasets that the caller may read; other datasets do not exist for it.
        url: the server's URL as used by the caller, None over stdio.
        address: network address of the caller, None over stdio.
        engines: engines for SQL by a model, which are the same for all callers.
    """

    served: Served
    caller: Caller
    resolver: CallerResolver
    url: str | None = None
    address: str | None = None
    engines: EngineRegistry = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "engines", self.served.engines.get(Caller()))

    @property
    def service(self) -> QueryService:
        """The query service over the datasets that the caller may read."""
        return QueryService(self.resolver, self.engines)

    @property
    def owner(self) -> str:
        """The owner of the caller's proofs; tokens of other workspaces with the same name are different owners."""
        caller = self.caller
        folder = caller.granting or caller.storage
        if caller.token is None or folder is None:
            return ""
        return f"{folder.root}\0{'token' if caller.granting is None else 'principal'}\0{caller.token.name}"

    def entries(self) -> list[CatalogEntry]:
        """Return all datasets that the caller may read, sorted by name."""
        visible = self.served.catalog.visible_to(self.caller)
        return [entry for entry in visible if self.resolver.is_meant(entry.dataset)]

    def dataset(self, name: str) -> StoredDataset:
        """Return the dataset with a name or id, optionally as at a block: `NAME@BLOCK`.

        Raises:
            DatasetNotFound: the dataset does not exist for the caller.
        """
        return self.resolver.find(name)

    def entry(self, dataset: StoredDataset) -> CatalogEntry:
        """Return the catalog entry of a dataset.

        Raises:
            DatasetNotFound: the dataset is empty.
        """
        found = entry_of(dataset)
        if found is None:
            raise DatasetNotFound(f"{dataset.handle} has no blocks")
        return found

    def name_of(self, dataset_id: DatasetId) -> str | None:
        """Return the name of a dataset, None if it is not in the workspace, or the caller may not read it."""
        try:
            return str(self.resolver.find(dataset_id).handle)
        except DatasetNotFound:
            return None

    def workspace_of(self, dataset: StoredDataset) -> Workspace:
        """Return the workspace of a dataset."""
        root = dataset.workspace_folder.root
        return next(workspace for workspace in self.served.workspaces if workspace.root == root)

    def engines_of(self, workspace: Workspace) -> EngineRegistry:
        """Return the engines that replay queries of datasets; over stdio those of the workspace.

        Args:
            workspace: the workspace of the dataset.
        """
        return workspace.engines.registry if self.url is None else self.engines

    def key(self) -> KeyPair:
        """Return the key that signs answers.

        Raises:
            UnusableKey: the key can neither be read nor created.
        """
        return answer_key(self.served.workspaces[0].root)

    def may_write(self) -> bool:
        """Return whether the caller's token may change datasets in any workspace."""
        return any(self.caller.may(Scope.WRITE, workspace.storage) for workspace in self.served.workspaces)
