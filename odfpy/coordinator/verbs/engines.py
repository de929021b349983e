"""`Workspace.engines`: the engines that run queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfpy.coordinator.verbs.arguments import with_checked_arguments
from odfpy.coordinator.verbs.context import WorkspaceContext

if TYPE_CHECKING:
    from pathlib import Path

    from odfpy.engine.contract import AnalyzeResponseSuccess
    from odfpy.engine.registry import EngineRegistry
    from odfpy.engine.worker.messages import Status


@with_checked_arguments
class Engines:
    """The engines of a workspace."""

    def __init__(self, context: WorkspaceContext) -> None:
        self._context = context

    @property
    def registry(self) -> EngineRegistry:
        """Return the registry of engines."""
        return self._context.engines

    def status(self) -> Status | None:
        """Return the status of the Spark engine, None if it is not running."""
        from odfpy.engine.worker.admin import engine_status

        return engine_status(self._context.storage.engine_run)

    def stop(self, *, force: bool = False) -> Status | None:
        """Stop the Spark engine, and return its last status; None if it was not running."""
        from odfpy.engine.worker.admin import stop_engine

        return stop_engine(self._context.storage.engine_run, force=force)

    def prepare(self) -> tuple[Path, bool]:
        """Create the start-up cache of the Spark engine if it is missing; return its path, and whether it was created.

        Raises:
            UsageError: the engine of this workspace does not use a cache.
            EngineUnavailable: the cache cannot be created.
        """
        from odfpy.coordinator.transform.engines import engine_settings
        from odfpy.engine.worker.preparation import prepare_engine

        return prepare_engine(engine_settings(self._context.storage, self._context.config))

    def analyze(self, ref: str) -> AnalyzeResponseSuccess | None:
        """Return the engine's analysis of a derivative's query; None if the schema of an input is not known yet.

        Raises:
            UsageError: the dataset is not derivative.
        """
        from odfpy.coordinator.transform.analysis import analyze
        from odfpy.errors import UsageError

        storage = self._context.storage
        dataset = storage.get(ref)
        if dataset.state.set_transform is None:
            raise UsageError(f"{dataset.handle} has no query: it is a root dataset")
        return analyze(
            storage, self.registry, dataset.state.set_transform, dataset.state, lambda item: storage.get(item).state
        )
