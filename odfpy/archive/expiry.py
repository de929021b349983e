"""Expiry: files past their retention are recorded as expired; `odf gc` then removes their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from odfpy.archive.local import LocalArchive
from odfpy.archive.question import Question
from odfpy.archive.record import FileRecord, Status
from odfpy.archive.retention.policy import ArchivePolicy, RetentionRule
from odfpy.archive.times import FIRST

_AT_ONCE: Final = 10_000
"""Number of files per commit."""


@dataclass(frozen=True, slots=True)
class Expired:
    """A file past its retention, with the rule that applies."""

    record: FileRecord
    rule: RetentionRule


def expired_files(archive: LocalArchive, now: int) -> Iterator[Expired]:
    """Yield the stored files that are required by neither a rule nor a hold.

    Args:
        archive: the archive.
        now: current time, in milliseconds.
    """
    policy = archive.policy
    for what in _concerned(archive, policy):
        records = archive.answers(Question(what=(what,), start=FIRST, end=now))
        expired = (
            candidate
            for candidate in records
            if candidate.status is Status.KEPT and policy.has_expired([candidate], now) is not None
        )
        while batch := list(islice(expired, _AT_ONCE)):
            histories = archive.index.histories([record.id for record in batch])
            for record in batch:
                rule = policy.has_expired(histories.get(record.id, [record]), now)
                if rule is not None:
                    yield Expired(record, rule)


def expire(archive: LocalArchive, *, who: str, now: int) -> Iterator[Expired]:
    """Record files as expired; yields each after it is committed.

    Args:
        archive: the archive.
        who: the acting person.
        now: current time, in milliseconds.
    """
    expired = list(expired_files(archive, now))
    for first in range(0, len(expired), _AT_ONCE):
        batch = expired[first : first + _AT_ONCE]
        for rule in dict.fromkeys(item.rule for item in batch):
            ids = [item.record.id for item in batch if item.rule == rule]
            why = f"retention has ended: {rule}"
            archive.change(ids, who=who, why=why, status=Status.EXPIRED, released=now)
        yield from batch


def _concerned(archive: LocalArchive, policy: ArchivePolicy) -> list[str]:
    """Return the kinds of files that have a rule."""
    wanted = {rule.what for rule in policy.retention}
    return [what for what in archive.names() if None in wanted or what in wanted]
