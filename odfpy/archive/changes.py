"""Changes of records: corrections, withdrawals, the end of a retention. Never a rewrite: old and new are both rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from odfpy.archive.errors import RecordRefused
from odfpy.archive.record import FileRecord

CORRECTABLE: Final = ("what", "where", "work_id", "start", "end", "path")
"""The fields that a person may correct; the others say what the bytes are, and when they came."""


def change_records(records: Sequence[FileRecord], *, who: str, why: str, **values: Any) -> list[FileRecord]:
    """The records with other values, without those that would not change.

    Args:
        records: as they are.
        who: who changes them.
        why: their reason.
        values: fields with their new values.

    Raises:
        RecordRefused: nobody says who or why, or a record would break rules.
    """
    missing = [name for name, text in (("who", who), ("why", why)) if not text.strip()]
    if missing:
        raise RecordRefused("A correction needs a name and a reason", [f"{name} is missing" for name in missing])
    changed = []
    for record in records:
        if all(getattr(record, name) == value for name, value in values.items()):
            continue
        changed.append(replace(record, **values, who=who, why=why).checked())
    return changed
