"""Freshness: a dataset is late if its latest rows are older than its schedule promises, even if nothing has failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from odfpy.automation.job_planner import Planned
from odfpy.data.duration import Duration


class FreshnessChecks:
    """Tracks the late datasets of a workspace; independent of the clock."""

    def __init__(self) -> None:
        self._due: dict[str, tuple[float, Duration]] = {}
        self._late: set[str] = set()

    def remember(self, late: Iterable[str]) -> None:
        """Set the datasets that are known to be late, so that they are not reported again."""
        self._late = set(late)

    def put(self, dataset: str, planned: Planned, last_data: float | None) -> None:
        """Set the promise of a dataset, and the time of its latest rows.

        Args:
            dataset: id of the dataset.
            planned: its schedule; a paused schedule promises nothing.
            last_data: time of the latest rows, None before the first ones; then the promise counts from the schedule.
        """
        promise = planned.schedule.max_age
        if promise is None or planned.schedule.is_paused:
            self._due.pop(dataset, None)
        else:
            last = planned.since if last_data is None else last_data
            self._due[dataset] = (last + promise.seconds, promise)

    def drop(self, dataset: str) -> None:
        """Remove a dataset."""
        self._due.pop(dataset, None)
        self._late.discard(dataset)

    def changes(self, now: float) -> Iterator[tuple[str, bool, str]]:
        """Yield the datasets that have become late since the last call, or are no longer late, with a description.

        Args:
            now: current time.
        """
        for dataset, (due, promise) in self._due.items():
            is_late = now > due
            if is_late != (dataset in self._late):
                (self._late.add if is_late else self._late.discard)(dataset)
                age = Duration(int(now - due) + promise.seconds).in_words
                text = (
                    f"the last rows arrived {age} ago, but its schedule promises {promise}"
                    if is_late
                    else "new rows have arrived"
                )
                yield dataset, is_late, text
