"""Schedules from users: parse them, validate them for their dataset, and store them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfpy.codec.tree import TreeError, format_path
from odfpy.codec.yaml import load_documents
from odfpy.coordinator.lineage.cycles import is_copy
from odfpy.coordinator.schedules.file import notify_changed, remove_schedule, save_schedule
from odfpy.coordinator.schedules.form import Target, read_schedule, require_target
from odfpy.coordinator.schedules.schedule import DatasetSchedule
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.errors import MalformedManifest

if TYPE_CHECKING:
    from odfpy.codec.yaml_trees import Document

_HINT = "It begins with `schedule:`, as in a manifest; `pull: {every: 1h}` below it is an example."


def parse_schedule(text: str) -> DatasetSchedule:
    """Parse a schedule in its manifest form.

    Args:
        text: YAML with the single key `schedule`.

    Raises:
        MalformedManifest: the schedule is invalid; the message names line and position.
    """
    documents = load_documents(text, "the schedule")
    if len(documents) != 1:
        raise MalformedManifest(f"One schedule was expected, found {len(documents)}", hint=_HINT)
    (document,) = documents
    if not isinstance(document.tree, dict) or set(document.tree) != {"schedule"}:
        raise MalformedManifest("Line 1: not a schedule", hint=_HINT)
    return _read(document)


def _read(document: Document) -> DatasetSchedule:
    try:
        return read_schedule(document.tree["schedule"], ("schedule",))
    except TreeError as error:
        line, column = document.place_of(error.path)
        where = f"Line {line}, column {column}"
        raise MalformedManifest(f"{where}: {error.problem} at `{format_path(error.path)}`", hint=error.hint) from error


def keep_schedule(dataset: StoredDataset, schedule: DatasetSchedule) -> None:
    """Store a schedule beside its dataset, and notify the scheduler.

    Args:
        dataset: the dataset.
        schedule: the schedule.

    Raises:
        UsageError: the schedule does not apply to the dataset.
    """
    require_target(schedule, Target.of(dataset.state, is_copy=is_copy(dataset)), str(dataset.handle))
    save_schedule(dataset.folder, schedule)
    notify_changed(dataset.workspace_folder)


def drop_schedule(dataset: StoredDataset) -> bool:
    """Remove the schedule of a dataset, and return whether it had one.

    Args:
        dataset: the dataset.
    """
    had_one = remove_schedule(dataset.folder)
    if had_one:
        notify_changed(dataset.workspace_folder)
    return had_one
