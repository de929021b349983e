"""The settings of a workspace that concern single kinds of sources."""

from __future__ import annotations

from pathlib import Path

from odfpy.coordinator.storage.config import Config
from odfpy.ingest.fetch.bounds import SourceBounds
from odfpy.ingest.fetch.options import SourceOptions


def source_options(config: Config) -> SourceOptions:
    """Return what is in force."""
    return SourceOptions(
        batch_size=config.get("fetch.batchSize"),
        container_engine=config.get("container.engine"),
        container_timeout=config.get("container.timeout"),
        mqtt_idle_millis=config.get("mqtt.idleMillis"),
        ethereum_nodes=config.get("ethereum.nodes"),
        ethereum_blocks_per_request=config.get("ethereum.blocksPerRequest"),
        ethereum_blocks_per_commit=config.get("ethereum.blocksPerCommit"),
        ethereum_confirmations=config.get("ethereum.confirmations"),
        ethereum_ask_times=config.get("ethereum.askTimes"),
        bounds=_bounds(config),
    )


def _bounds(config: Config) -> SourceBounds:
    folders = _several(config.get("sources.folders"))
    return SourceBounds(
        variables=_several(config.get("sources.variables")),
        hosts=_several(config.get("sources.hosts")),
        folders=None if folders is None else tuple(Path(folder).expanduser() for folder in folders),
        images=_several(config.get("sources.images")),
    )


def _several(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(word.strip() for word in text.split(","))
