"""Manifests with `schedule:` beside `content:`."""

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
    """A template to make a dataset from, with the schedule that it gets here."""

    schedule: DatasetSchedule


def with_schedule(snapshot: DatasetSnapshot, tree: Any, path: Path) -> ScheduledSnapshot:
    """Return a snapshot with the schedule that stands beside it.

    Args:
        snapshot: what `content:` says.
        tree: what `schedule:` says.
        path: the place of that in the document.

    Raises:
        TreeError: the schedule makes no sense, or none for such a dataset.
    """
    polls = any(isinstance(event, SetPollingSource) for event in snapshot.metadata)
    target = Target(snapshot.kind is DatasetKind.DERIVATIVE, polls)
    return ScheduledSnapshot(snapshot.name, snapshot.kind, snapshot.metadata, read_schedule(tree, path, target))


def schedule_of(snapshot: DatasetSnapshot) -> DatasetSchedule | None:
    """Return the schedule that a manifest gives its dataset, None if it says nothing of it."""
    return snapshot.schedule if isinstance(snapshot, ScheduledSnapshot) else None
