"""The engines of a workspace, set up from its configuration."""

from __future__ import annotations

from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.storage import Storage
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.settings import EngineSettings, SandboxMode


def engine_registry(storage: Storage, config: Config) -> EngineRegistry:
    """The registry; no engine is started before it is used."""
    return EngineRegistry.standard(storage.run, engine_settings(storage, config))


def engine_settings(storage: Storage, config: Config) -> EngineSettings:
    """Return how the Spark engine of a workspace is run."""
    return EngineSettings(
        idle_seconds=config.get("engine.idleTimeout"),
        start_seconds=config.get("engine.startTimeout"),
        job_seconds=config.get("engine.jobTimeout"),
        memory=config.get("engine.memory"),
        master=config.get("engine.master"),
        host=config.get("engine.host"),
        storage=config.get("engine.storage"),
        properties=_absolute(storage, config.get("engine.properties")),
        startup_cache=config.get("engine.startupCache"),
        sandbox=SandboxMode(config.get("engine.sandbox")),
        max_memory=config.get("engine.maxMemory"),
        max_disk=config.get("engine.maxDisk"),
    )


def _absolute(storage: Storage, path: str | None) -> str | None:
    return None if path is None else str(storage.root.absolute() / path)


def why_unconfined(storage: Storage, config: Config) -> str | None:
    """Why the engine of a workspace would be in no whole sandbox; None if it would be in one.

    It is found out by building one, in a process of its own.
    """
    from odfpy.sandbox.check import why_not_whole

    settings = engine_settings(storage, config)
    if settings.sandbox is SandboxMode.OFF:
        return "engine.sandbox is off"
    return "engine.master is a cluster" if settings.is_cluster else why_not_whole()
