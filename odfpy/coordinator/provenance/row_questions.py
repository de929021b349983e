"""Grouping of a derivative's rows, so that one trace as of one run covers each group.

For row-by-row queries, a group has the rows of all runs. For queries with state, a row is traced in the result as of
the run that added it, or as of the previous run for a retraction. If no equal row was added since, and the query can
only add derivations, it can also be traced as of a later run, together with the rows of that run. The derivation is the
same if none of its input rows is newer than the row (see `TraceGroup.holds`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.coordinator.provenance.stored_rows import DatasetRow, DatasetRows
from odfpy.coordinator.transform.history import TransformRun, together
from odfpy.engine import contract

if TYPE_CHECKING:
    from odfpy.chain.events import SetTransform

_MIN_RUNS: Final = 3
"""Minimum number of runs for which combining traces into one is worthwhile."""


@dataclass(frozen=True)
class TraceGroup:
    """Rows of a derivative that the same query produced.

    Attributes:
        runs: the runs that produced the rows; with state, a single run, after which the rows are in the result.
        rows: the rows.
        by_rows: whether the query is row by row.
        until: with state, the number of new rows of each input that the run may read; None for no limit.
        as_of: with state, the run that added a row, by offset, for rows older than the run.
    """

    runs: tuple[TransformRun, ...]
    rows: tuple[DatasetRow, ...]
    by_rows: bool
    until: tuple[int, ...] | None = None
    as_of: Mapping[int, TransformRun] = field(default_factory=dict)

    @property
    def last(self) -> TransformRun:
        """Return the last of the runs."""
        return self.runs[-1]

    def sign(self, row: DatasetRow) -> int:
        """Return 1, or -1 for a row that represents a retraction."""
        return row.operation.weight if self.by_rows else 1

    def inputs(self, scratch: Path) -> tuple[contract.TransformRequestInput, ...]:
        """Return the inputs of the trace."""
        if self.by_rows:
            return together(self.runs, scratch)
        query_inputs = self.last.request(scratch).query_inputs
        if self.until is None:
            return query_inputs
        return tuple(_up_to(query_input, count) for query_input, count in zip(query_inputs, self.until, strict=True))

    def holds(self, offset: int, cited: Collection[tuple[int, int]]) -> bool:
        """Return whether a derivation of a row already existed as of the run for which the row is traced."""
        run = self.as_of.get(offset)
        return run is None or all(run.has_read(source, row) for source, row in cited)


@dataclass(frozen=True)
class TraceGroups:
    """Grouping of the rows of one derivative.

    Attributes:
        rows: all rows of the dataset.
        runs: the runs of the dataset.
    """

    rows: DatasetRows
    runs: Sequence[TransformRun]

    @cached_property
    def _firsts(self) -> Sequence[tuple[int, int]]:
        """Return the first offset and the index of each run that added rows."""
        return [
            (run.event.new_data.offset_interval.start, at)
            for at, run in enumerate(self.runs)
            if run.event.new_data is not None
        ]

    def place_of(self, offset: int) -> int | None:
        """Return the index of the run that added a row, None if there is none."""
        position = bisect_right(self._firsts, offset, key=lambda first: first[0]) - 1
        if position < 0:
            return None
        at = self._firsts[position][1]
        return at if self.runs[at].has(offset) else None

    def by_rows(self, wanted: Iterable[DatasetRow]) -> Iterator[TraceGroup]:
        """Group the rows of a row-by-row query by query."""
        by_query: defaultdict[SetTransform, list[DatasetRow]] = defaultdict(list)
        for row in wanted:
            by_query[self._run_of(row).set_transform].append(row)
        for rows in by_query.values():
            runs = {run.block.hash: run for run in map(self._run_of, rows)}
            yield TraceGroup(tuple(runs.values()), tuple(rows), by_rows=True)

    def by_run(self, wanted: Iterable[DatasetRow]) -> Iterator[TraceGroup]:
        """Group rows by the run as of which they are traced; retracted rows existed before their run."""
        by_place: defaultdict[int, list[DatasetRow]] = defaultdict(list)
        for row in wanted:
            by_place[self._as_of(row)].append(row)
        for at, rows in by_place.items():
            if at >= 0:
                yield TraceGroup((self.runs[at],), tuple(rows), by_rows=False)

    def together(self, wanted: Sequence[DatasetRow]) -> Iterator[TraceGroup]:
        """Group rows into as few traces as possible, each as of a run whose result contains all of its rows."""
        by_query: defaultdict[SetTransform, list[DatasetRow]] = defaultdict(list)
        for row in wanted:
            if self._as_of(row) >= 0:
                by_query[self.runs[self._as_of(row)].set_transform].append(row)
        for rows in by_query.values():
            if len({self._as_of(row) for row in rows}) < _MIN_RUNS:
                yield from self.by_run(rows)
                continue
            stays = self._stays(rows)
            waiting = sorted(rows, key=lambda row: (stays[row.offset], self._as_of(row)))
            while waiting:
                until = stays[waiting[0].offset]
                ready = [row for row in waiting if self._as_of(row) <= until]
                waiting = [row for row in waiting if self._as_of(row) > until]
                last = max(map(self._as_of, ready))
                earlier = {row.offset: self.runs[self._as_of(row)] for row in ready if self._as_of(row) < last}
                yield TraceGroup((self.runs[last],), tuple(ready), by_rows=False, as_of=earlier)

    def _stays(self, rows: Sequence[DatasetRow]) -> Mapping[int, int]:
        """Return, by offset of each row, the last run of the same query before an equal row was added again."""
        following = self.rows.equal_to_any(rows)
        stays = {}
        for row in rows:
            at = self._as_of(row)
            if row.operation.weight < 0:
                stays[row.offset] = at
                continue
            offsets = following[row.key]
            others = offsets[bisect_right(offsets, self._end_of(at)) :]
            changes = self.place_of(others[0]) if others else None
            ends = at if others else self._last_of_query[at]
            stays[row.offset] = ends if changes is None else min(changes - 1, self._last_of_query[at])
        return stays

    @cached_property
    def _last_of_query(self) -> Sequence[int]:
        """For each run, the last consecutive run with the same query."""
        last = list(range(len(self.runs)))
        for at in reversed(last[:-1]):
            if self.runs[at].set_transform == self.runs[at + 1].set_transform:
                last[at] = last[at + 1]
        return last

    def _end_of(self, at: int) -> int:
        """Return the offset of the last row that a run has added."""
        data = self.runs[at].event.new_data
        return -1 if data is None else data.offset_interval.end

    def _as_of(self, row: DatasetRow) -> int:
        """Return the index of the run as of which a row is traced; -1 for before the first one."""
        at = self._place(row)
        return at if row.operation.weight > 0 else at - 1

    def _run_of(self, row: DatasetRow) -> TransformRun:
        return self.runs[self._place(row)]

    def _place(self, row: DatasetRow) -> int:
        """Return the index of the run that added a row."""
        at = self.place_of(row.offset)
        if at is None:
            raise LookupError(row.offset)
        return at


def _up_to(given: contract.TransformRequestInput, count: int) -> contract.TransformRequestInput:
    """Limit an input to a number of its new rows."""
    interval = given.offset_interval
    if interval is None or count > interval.end - interval.start:
        return given
    return replace(given, offset_interval=replace(interval, end=interval.start + count - 1) if count else None)
