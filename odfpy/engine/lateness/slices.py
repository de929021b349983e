"""Slices with late rows, found from their footers and from the input's watermarks at the time."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

import pyarrow.compute as pc

from odfpy.data.duration import ZERO, Duration
from odfpy.data.lateness import are_new, late_entries, late_limit, num_true
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.slices.slice import iter_slice, slice_stats
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.engine.bounds import least_time
from odfpy.engine.contract import Arrival, TransformRequestInput


@dataclass(frozen=True, slots=True)
class LateSlice:
    """A slice that may have late entries.

    Attributes:
        path: the file.
        rows: the offsets of its rows.
        limit: entries with an event time at or before it are late, in microseconds.
    """

    path: str
    rows: OffsetInterval
    limit: int


def late_slices(
    arrivals: Iterable[Arrival], paths: Container[str], vocab: DatasetVocabulary, *, behind: Duration = ZERO
) -> Iterator[LateSlice]:
    """Yield the slices that may have late entries; for most, the file's statistics show that they have none.

    Args:
        arrivals: the watermarks of an input when its slices came.
        paths: the slices to examine.
        vocab: names of the system columns.
        behind: by how much entries have to be behind the watermark.
    """
    for arrival in dict.fromkeys(arrivals):
        before = behind.before(arrival.watermark)
        if arrival.path not in paths or before is None:
            continue
        limit = late_limit(before)
        least = least_time([arrival.path], vocab.event_time_column)
        # Without statistics, a file may have late entries.
        if least is None or least <= limit:
            stats = slice_stats(arrival.path, vocab=vocab)
            if stats.offset_start is not None and stats.offset_end is not None:
                yield LateSlice(arrival.path, OffsetInterval(stats.offset_start, stats.offset_end), limit)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of late rows among the new ones.

    Attributes:
        rows: the number of new rows; retractions and corrections concern earlier rows.
        entries: the number of changelog entries, of any operation type.
    """

    rows: int = 0
    entries: int = 0


def late_tally(source: TransformRequestInput) -> Tally:
    """Return how many rows and entries of an input's interval came late."""
    interval = source.offset_interval
    if interval is None:
        return Tally()
    vocab = source.vocab
    names = (vocab.offset_column, vocab.operation_type_column, vocab.event_time_column)
    rows = entries = 0
    for late in late_slices(source.arrivals, source.data_paths, vocab):
        for batch in iter_slice(late.path, columns=names, vocab=vocab):
            offsets, operations, times = (batch.column(name) for name in names)
            read = pc.and_(pc.greater_equal(offsets, interval.start), pc.less_equal(offsets, interval.end))
            are_late = pc.and_(late_entries(times, late.limit), read)
            entries += num_true(are_late)
            rows += num_true(pc.and_(are_late, are_new(operations)))
    return Tally(rows, entries)
