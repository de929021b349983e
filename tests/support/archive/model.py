"""The results of an archive, computed by checking each row: the model for its index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from support.archive.commits import APPEND, TO, Row

from odfpy.archive.question import Question
from odfpy.archive.record import FileRecord, Status
from odfpy.archive.times import DAY


def current(rows: Iterable[Row]) -> dict[str, FileRecord]:
    """Return the records of a log by id: the last row of each, unless that is -R or -C."""
    last = {record.id: (op, record) for op, record in rows}
    return {key: record for key, (op, record) in last.items() if op in (APPEND, TO)}


def histories(rows: Iterable[Row]) -> dict[str, list[FileRecord]]:
    """Return all versions of records by id, the oldest first."""
    found: dict[str, list[FileRecord]] = {}
    for op, record in rows:
        if op in (APPEND, TO):
            found.setdefault(record.id, []).append(record)
    return found


def shown(records: Iterable[FileRecord]) -> list[FileRecord]:
    """Return those that searches find."""
    return [record for record in records if record.status is not Status.WITHDRAWN]


def last_of(record: FileRecord) -> int:
    """Return the last moment of a record."""
    return record.start if record.end is None else record.end


def answer(records: Iterable[FileRecord], question: Question) -> list[FileRecord]:
    """Return the records that match a query, in order."""
    found = [record for record in shown(records) if _fits(record, question)]
    return sorted(found, key=lambda record: (record.start, record.id))


def latest(records: Iterable[FileRecord], what: str, where: str, since: int, until: int) -> FileRecord | None:
    """Return the record that started last."""
    named = [record for record in shown(records) if (record.what, record.where) == (what, where)]
    found = [record for record in named if record.start <= until and last_of(record) >= since]
    return max(found, key=lambda record: (record.start, record.create_time, record.id), default=None)


def names(records: Iterable[FileRecord], what: str | None) -> list[tuple[str, int, int, int]]:
    """Return name, count, minimum start and maximum end of each what, or of each where of one what."""
    groups: dict[str, list[FileRecord]] = {}
    for record in shown(records):
        if what in (None, record.what):
            groups.setdefault(record.what if what is None else record.where, []).append(record)
    return [
        (name, len(group), min(record.start for record in group), max(map(last_of, group)))
        for name, group in sorted(groups.items())
    ]


def days(records: Iterable[FileRecord], what: str, where: str | None, since: int, until: int) -> dict[int, int]:
    """Files that start on each day."""
    named = [record for record in shown(records) if record.what == what and where in (None, record.where)]
    counts = Counter(record.start // DAY * DAY for record in named if since <= record.start <= until)
    return dict(sorted(counts.items()))


def _fits(record: FileRecord, question: Question) -> bool:
    if record.what not in question.what or (question.where and record.where not in question.where):
        return False
    if question.work_id is not None:
        return record.work_id == question.work_id
    begun = question.end is None or record.start <= question.end
    return begun and (question.start is None or last_of(record) >= question.start)
