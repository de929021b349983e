"""Change of a dataset's schedule by its manifest."""

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
    """A change of a schedule; false if nothing changes.

    Attributes:
        new: the new schedule, None if it does not change.
        lines: the difference to the previous schedule, in the format of `diff`.
    """

    new: DatasetSchedule | None = None
    lines: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.new is not None

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the user: the scheduled jobs and their times."""
        jobs = {} if self.new is None else self.new.jobs
        return tuple(f"`odf run` does a {job.value}: {trigger.in_words}" for job, trigger in jobs.items())

    def save(self, folder: Path) -> None:
        """Write the new schedule to the folder of its dataset, if there is one."""
        if self.new is not None:
            save_schedule(folder, self.new)


def schedule_change(snapshot: DatasetSnapshot, existing: StoredDataset | None) -> ScheduleChange:
    """Return the change that a manifest makes; a manifest without a schedule changes nothing.

    Args:
        snapshot: the manifest.
        existing: the dataset, None if the manifest creates it.
    """
    new = schedule_of(snapshot)
    before = None if existing is None or new is None else _readable(existing.folder)
    if new is None or new == before:
        return ScheduleChange()
    old = [] if before is None else schedule_text(before).splitlines()
    lines = unified_diff(old, schedule_text(new).splitlines(), lineterm="", n=2)
    return ScheduleChange(new, tuple(lines)[2:])


def _readable(folder: Path) -> DatasetSchedule | None:
    """Return the current schedule; None if it cannot be read, so that it is replaced."""
    try:
        return load_schedule(folder)
    except OdfError:
        return None
