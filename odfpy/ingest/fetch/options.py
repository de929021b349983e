"""Settings of single kinds of sources, which hold for all datasets of a workspace."""

from __future__ import annotations

from dataclasses import field

from odfpy.ingest.fetch.bounds import SourceBounds
from odfpy.settings.sections import ContainerSection, EthereumSection, FetchSection, MqttSection
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Settings of sources; the defaults are those of the reference implementation.

    Attributes:
        batch_size: number of rows after which a resumable source is asked to stop, so that they are committed.
        container_engine: `podman`, `docker`, or `auto` for the first of them that is installed.
        container_timeout: maximum seconds of one container run, None for no limit.
        mqtt_idle_millis: milliseconds without a message after which a broker has no more for now.
        ethereum_nodes: nodes by chain id, as `1=https://node.example.com 3338=https://...`, with templates.
        ethereum_blocks_per_request: number of blocks per query to a node.
        ethereum_blocks_per_commit: blocks after which the progress is committed, however few logs there were.
        ethereum_confirmations: number of newest blocks to skip, since the chain may still replace them.
        ethereum_ask_times: whether to query the time of each block with logs, if the logs do not contain it.
        bounds: limits on what sources may access.
    """

    batch_size: int = FetchSection.batch_size
    container_engine: str = ContainerSection.engine
    container_timeout: int | None = ContainerSection.timeout
    mqtt_idle_millis: int = MqttSection.idle_millis
    ethereum_nodes: str | None = EthereumSection.nodes
    ethereum_blocks_per_request: int = EthereumSection.blocks_per_request
    ethereum_blocks_per_commit: int = EthereumSection.blocks_per_commit
    ethereum_confirmations: int = EthereumSection.confirmations
    ethereum_ask_times: bool = EthereumSection.ask_times
    bounds: SourceBounds = field(default_factory=SourceBounds)
