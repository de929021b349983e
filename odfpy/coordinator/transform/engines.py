"""The engines of a workspace, configured by its settings."""

from __future__ import annotations

from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.storage import Storage
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.settings import EngineSettings, SandboxMode
from odfpy.settings.sections import EngineSection


def engine_registry(storage: Storage, config: Config) -> EngineRegistry:
    """Return the registry of engines; engines are started on first use."""
    return EngineRegistry.standard(storage.engine_run, engine_settings(storage, config))


def engine_settings(storage: Storage, config: Config) -> EngineSettings:
    """Return the settings of a workspace's Spark engine."""
    chosen = config.section(EngineSection)
    return EngineSettings(
        idle_seconds=chosen.idle_timeout,
        start_seconds=chosen.start_timeout,
        job_seconds=chosen.job_timeout,
        memory=chosen.memory,
        master=chosen.master,
        host=chosen.host,
        storage=chosen.storage,
        properties=_absolute(storage, chosen.properties),
        startup_cache=chosen.startup_cache,
        sandbox=SandboxMode(chosen.sandbox),
        max_memory=chosen.max_memory,
        max_disk=chosen.max_disk,
    )


def _absolute(storage: Storage, path: str | None) -> str | None:
    return None if path is None else str(storage.root.absolute() / path)


def why_unconfined(storage: Storage, config: Config) -> str | None:
    """Return the reason why the engine of a workspace would not be fully sandboxed; None if it would be.

    This builds a sandbox in a separate process to test it.
    """
    from odfpy.sandbox.check import sandbox_obstacle

    settings = engine_settings(storage, config)
    if settings.sandbox is SandboxMode.OFF:
        return "engine.sandbox is off"
    return "engine.master is a cluster" if settings.is_cluster else sandbox_obstacle()
