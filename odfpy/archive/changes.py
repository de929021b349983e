"""Changes of records: corrections, withdrawals, expiry. Nothing is rewritten: old and new values are both rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from odfpy.archive.errors import RecordRefused
from odfpy.archive.record import FileRecord, Status

CORRECTABLE: Final = ("what", "where", "work_id", "start", "end", "path")
"""The fields that may be corrected; the others describe the bytes and their arrival."""

_RELEASES: Final = (Status.KEPT, Status.EXPIRED, Status.WITHDRAWN)
"""The states of a released file, in this order: a withdrawn file does not expire later."""


def change_records(records: Sequence[FileRecord], *, who: str, why: str, **values: Any) -> list[FileRecord]:
    """Return records with changed values, without those that would not change.

    Args:
        records: current records.
        who: the person who makes the change.
        why: the reason of the change.
        values: fields with their new values.

    Raises:
        RecordRefused: who or why is missing, or a record would violate rules.
    """
    missing = [name for name, text in (("who", who), ("why", why)) if not text.strip()]
    if missing:
        raise RecordRefused("A correction needs a name and a reason", [f"{name} is missing" for name in missing])
    changed = []
    for record in records:
        status = values.get("status", Status.KEPT)
        is_released = status is not Status.KEPT and _RELEASES.index(status) <= _RELEASES.index(record.status)
        if is_released or all(getattr(record, name) == value for name, value in values.items()):
            continue
        changed.append(replace(record, **values, who=who, why=why).checked())
    return changed


def release_in(history: Iterable[FileRecord], record: FileRecord) -> FileRecord:
    """Return the version of a record that withdrew or expired the file; later versions may have corrected it.

    Args:
        history: all versions, oldest first.
        record: current record, withdrawn or expired.
    """
    return next(
        (version for version in history if (version.status, version.released) == (record.status, record.released)),
        record,
    )
