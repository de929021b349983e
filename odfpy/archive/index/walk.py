"""Traversal of ranges of segments by start and id, skipping versions that do not overlap or are no longer valid."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from odfpy.archive.index.fingerprints import Fingerprints
from odfpy.archive.index.segment import Range, Segment, column_of
from odfpy.archive.index.versions import Numbers

Key = tuple[int, str]
"""Start and id: the sort order of results."""

_FIRST_LOOK = 256
_MAX_LOOK = 1 << 16


@dataclass(frozen=True, slots=True)
class Stretch:
    """The part of a range that started by the end of a time range, and may not have ended before it.

    Attributes:
        segment: the segment of the range.
        range: the range; `first` and `last` are those of the part.
        since: start of the time range, None if unbounded.
        horizon: offset at which versions must be valid.
    """

    segment: Segment
    range: Range
    since: int | None
    horizon: int

    def after(self, key: Key | None) -> int:
        """Return the position of the first version after a key."""
        way, first, last = self.range.way, self.range.first, self.range.last
        if key is None:
            return first
        start, id_ = key
        column = column_of(way)
        low = self.segment.file.place(column, start, first, last)
        high = self.segment.file.place(column, start, low, last, right=True)
        while low < high:
            middle = (low + high) // 2
            if self.segment.id_at(int(self.segment.rows(way, middle, middle + 1)[0])) <= id_:
                low = middle + 1
            else:
                high = middle
        return low

    def take(self, key: Key | None, want: int) -> tuple[Numbers, Numbers]:
        """Return the first versions after a key.

        Args:
            key: the key.
            want: number of versions; fewer or more may be returned.

        Returns:
            Their starts, ascending, and the versions.
        """
        at, last, look = self.after(key), self.range.last, max(_FIRST_LOOK, 2 * want)
        starts, rows, count = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], 0
        while at < last and count < want:
            fitting = self._fitting(at, min(at + look, last))
            starts.append(fitting[0])
            rows.append(fitting[1])
            count += len(fitting[0])
            at, look = at + look, min(2 * look, _MAX_LOOK)
        return np.concatenate(starts)[:want], np.concatenate(rows)[:want]

    @property
    def last_start(self) -> int:
        """The start of the last version, matching or not: no start is greater."""
        return int(self.segment.file.part(column_of(self.range.way), self.range.last - 1, self.range.last)[0])

    def greatest(self) -> tuple[int, Numbers] | None:
        """Return the greatest start and all versions with it, None if there is no version."""
        at, look = self.range.last, _FIRST_LOOK
        while at > self.range.first:
            begin = max(at - look, self.range.first)
            starts, _ = self._fitting(begin, at)
            if len(starts):
                start = int(starts[-1])
                column = column_of(self.range.way)
                first = self.segment.file.place(column, start, self.range.first, at)
                return start, self._fitting(first, at)[1]
            at, look = begin, min(2 * look, _MAX_LOOK)
        return None

    def starts_from(self, since: int) -> Numbers:
        """Return the starts of all versions that start at or after a time."""
        last = self.range.last
        return self._fitting(self.segment.file.place(column_of(self.range.way), since, self.range.first, last), last)[0]

    def _fitting(self, first: int, last: int) -> tuple[Numbers, Numbers]:
        """Return the starts and versions of a part that overlap the time range and are valid."""
        way = self.range.way
        starts = self.segment.file.part(column_of(way), first, last)
        rows = self.segment.rows(way, first, last)
        fits = self.segment.holds(rows, self.horizon)
        if self.since is not None:
            early = np.flatnonzero(fits & (starts < self.since))
            fits[early] = self.segment.lasts(rows[early]) >= self.since
        return starts[fits], rows[fits]


def stretches(
    segments: Iterable[Segment],
    way: str,
    keys: Iterable[Fingerprints],
    since: int | None,
    until: int | None,
    horizon: int,
) -> list[Stretch]:
    """Return the stretches with all versions of given keys that overlap a time range, possibly with others.

    Args:
        segments: segments of the index.
        way: `what`, `place` or `job`.
        keys: fingerprints, each as an array of one.
        since: start of the time range, inclusive.
        until: end of the time range, inclusive.
        horizon: offset at which versions must be valid.
    """
    wanted = np.unique(np.concatenate(list(keys)))
    overlapping = []
    for segment in segments:
        if segment.info.first > horizon:
            continue
        for key_range in segment.ranges(way, wanted, since, until):
            column, first, last = column_of(way), key_range.first, key_range.last
            if since is not None:
                earliest = since - (1 << key_range.span_class) + 1
                first = segment.file.place(column, earliest, first, last)
            if until is not None:
                last = segment.file.place(column, until, first, last, right=True)
            if first < last:
                overlapping.append(Stretch(segment, Range(way, key_range.span_class, first, last), since, horizon))
    return overlapping


def greatest_of(ways: Iterable[Stretch]) -> tuple[int, list[tuple[Stretch, Numbers]]] | None:
    """Return the greatest start of all stretches and the versions with it; None if there is no version."""
    best: int | None = None
    greatest: list[tuple[Stretch, Numbers]] = []
    for bound, way in sorted(((way.last_start, way) for way in ways), key=lambda way_start: -way_start[0]):
        if best is not None and bound < best:
            break  # the following ones start no later
        own_greatest = way.greatest()
        if own_greatest is None or (best is not None and own_greatest[0] < best):
            continue
        greatest = [*greatest, (way, own_greatest[1])] if own_greatest[0] == best else [(way, own_greatest[1])]
        best = own_greatest[0]
    return None if best is None else (best, greatest)
