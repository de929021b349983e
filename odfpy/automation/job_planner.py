"""The planner of a scheduler, which decides which runs to start now. It uses no clock, files or processes.

The scheduler passes in schedules, changes and ended runs; the planner returns the runs to start. Nothing is queued: due
times are computed each time, so that a changed or paused schedule leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from enum import Enum
from typing import Final

from odfpy.automation.due import (
    CLOCK_TOLERANCE,
    Due,
    InputChanges,
    JobHistory,
    JobKey,
    Reason,
    due,
    needs_input_changes,
)
from odfpy.coordinator.schedules.schedule import DatasetSchedule, Job, Trigger
from odfpy.values import dataclass

_BACKWARDS: Final = 1.0
"""Seconds by which the clock may go back without being treated as set back."""


class Outcome(Enum):
    """The outcome of a run."""

    UPDATED = "updated"
    UP_TO_DATE = "up to date"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"

    @property
    def has_succeeded(self) -> bool:
        """True if the run has succeeded."""
        return self in (Outcome.UPDATED, Outcome.UP_TO_DATE)


@dataclass(frozen=True, slots=True)
class Planned:
    """A dataset with its schedule.

    Attributes:
        schedule: its schedule.
        since: time at which the schedule was written.
        is_derivative: whether the dataset is derived from other local datasets.
    """

    schedule: DatasetSchedule
    since: float
    is_derivative: bool = False


@dataclass(frozen=True, slots=True)
class Start:
    """A run to start now.

    Attributes:
        key: the job.
        reason: the reason of the run.
        due_at: time at which the run became due.
        attempt: number of the attempt.
        request: id of a manually requested run; None for other runs.
    """

    key: JobKey
    reason: Reason
    due_at: float
    attempt: int
    request: str | None = None


@dataclass
class _Entry:
    """A job and its next due time."""

    trigger: Trigger
    past: JobHistory = field(default_factory=JobHistory)
    news: InputChanges | None = None
    due: Due | None = None


class JobPlanner:
    """The jobs of a workspace, and their due times.

    Attributes:
        parallel: maximum number of concurrent runs.
    """

    def __init__(self, parallel: int) -> None:
        self.parallel = parallel
        self._planned: dict[str, Planned] = {}
        self._entries: dict[JobKey, _Entry] = {}
        self._pasts: dict[JobKey, JobHistory] = {}
        self._requests: dict[str, tuple[JobKey, float]] = {}
        self._running: dict[str, Start] = {}
        self._now = 0.0

    # --- Input ---

    def remember(self, pasts: Mapping[JobKey, JobHistory]) -> None:
        """Set the histories of jobs before this scheduler; must be called first."""
        self._pasts.update(pasts)

    def put(self, dataset: str, planned: Planned, now: float) -> None:
        """Add or replace the schedule of a dataset.

        Args:
            dataset: id of the dataset.
            planned: its schedule.
            now: current time.
        """
        before = {job: self._entries.pop(JobKey(dataset, job), None) for job in Job}
        self._planned[dataset] = replace(planned, since=min(planned.since, now))
        for job, trigger in planned.schedule.jobs.items():
            key, old = JobKey(dataset, job), before[job]
            news = old.news if old is not None else None
            if news is None and needs_input_changes(job, trigger, is_derivative=planned.is_derivative):
                news = InputChanges()
            entry = self._entries[key] = _Entry(trigger, self._pasts.get(key, JobHistory()), news)
            self._wake(entry, now)
            self._find_due(key)

    def drop(self, dataset: str) -> None:
        """Remove the schedule of a dataset; its history is retained in case the schedule is restored."""
        self._planned.pop(dataset, None)
        for job in Job:
            self._entries.pop(JobKey(dataset, job), None)

    def set_changes(self, key: JobKey, news: InputChanges) -> None:
        """Set the changes for a job."""
        entry = self._entries.get(key)
        if entry is None or entry.news is None:
            return
        if entry.due is not None and entry.due.reason is Reason.ROWS:  # more changes of the same kind
            news = replace(news, noticed=entry.news.noticed)
        entry.news = news
        self._find_due(key)

    def ask(self, request: str, key: JobKey, now: float) -> None:
        """Request an immediate run of a job.

        Args:
            request: id of the requested run.
            key: the job.
            now: current time.
        """
        self._requests.setdefault(request, (key, now))

    def ended(self, start: Start, outcome: Outcome, now: float, seen_rows: int | None = None) -> JobHistory:
        """Record the end of a run, and return the new history of its job, which the caller must store.

        Args:
            start: the run.
            outcome: outcome of the run.
            now: current time.
            seen_rows: number of rows of the dataset at the start of the run.
        """
        self._running.pop(start.key.dataset, None)
        past = self._pasts.get(start.key, JobHistory())
        planned = self._planned.get(start.key.dataset)
        tries = planned.schedule.tries if planned is not None else DatasetSchedule().tries
        if outcome.has_succeeded:
            seen = past.seen_rows if seen_rows is None else seen_rows
            past = replace(past, failures=0, retry_at=None, seen_rows=seen)
        elif outcome is Outcome.SKIPPED:
            past = replace(past, retry_at=None)
        else:
            is_failure = outcome is Outcome.FAILED
            reason = Reason.RETRY if is_failure else Reason.INTERRUPTED
            again = now + (tries.seconds_before(start.attempt + 1) if is_failure else 0.0)
            # An interrupted run does not count as an attempt, and is repeated once.
            is_allowed = tries.allows(start.attempt + is_failure)
            past = replace(
                past,
                failures=past.failures + is_failure,
                retry_at=again if is_allowed else None,
                retry_reason=reason,
            )
        self._put_past(start.key, past)
        return past

    # --- Output ---

    def start_next(
        self, now: float, wanted: Callable[[Start], bool] = lambda _start: True
    ) -> Iterator[tuple[Start, JobHistory, JobHistory]]:
        """Yield the runs to start now, each with the previous and the new history of its job.

        Args:
            now: current time.
            wanted: returns whether a run may start.

        Each run counts as running until `ended` or `withdraw` is called.
        """
        if now < self._now - _BACKWARDS:
            self._clock_went_back(now)
        self._now = now
        for start in sorted(self._candidates(now), key=lambda one: (one.request is None, one.due_at)):
            if len(self._running) >= self.parallel:
                return
            if start.key.dataset in self._running or not wanted(start):
                continue
            self._running[start.key.dataset] = start
            before = self._pasts.get(start.key, JobHistory())
            entry = self._entries.get(start.key)
            mark = entry.news.mark if entry is not None and entry.news is not None else ""
            past = replace(before, started=now, attempt=start.attempt, retry_at=None, tried=mark)
            self._put_past(start.key, past)
            self._requests.pop(start.request or "", None)
            yield start, before, past

    def withdraw(self, start: Start, before: JobHistory) -> None:
        """Undo the start of a run that did not start, since it could not be recorded.

        Args:
            start: the run.
            before: previous history of its job.
        """
        self.cancel(start, before)
        if start.request is not None:
            self._requests[start.request] = (start.key, start.due_at)

    def cancel(self, start: Start, before: JobHistory) -> None:
        """Cancel a run that will not start, because its dataset was deleted or the request was withdrawn.

        Args:
            start: the run.
            before: previous history of its job, including a due retry.
        """
        self._running.pop(start.key.dataset, None)
        self._put_past(start.key, before)

    def adopt_running(self, start: Start) -> None:
        """Record a run that another scheduler has started."""
        self._running[start.key.dataset] = start

    def history_of(self, key: JobKey) -> JobHistory:
        """Return the history of a job."""
        return self._pasts.get(key, JobHistory())

    def due_of(self, key: JobKey) -> Due | None:
        """Return when a job is next due."""
        entry = self._entries.get(key)
        return None if entry is None or self._is_paused(key) else entry.due

    @property
    def is_idle(self) -> bool:
        """True if nothing is running."""
        return not self._running

    # --- Helpers ---

    def _candidates(self, now: float) -> Iterator[Start]:
        for request, (key, at) in self._requests.items():
            yield Start(key, Reason.MANUAL, at, 1, request)
        for key, entry in self._entries.items():
            found = entry.due
            if found is not None and found.at <= now and not self._is_paused(key):
                attempt = entry.past.attempt + 1 if found.reason.is_another_try else 1
                yield Start(key, found.reason, found.at, attempt)

    def _is_paused(self, key: JobKey) -> bool:
        return self._planned[key.dataset].schedule.is_paused

    def _put_past(self, key: JobKey, past: JobHistory) -> None:
        self._pasts[key] = past
        entry = self._entries.get(key)
        if entry is not None:
            entry.past = past
            self._find_due(key)

    def _find_due(self, key: JobKey) -> None:
        entry, planned = self._entries[key], self._planned[key.dataset]
        entry.due = due(key, entry.trigger, entry.past, planned.since, entry.news)

    def _clock_went_back(self, now: float) -> None:
        for dataset, planned in self._planned.items():
            self._planned[dataset] = replace(planned, since=min(planned.since, now))
        for key, entry in self._entries.items():
            self._wake(entry, now)
            self._pasts[key] = entry.past
            self._find_due(key)

    def _wake(self, entry: _Entry, now: float) -> None:
        """Reschedule a job whose history is in the future, because the clock was set back.

        Intervals count from now on. Past cron times are not repeated, unless the clock was so far ahead that it must
        have been wrong.
        """
        past = entry.past
        tolerance = 0.0 if entry.trigger.cron is None else CLOCK_TOLERANCE
        if past.started is not None and past.started > now + tolerance:
            past = replace(past, started=now)
        if past.retry_at is not None and past.retry_at > now + CLOCK_TOLERANCE:
            past = replace(past, retry_at=now)
        entry.past = past
