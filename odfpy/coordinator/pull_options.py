"""The options of a pull in a workspace: from its settings and from the person who asks."""

from __future__ import annotations

from collections.abc import Sequence

from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.coordinator.ingest.allowed import NOTHING, Allowed
from odfpy.coordinator.ingest.source_options import source_options
from odfpy.coordinator.pull import PullOptions
from odfpy.coordinator.storage.config import Config
from odfpy.dataset.names import DatasetAlias
from odfpy.ingest.archive import UnpackLimits
from odfpy.settings.sections import FetchSection, PrepareSection


def pull_options(
    config: Config,
    *,
    recursive: bool,
    force: bool,
    fetch_uncacheable: bool,
    as_name: str | None,
    reset_derivatives: bool = False,
    branch: str | None = None,
    tags: Sequence[str] = (),
    allowed: Allowed = NOTHING,
) -> PullOptions:
    """The options in force.

    Raises:
        InvalidValue: that is no name.
    """
    fetch, prepare = config.section(FetchSection), config.section(PrepareSection)
    return PullOptions(
        recursive=recursive,
        force=force,
        fetch_uncacheable=fetch_uncacheable,
        as_name=None if as_name is None else DatasetAlias.parse(as_name),
        reset_derivatives=reset_derivatives,
        branch=branch,
        tags=tuple(ReferenceName.of(ReferenceKind.TAG, tag) for tag in tags),
        max_fetch_bytes=fetch.max_size,
        fetch_timeout=fetch.timeout,
        fetch_retries=fetch.retries,
        unpack_limits=UnpackLimits(prepare.max_size, prepare.max_ratio),
        prepare_timeout=prepare.timeout,
        sources=source_options(config),
        allowed=allowed,
    )
