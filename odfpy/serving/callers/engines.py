"""The engines of a server, chosen by caller: untrusted SQL only reaches Spark inside a complete sandbox.

A caller is untrusted if they show no token, or one that does not permit everything in the workspace whose engine runs
the query. DataFusion runs in separate processes, and has no functions that access anything outside.
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
"""The setting by which operators permit untrusted queries in an unconfined engine."""


class ServedEngines:
    """The engines of one workspace, chosen for each caller."""

    def __init__(self, workspace: Workspace, memory: int, seconds: float) -> None:
        """Prepare the engines; none is started.

        Args:
            workspace: the workspace whose engines execute queries.
            memory: maximum bytes for a query that does not need Spark.
            seconds: time limit of such a query.
        """
        self._storage = workspace.storage
        self._all = workspace.engines.registry.with_limits(memory, seconds)
        self._confined = (
            self._all if workspace.config.section(EngineSection).serve_unconfined else self._all.sandboxed_only()
        )

    def get(self, caller: Caller) -> EngineRegistry:
        """Return the engines for a caller."""
        return self._all if caller.may(Scope.ADMIN, self._storage) else self._confined


def warning(workspace: Workspace) -> str | None:
    """Return a warning for operators about untrusted Spark queries, None if there is no reason for one.

    It is determined by building a sandbox, in a separate process.
    """
    why = why_unconfined(workspace.storage, workspace.config)
    if why is None:
        return None
    if workspace.config.section(EngineSection).serve_unconfined:
        return f"untrusted Spark queries run without a full sandbox ({why}), as {UNCONFINED} says"
    return f"Spark queries need a token with the scope admin: the engine is not fully sandboxed ({why})"
