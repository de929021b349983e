"""Limits on fetching sources, from the settings of a workspace."""

from __future__ import annotations

from odfpy.coordinator.ingest.source_options import source_options
from odfpy.coordinator.storage.config import Config
from odfpy.ingest.archive import UnpackLimits
from odfpy.ingest.fetch.options import SourceOptions
from odfpy.settings.sections import FetchSection, PrepareSection
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """The limits of a fetch.

    Attributes:
        max_bytes: the maximum size of a fetched file.
        timeout: seconds to wait for a server.
        retries: number of retries after a broken connection.
        unpack: limits on the output of prepare steps.
        prepare_timeout: seconds that the command of a prepare step may take.
        sources: settings of particular kinds of sources.
    """

    max_bytes: int
    timeout: float
    retries: int
    unpack: UnpackLimits
    prepare_timeout: float
    sources: SourceOptions


def fetch_limits(config: Config) -> FetchLimits:
    """Return the limits that a configuration defines."""
    fetch, prepare = config.section(FetchSection), config.section(PrepareSection)
    return FetchLimits(
        max_bytes=fetch.max_size,
        timeout=fetch.timeout,
        retries=fetch.retries,
        unpack=UnpackLimits(prepare.max_size, prepare.max_ratio),
        prepare_timeout=prepare.timeout,
        sources=source_options(config),
    )
