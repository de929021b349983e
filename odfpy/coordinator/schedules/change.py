"""The change that a manifest makes to the schedule of its dataset."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from odfpy.chain.block import DatasetSnapshot
from odfpy.coordinator.schedules.file import load_schedule, save_schedule, schedule_text
from odfpy.coordinator.schedules.schedule import DatasetSchedule
from odfpy.coordinator.schedules.scheduled_snapshot import schedule_of
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.errors import OdfError


@dataclass(frozen=True, slots=True)
class ScheduleChange:
    """A change of a schedule; none if there is no new one.

    Attributes:
        new: the schedule to be.
        lines: how it differs from the one before, as `diff` writes it.
    """

    new: DatasetSchedule | None = None
    lines: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.new is not None

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the user: which jobs run, and when."""
        jobs = {} if self.new is None else self.new.jobs
        return tuple(f"`odf run` does a {job.value}: {trigger.in_words}" for job, trigger in jobs.items())

    def save(self, folder: Path) -> None:
        """Write the new schedule into the folder of its dataset, if there is one."""
        if self.new is not None:
            save_schedule(folder, self.new)


def schedule_change(snapshot: DatasetSnapshot, existing: StoredDataset | None) -> ScheduleChange:
    """Return the change that a manifest makes; one without a schedule leaves the dataset's as it is.

    Args:
        snapshot: the manifest.
        existing: the dataset, None if it is made.
    """
    new = schedule_of(snapshot)
    before = None if existing is None or new is None else _readable(existing.folder)
    if new is None or new == before:
        return ScheduleChange()
    old = [] if before is None else schedule_text(before).splitlines()
    lines = unified_diff(old, schedule_text(new).splitlines(), lineterm="", n=2)
    return ScheduleChange(new, tuple(lines)[2:])


def _readable(folder: Path) -> DatasetSchedule | None:
    """Return the schedule so far; one that cannot be read is replaced."""
    try:
        return load_schedule(folder)
    except OdfError:
        return None
