"""The settings of a workspace that concern single kinds of sources."""

from __future__ import annotations

from odfpy.coordinator.config import Config
from odfpy.ingest.fetch.options import SourceOptions


def source_options(config: Config) -> SourceOptions:
    """What is in force."""
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
    )
