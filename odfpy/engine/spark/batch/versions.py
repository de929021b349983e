"""Versions of a temporal table, derived from the changelog of one key, entry by entry.

| row | what it does |
|---|---|
| `+A` | a version begins at its event time, and the one in force ends |
| `-C` `+C`, the second later | an update: a version begins at the event time of `+C` |
| `-C` `+C`, the second not later | a correction: the new row takes the place of the old one |
| `-R` at another event time than its row | the one in force ends at that time |
| `-R` of an existing row, with others of the key | the row was wrong, as if it had never come |
| `-R` of an existing row, the only one of the key | the key has gone, and its last version ends when that was known |

Rows come from Spark sorted by key, and within a key in their order; here they are processed one by one, in Python. Of
several versions that begin at one time, the last one wins. All times are microseconds since the epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from odfpy.data.vocabulary import OperationType

VALID_FROM: Final = "valid_from"
VALID_TO: Final = "valid_to"
OPEN: Final = 253_402_300_799_999_000
"""The end of a version that is in force: 9999-12-31T23:59:59.999Z."""

_JUST_AFTER: Final = 1_000


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a changelog.

    Attributes:
        data: its values.
        time: its event time.
        op: its operation type.
        commit: the system time of its commit.
        place: the input that it came from, and its offset there.
        known: the event time assigned to its commit, for entries that do not state when a row ended.
    """

    data: tuple[Any, ...]
    time: int
    op: OperationType
    commit: int
    place: tuple[int, int]
    known: int | None

    @property
    def is_gain(self) -> bool:
        """True if the entry adds a row."""
        return self.op.weight > 0


Version = tuple[tuple[Any, ...], int, int]
"""A row, and from when until when it is valid."""


def versions_of(entries: Sequence[Entry]) -> Iterator[Version]:
    """Yield the versions of one key, given the entries of its changelog in their order."""
    ends: list[tuple[int, int]] = []
    present: Counter[str] = Counter()
    came: set[str] = set()
    for at, entry in enumerate(entries):
        row = repr(entry.data)
        if entry.is_gain:
            present[row] += 1
            came.add(row)
            continue
        partner = _correction(entries, at)
        left = sum(other.op.weight for other in entries if other.commit <= entry.commit)
        was_wrong = row in came and (partner is not None or left > 0)
        if was_wrong:
            present[row] -= partner is None or partner.time <= entry.time
        elif partner is None:
            end = entry.time if row not in came else _end_of_removed_key(entry, entries[at + 1 :])
            if end is not None:
                ends.append((end, at))
    begins = [(entry.time, at) for at, entry in enumerate(entries) if entry.is_gain and present[repr(entry.data)] > 0]
    return _valid(entries, sorted(begins + ends), {at for _, at in ends})


def _correction(entries: Sequence[Entry], at: int) -> Entry | None:
    """Return the `+C` right after a `-C`."""
    entry, after = entries[at], entries[at + 1] if at + 1 < len(entries) else None
    if after is None or (entry.op, after.op) != (OperationType.CORRECT_FROM, OperationType.CORRECT_TO):
        return None
    source, offset = entry.place
    return after if after.place == (source, offset + 1) else None


def _end_of_removed_key(entry: Entry, later: Sequence[Entry]) -> int | None:
    """Return when the last version of a removed key ends; None if the key comes back before that."""
    again = [other.time for other in later if other.is_gain]
    if entry.known is None or (again and min(again) <= entry.known):
        return None
    return entry.known


def _valid(entries: Sequence[Entry], moments: Sequence[tuple[int, int]], ends: set[int]) -> Iterator[Version]:
    last = [max(at for _, at in same) for _, same in groupby(moments, key=lambda moment: moment[0])]
    times = [time for time, _ in groupby(moments, key=lambda moment: moment[0])]
    for at, begin, until in zip(last, times, [*times[1:], OPEN], strict=True):
        if at not in ends:
            yield entries[at].data, begin, until


def with_commits(times: Sequence[tuple[int, int | None]]) -> dict[int, int | None]:
    """Return the event time assigned to each commit: the greatest that came with it.

    If that is not later than all earlier event times, it is just after the latest of them; None while there is none.

    Args:
        times: system times of commits in their order, each with the greatest event time that it has brought.
    """
    known: dict[int, int | None] = {}
    latest: int | None = None
    for commit, brought in times:
        if brought is not None and (latest is None or brought > latest):
            known[commit] = latest = brought
        else:
            known[commit] = None if latest is None else latest + _JUST_AFTER
    return known
