"""Settings of single kinds of sources, which hold for all datasets of a workspace."""

from __future__ import annotations

from dataclasses import dataclass, field

from odfpy.ingest.fetch.bounds import SourceBounds


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """Settings of sources; the defaults are those of the reference.

    Attributes:
        batch_size: rows after which a source that can go on later is asked to stop, so that they are committed.
        container_engine: `podman`, `docker`, or `auto` for the first of them that is installed.
        container_timeout: seconds that one run of a container may take, None for any time.
        mqtt_idle_millis: milliseconds without a message after which a broker has no more for now.
        ethereum_nodes: nodes by chain id, as `1=https://node.example.com 3338=https://...`, with templates.
        ethereum_blocks_per_request: blocks that a node is asked to look through at once.
        ethereum_blocks_per_commit: blocks after which the progress is committed, however few logs there were.
        ethereum_confirmations: blocks to stay behind the newest one, since the chain may still replace those.
        ethereum_ask_times: ask for each block with logs when it was made, if the node does not tell with the logs.
        bounds: what sources may reach.
    """

    batch_size: int = 10_000
    container_engine: str = "auto"
    container_timeout: int | None = None
    mqtt_idle_millis: int = 1000
    ethereum_nodes: str | None = None
    ethereum_blocks_per_request: int = 100_000
    ethereum_blocks_per_commit: int = 1_000_000
    ethereum_confirmations: int = 0
    ethereum_ask_times: bool = False
    bounds: SourceBounds = field(default_factory=SourceBounds)
