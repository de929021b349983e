"""Sorted runs as a single sequence: rows by rank, their position in the order of all rows.

The position of a rank in each run is found by bisection. The samples of the runs narrow it down to some thousand rows
of each, so that only these are read, and files larger than the memory stay on disk.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odfpy.ingest.lanes.runs import SAMPLE_STEP, Run, sorted_rows
from odfpy.ingest.lanes.source import open_table
from odfpy.ingest.order import as_numbers

_Places = npt.NDArray[np.int64]


class SortedRuns:
    """The rows of sorted runs by rank; of rows with equal times, those of the earlier run come first."""

    def __init__(self, runs: Sequence[Run], event_time: str) -> None:
        """Open the runs.

        Args:
            runs: non-empty runs, in the order of the input.
            event_time: name of the event time column.
        """
        self._runs = runs
        self._event_time = event_time
        self._tables = [open_table(run.path) for run in runs]
        self._last: tuple[int, _Places] | None = None

    def rows(self, start: int, stop: int) -> pa.Table:
        """Return the rows of a range of ranks, in order."""
        first = self._last[1] if self._last is not None and self._last[0] == start else self.places(start)
        last = self.places(stop)
        self._last = stop, last
        stretches = [
            table.slice(begin, end - begin)
            for table, begin, end in zip(self._tables, first, last, strict=True)
            if begin < end
        ]
        return sorted_rows(pa.concat_tables(stretches), self._event_time)

    def places(self, rank: int) -> _Places:
        """Return the number of rows of each run that are among the first `rank` rows of all runs."""
        low, high = self._between(rank)
        starts = np.array([np.searchsorted(run.sample, low, side="left") - 1 for run in self._runs]) * SAMPLE_STEP
        starts = np.maximum(starts, 0)
        stops = np.array([np.searchsorted(run.sample, high, side="right") for run in self._runs]) * SAMPLE_STEP
        windows = [
            as_numbers(table.column(self._event_time).slice(start, stop - start))
            for table, start, stop in zip(self._tables, starts.tolist(), stops.tolist(), strict=True)
        ]

        def before(time: int, side: str) -> _Places:
            found = [np.searchsorted(window, time, side=side) for window in windows]  # type: ignore[call-overload]
            places: _Places = starts + np.array(found, np.int64)
            return places

        while low < high:  # the minimum time up to which there are enough rows
            middle = (low + high) // 2
            if before(middle, "right").sum() >= rank:
                high = middle
            else:
                low = middle + 1
        earlier = before(low, "left")
        equal = before(low, "right") - earlier
        wanted = rank - earlier.sum()
        places: _Places = earlier + np.clip(wanted - (np.cumsum(equal) - equal), 0, equal)
        return places

    def _between(self, rank: int) -> tuple[int, int]:
        """Return bounds on the time of the row with a rank, counted from 1."""
        times, least, most = self._sampled
        low = int(np.searchsorted(most, rank, side="left"))  # first time up to which there may be enough rows
        high = int(np.searchsorted(least, rank, side="left"))  # first time up to which there certainly are
        last = max(int(table.column(self._event_time)[-1].value) for table in self._tables)
        return int(times[max(low - 1, 0)]), int(times[high]) if high < len(times) else last

    @cached_property
    def _sampled(self) -> tuple[_Places, _Places, _Places]:
        """All sampled times, ascending, with the minimum and maximum number of rows up to each."""
        times = np.unique(np.concatenate([run.sample for run in self._runs]))
        least, most = np.zeros(len(times), np.int64), np.zeros(len(times), np.int64)
        for run in self._runs:
            sampled = np.searchsorted(run.sample, times, side="right")
            least += np.where(sampled > 0, (sampled - 1) * SAMPLE_STEP + 1, 0)
            most += np.minimum(sampled * SAMPLE_STEP, run.rows)
        return times, least, most
