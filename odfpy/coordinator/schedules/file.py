"""The file of a schedule.

info/schedule.yaml    in the dataset's folder: a document of the kind DatasetSchedule
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from odfpy.codec.tree import to_tree
from odfpy.codec.yaml import dump
from odfpy.coordinator.schedules.form import check_schedule
from odfpy.coordinator.schedules.schedule import DatasetSchedule
from odfpy.coordinator.storage.workspace_folder import WorkspaceFolder
from odfpy.files import make_folder
from odfpy.repository.documents import load_document, save_document

KIND: Final = "DatasetSchedule"


def schedule_path(folder: Path) -> Path:
    """Return the path of a dataset's schedule.

    Args:
        folder: folder of the dataset.
    """
    return folder / "info" / "schedule.yaml"


def load_schedule(folder: Path) -> DatasetSchedule | None:
    """Return the schedule of a dataset, None if it has none.

    Args:
        folder: folder of the dataset.

    Raises:
        MalformedManifest: the schedule is invalid; the message names file and line.
        OdfError: the file cannot be read.
    """
    return load_document(schedule_path(folder), KIND, DatasetSchedule, check_schedule)


def save_schedule(folder: Path, schedule: DatasetSchedule) -> None:
    """Write the schedule of a dataset.

    Args:
        folder: folder of the dataset.
        schedule: the schedule.
    """
    save_document(schedule_path(folder), KIND, schedule)


def remove_schedule(folder: Path) -> bool:
    """Remove the schedule of a dataset, and return whether it had one.

    Args:
        folder: folder of the dataset.
    """
    try:
        schedule_path(folder).unlink()
    except FileNotFoundError:
        return False
    return True


def schedule_text(schedule: DatasetSchedule) -> str:
    """Return the part of a manifest that is a schedule, as YAML."""
    return dump({"schedule": to_tree(schedule)})


def changed_path(storage: WorkspaceFolder) -> Path:
    """Return the path of the file whose modification time shows that any schedule has changed."""
    return storage.odf / "automation" / "changed"


def notify_changed(storage: WorkspaceFolder) -> None:
    """Notify schedulers of a changed schedule; without it, they notice the change some seconds later."""
    path = changed_path(storage)
    with suppress(OSError):
        make_folder(path.parent)
        path.touch()
        now = time.time_ns()  # file system clocks have a resolution of some milliseconds
        os.utime(path, ns=(now, now))
