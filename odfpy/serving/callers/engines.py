"""Engines of a server, by whom they answer: SQL of strangers reaches Spark in a whole sandbox only.

A stranger is whoever shows no token, or one that is not good for everything in the workspace whose engine answers.
DataFusion answers in processes of its own, and has nothing that reaches out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odfpy.coordinator.transform.engines import why_unconfined
from odfpy.serving.callers.tokens import Scope
from odfpy.settings.sections import EngineSection

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace
    from odfpy.engine.registry import EngineRegistry
    from odfpy.serving.callers.access import Caller

UNCONFINED: Final = "engine.serveUnconfined"
"""The setting by which an operator lets strangers' queries into an engine that is not confined."""


class ServedEngines:
    """The engines of one workspace, for all callers of a server."""

    def __init__(self, workspace: Workspace, memory: int, seconds: float) -> None:
        """Prepare them; none is started.

        Args:
            workspace: whose engines answer.
            memory: bytes that a query that is not for Spark may take.
            seconds: how long it may take.
        """
        self._storage = workspace.storage
        self._all = workspace.engines.registry.with_limits(memory, seconds)
        self._confined = (
            self._all if workspace.config.section(EngineSection).serve_unconfined else self._all.sandboxed_only()
        )

    def get(self, caller: Caller) -> EngineRegistry:
        """Those that answer a caller."""
        return self._all if caller.may(Scope.ADMIN, self._storage) else self._confined


def warning(workspace: Workspace) -> str | None:
    """Return what an operator should know of strangers' queries for Spark before they serve, None if there is nothing.

    It is found out by building a sandbox, in a process of its own.
    """
    why = why_unconfined(workspace.storage, workspace.config)
    if why is None:
        return None
    if workspace.config.section(EngineSection).serve_unconfined:
        return f"queries of strangers for Spark run without a whole sandbox ({why}), as {UNCONFINED} says"
    return f"queries for Spark need a token of the scope admin: the engine is not fully sandboxed ({why})"
