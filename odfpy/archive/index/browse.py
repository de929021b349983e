"""Aggregations over an archive: names with counts and times, and files per day; for web pages and lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.archive.index.fingerprints import combined, fingerprint
from odfpy.archive.index.segment import NAMES, Segment
from odfpy.archive.index.versions import Numbers
from odfpy.archive.index.walk import stretches
from odfpy.archive.record import Status
from odfpy.archive.times import DAY


@dataclass(frozen=True, slots=True)
class NameSummary:
    """A what or where, with the number of its files.

    Attributes:
        name: the name.
        count: number of files, without withdrawn ones.
        first: minimum start, in milliseconds.
        last: maximum end, or start of files without an end.
    """

    name: str
    count: int
    first: int
    last: int


def names(segments: Iterable[Segment], what: str | None, horizon: int, seed: int) -> list[NameSummary]:
    """Return all what, or all where of one what, sorted by name.

    Args:
        segments: segments of the index.
        what: the what whose where are returned; None for all what.
        horizon: offset of the snapshot.
        seed: seed of the fingerprints.
    """
    tables = [NAMES.empty_table(), *(_places(segment, what, horizon, seed) for segment in segments)]
    rows = pa.concat_tables(tables)
    by = "what" if what is None else "where"
    sums = rows.group_by(by).aggregate([("count", "sum"), ("first", "min"), ("last", "max")]).sort_by(by)
    columns = (sums.column(name).to_pylist() for name in (by, "count_sum", "first_min", "last_max"))
    return [NameSummary(*values) for values in zip(*columns, strict=True)]


def days(
    segments: Sequence[Segment], what: str, where: str | None, since: int, until: int, horizon: int, seed: int
) -> dict[int, int]:
    """Count files by the day of their start (UTC) in a time range; days without files are omitted.

    Args:
        segments: segments of the index.
        what: kinds of files.
        where: origin, None for any.
        since: start of the range, inclusive.
        until: end of the range, inclusive.
        horizon: offset of the snapshot.
        seed: seed of the index.

    Returns:
        Counts by the first millisecond of the day, in order.
    """
    key = fingerprint(what, seed)
    way, key = ("what", key) if where is None else ("place", combined(key, fingerprint(where, seed)))
    counts: dict[int, int] = {}
    for stretch in stretches(segments, way, [key], since, until, horizon):
        starts = stretch.starts_from(since)
        numbers, num_starts = np.unique(starts // DAY, return_counts=True)
        for number, count in zip(numbers.tolist(), num_starts.tolist(), strict=True):
            counts[number * DAY] = counts.get(number * DAY, 0) + count
    return dict(sorted(counts.items()))


def _places(segment: Segment, what: str | None, horizon: int, seed: int) -> pa.Table:
    """Return the names of a segment's current versions: the stored ones, recounted where versions have ended."""
    if segment.info.first > horizon:
        return NAMES.empty_table()
    if horizon < segment.info.last:
        return _counted(segment, np.arange(segment.info.rows), what, horizon)
    noted = segment.names()
    if what is not None:
        noted = noted.filter(pc.equal(noted.column("what"), what))
    changed = segment.ended_later
    if not len(changed):
        return noted
    changed_places = segment.table(changed).select(["what", "where"]).group_by(["what", "where"]).aggregate([])
    rest = noted.join(changed_places, ["what", "where"], join_type="left anti").select(NAMES.names)
    rows = [np.zeros(0, np.int64)]
    for what_there, where_there in zip(
        *(changed_places.column(name).to_pylist() for name in ("what", "where")), strict=True
    ):
        if what is None or what_there == what:
            rows.append(_rows_of_place(segment, what_there, where_there, seed))
    return pa.concat_tables([rest, _counted(segment, np.unique(np.concatenate(rows)), what, horizon)])


def _counted(segment: Segment, rows: Numbers, what: str | None, horizon: int) -> pa.Table:
    """Count the names of versions by reading each."""
    rows = rows[segment.holds(rows, horizon)]
    columns = segment.table(rows).select(["what", "where", "status"])
    columns = columns.append_column("first", pa.array(segment.starts(rows)))
    columns = columns.append_column("last", pa.array(segment.lasts(rows)))
    shown = pc.not_equal(columns.column("status"), Status.WITHDRAWN.value)
    if what is not None:
        shown = pc.and_(shown, pc.equal(columns.column("what"), what))
    sums = columns.filter(shown).group_by(["what", "where"])
    counted = sums.aggregate([("first", "count"), ("first", "min"), ("last", "max")])
    return pa.table([counted.column(name) for name in ("what", "where", "first_count", "first_min", "last_max")], NAMES)


def _rows_of_place(segment: Segment, what: str, where: str, seed: int) -> Numbers:
    """Return the versions of a what and where, possibly with others that share their fingerprint."""
    key = combined(fingerprint(what, seed), fingerprint(where, seed))
    ranges = segment.ranges("place", key)
    return np.concatenate(
        [np.zeros(0, np.int64), *(segment.rows("place", key_range.first, key_range.last) for key_range in ranges)]
    )
