"""Manifests with a `schedule:` section beside `content:`."""

from __future__ import annotations

from typing import Any

from odfpy.chain.block import DatasetSnapshot
from odfpy.chain.events import SetPollingSource
from odfpy.codec.tree import Path
from odfpy.coordinator.schedules.form import Target, read_schedule
from odfpy.coordinator.schedules.schedule import DatasetSchedule
from odfpy.dataset.kind import DatasetKind
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class ScheduledSnapshot(DatasetSnapshot):
    """A snapshot of a dataset to be created, with its schedule."""

    schedule: DatasetSchedule


def with_schedule(snapshot: DatasetSnapshot, tree: Any, path: Path) -> ScheduledSnapshot:
    """Return a snapshot with the schedule from the same manifest.

    Args:
        snapshot: value of `content:`.
        tree: value of `schedule:`.
        path: path of the schedule in the document.

    Raises:
        TreeError: the schedule is invalid, or does not apply to the dataset.
    """
    polls = any(isinstance(event, SetPollingSource) for event in snapshot.metadata)
    target = Target(snapshot.kind is DatasetKind.DERIVATIVE, polls)
    return ScheduledSnapshot(snapshot.name, snapshot.kind, snapshot.metadata, read_schedule(tree, path, target))


def schedule_of(snapshot: DatasetSnapshot) -> DatasetSchedule | None:
    """Return the schedule of a snapshot, None if it has none."""
    return snapshot.schedule if isinstance(snapshot, ScheduledSnapshot) else None
