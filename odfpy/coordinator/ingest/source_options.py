"""Settings for particular kinds of sources."""

from __future__ import annotations

from pathlib import Path

from odfpy.coordinator.storage.config import Config
from odfpy.ingest.fetch.bounds import SourceBounds
from odfpy.ingest.fetch.options import SourceOptions
from odfpy.settings.sections import ContainerSection, EthereumSection, FetchSection, MqttSection, SourcesSection


def source_options(config: Config) -> SourceOptions:
    """Return the source settings that a configuration defines."""
    container, ethereum = config.section(ContainerSection), config.section(EthereumSection)
    return SourceOptions(
        batch_size=config.section(FetchSection).batch_size,
        container_engine=container.engine,
        container_timeout=container.timeout,
        mqtt_idle_millis=config.section(MqttSection).idle_millis,
        ethereum_nodes=ethereum.nodes,
        ethereum_blocks_per_request=ethereum.blocks_per_request,
        ethereum_blocks_per_commit=ethereum.blocks_per_commit,
        ethereum_confirmations=ethereum.confirmations,
        ethereum_ask_times=ethereum.ask_times,
        bounds=_bounds(config),
    )


def _bounds(config: Config) -> SourceBounds:
    sources = config.section(SourcesSection)
    folders = _several(sources.folders)
    return SourceBounds(
        variables=_several(sources.variables),
        hosts=_several(sources.hosts),
        folders=None if folders is None else tuple(Path(folder).expanduser() for folder in folders),
        images=_several(sources.images),
    )


def _several(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(word.strip() for word in text.split(","))
