"""Watermarks of root datasets: moved by policy, with or without new rows, or manually.

The policy is part of the dataset's settings; its results are recorded in blocks. The watermark moves in the commit of
new rows (`odfpy.coordinator.ingest.ingest`), or in a separate commit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from odfpy.chain.events import AddData
from odfpy.coordinator.storage.commit import commit_events, commit_time
from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.results import PullResult
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp
from odfpy.data.watermark import WatermarkPolicy
from odfpy.dataset.kind import DatasetKind
from odfpy.errors import UsageError
from odfpy.settings.dataset_sections import WatermarkSection

OFTEN: Final = Duration(60)
"""Minimum time between two updates of an idle source's watermark by frequent callers, such as a watch."""

FOLLOWS: Final = "nothing new for longer than watermark.idle, so the watermark follows system time"
FUTURE: Final = "it is in the future: until then, all rows will be late"


def settings_of(dataset: StoredDataset) -> Config:
    """Return the settings of a root dataset that is not a copy.

    Raises:
        UsageError: the dataset is derivative, or a copy.
    """
    require_own_watermark(dataset)
    return Config.of_dataset(dataset.folder)


def require_own_watermark(dataset: StoredDataset) -> None:
    """Check that a dataset determines its own watermark.

    Raises:
        UsageError: its watermark is determined by its inputs, or copied with the blocks of the original.
    """
    from odfpy.coordinator.transfer.known_remotes import KnownRemotes

    if dataset.state.kind is DatasetKind.DERIVATIVE:
        raise UsageError(
            f"{dataset.handle} is derivative: its watermark follows from its inputs",
            hint=f"`odf inspect lineage {dataset.handle}` shows which input holds it back.",
        )
    origin = next(iter(KnownRemotes.aliases(dataset).shown("pull")), None)
    if origin is not None:
        raise UsageError(
            f"{dataset.handle} is a copy of {origin}: it has the watermark of the original",
            hint="Set the watermark of the original, then pull.",
        )


def policy_of(dataset: StoredDataset) -> WatermarkPolicy:
    """Return the watermark policy in the dataset's settings.

    Raises:
        MalformedManifest: the settings are damaged; the message names the file.
    """
    chosen = Config.of_dataset(dataset.folder).section(WatermarkSection)
    return WatermarkPolicy(Duration.parse(chosen.lag), None if chosen.idle is None else Duration.parse(chosen.idle))


def idle_watermark(dataset: StoredDataset, *, rate_limited: bool = False) -> Timestamp | None:
    """Return the watermark that the policy sets if the source has nothing new; None if it does not move.

    Args:
        dataset: a root dataset.
        rate_limited: whether to move it at most once per idle interval, for frequent callers.
    """
    policy, state = policy_of(dataset), dataset.state
    now = commit_time(state)
    if policy.idle is None or state.system_time is None:
        return None
    if rate_limited and not max(policy.idle, OFTEN).has_passed(state.system_time, now):
        return None
    moved = policy.when_idle(state.watermark, state.last_data_time, now)
    return None if moved == state.watermark else moved


def advance_idle_watermark(dataset: StoredDataset, *, rate_limited: bool = False) -> PullResult | None:
    """Advance the watermark with system time, by the policy for a source that has nothing new.

    Requires the dataset's lock; the caller has polled the source. Returns None if the watermark does not move.
    """
    watermark = idle_watermark(dataset, rate_limited=rate_limited)
    return None if watermark is None else replace(_move(dataset, watermark), notes=(FOLLOWS,))


def with_idle_watermark(dataset: StoredDataset, result: PullResult) -> PullResult:
    """Return the result of a pull; if it has no rows, apply the idle watermark of the policy first.

    Args:
        dataset: a root dataset, with its lock held.
        result: the result after all data of the source was ingested.
    """
    moved = None if result.num_records else advance_idle_watermark(dataset.reloaded())
    if moved is None:
        return result
    return replace(
        result,
        outcome=moved.outcome,
        new_head=moved.new_head,
        num_blocks=result.num_blocks + moved.num_blocks,
        watermark=moved.watermark,
        warnings=(*result.warnings, *moved.warnings),
        notes=(*result.notes, *moved.notes),
    )


def set_watermark(dataset: StoredDataset, watermark: Timestamp) -> PullResult:
    """Declare that no more rows at or before a time will arrive; the caller holds the dataset's lock.

    Raises:
        UsageError: the dataset is derivative, or a copy.
        WatermarkWentBack: the current watermark is later.
    """
    require_own_watermark(dataset)
    before = dataset.state.watermark
    if before is not None and watermark < before:
        from odfpy.chain.rules import WatermarkWentBack

        raise WatermarkWentBack(
            f"{dataset.handle}: the watermark is at {before} already and cannot go back to {watermark}",
            hint="Watermarks can only advance; derivatives may rely on this one.",
        )
    moved = _move(dataset, watermark)
    return moved if watermark <= commit_time(dataset.state) else replace(moved, notes=(FUTURE,))


def _move(dataset: StoredDataset, watermark: Timestamp) -> PullResult:
    state = dataset.state
    event = AddData(
        prev_checkpoint=state.checkpoint.physical_hash if state.checkpoint else None,
        prev_offset=state.last_offset,
        new_watermark=watermark,
    )
    return commit_events(dataset, state, [event] if watermark != state.watermark else [], commit_time(state))
