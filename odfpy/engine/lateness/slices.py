"""Slices of an input with late rows, found from their footers and the watermarks of their time."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from odfpy.data.duration import ZERO, Duration
from odfpy.data.slices.slice import iter_slice, slice_stats
from odfpy.data.vocabulary import DatasetVocabulary, OperationType
from odfpy.engine.bounds import least_time
from odfpy.engine.contract import Arrival, OffsetInterval, TransformRequestInput

_NEW = (int(OperationType.APPEND), int(OperationType.CORRECT_TO))
_NANOS_IN_MICRO = 1_000


@dataclass(frozen=True, slots=True)
class LateSlice:
    """A slice that may have late entries.

    Attributes:
        path: the file.
        rows: its offsets.
        limit: entries with an event time at or before it are late, in microseconds.
    """

    path: str
    rows: OffsetInterval
    limit: int


def late_slices(
    arrivals: Iterable[Arrival], paths: Container[str], vocab: DatasetVocabulary, *, behind: Duration = ZERO
) -> Iterator[LateSlice]:
    """The slices that may have late entries; for most, the file's statistics tell that they have none.

    Args:
        arrivals: what was known of an input when its slices came.
        paths: those of the slices that are looked at.
        vocab: names of the system columns.
        behind: how much later than the watermark entries have to be.
    """
    for arrival in dict.fromkeys(arrivals):
        before = behind.before(arrival.watermark)
        if arrival.path not in paths or before is None:
            continue
        limit = before.nanos // _NANOS_IN_MICRO
        least = least_time([arrival.path], vocab.event_time_column)
        if least is None or least <= limit:
            stats = slice_stats(arrival.path, vocab=vocab)
            if stats.offset_start is not None and stats.offset_end is not None:
                yield LateSlice(arrival.path, OffsetInterval(stats.offset_start, stats.offset_end), limit)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of late rows among the new ones.

    Attributes:
        rows: new rows; what is retracted or corrected was there before.
        entries: entries of the changelog, of whichever operation type.
    """

    rows: int = 0
    entries: int = 0


def late_tally(source: TransformRequestInput) -> Tally:
    """Return how much of the interval of an input came late."""
    interval = source.offset_interval
    if interval is None:
        return Tally()
    vocab = source.vocab
    names = (vocab.offset_column, vocab.operation_type_column, vocab.event_time_column)
    rows = entries = 0
    for late in late_slices(source.arrivals, source.data_paths, vocab):
        for batch in iter_slice(late.path, columns=names, vocab=vocab):
            offsets, kinds = (batch.column(name).to_numpy() for name in names[:2])
            found = late_entries(batch.column(names[2]), late.limit)
            found &= (offsets >= interval.start) & (offsets <= interval.end)
            entries += int(found.sum())
            rows += int((found & np.isin(kinds, _NEW)).sum())
    return Tally(rows, entries)


def late_entries(event_time: pa.Array, limit: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return a mask of event times (dates or timestamps) at or before a limit in microseconds; False where missing."""
    zone = event_time.type.tz if pa.types.is_timestamp(event_time.type) else None
    times = event_time.cast(pa.timestamp("us", zone), safe=False)
    micros = times.cast(pa.int64()).fill_null(limit + 1).to_numpy(zero_copy_only=False)
    return np.asarray(micros <= limit)
