"""Due times of jobs, as a pure function of trigger, history and changes.

Times are seconds since the epoch, by the wall clock.
"""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import Final

from odfpy.coordinator.schedules.cron import next_time, zone_named
from odfpy.coordinator.schedules.schedule import Job, Trigger
from odfpy.values import dataclass

CLOCK_TOLERANCE: Final = 3600.0
"""Seconds by which the clock may be set back without repeating past cron times."""


class Reason(Enum):
    """The reason for a run."""

    SCHEDULE = "schedule"
    ROWS = "rows"
    RETRY = "retry"
    MANUAL = "manual"
    INTERRUPTED = "interrupted"

    @property
    def is_another_try(self) -> bool:
        """True if the run retries an earlier one."""
        return self in (Reason.RETRY, Reason.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class JobKey:
    """The identity of a job: dataset and kind of work.

    Attributes:
        dataset: id of the dataset, as in the name of its folder.
        job: the job.
    """

    dataset: str
    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHistory:
    """The part of a job's history that determines its next time.

    Attributes:
        started: start of the last run; None if there was none.
        attempt: number of the last attempt.
        failures: number of failed runs since the last success.
        retry_at: time of the next retry; None if no retry is due.
        retry_reason: reason of this retry.
        seen_rows: number of rows of the dataset in the last successful run.
        tried: the changes that the last run has processed, see `InputChanges.mark`.
    """

    started: float | None = None
    attempt: int = 0
    failures: int = 0
    retry_at: float | None = None
    retry_reason: Reason = Reason.RETRY
    seen_rows: int = 0
    tried: str = ""


@dataclass(frozen=True, slots=True)
class InputChanges:
    """Changes for a job: input that it has not processed.

    Attributes:
        rows: number of new rows.
        any: whether there is any change, including blocks without rows.
        mark: text that identifies the changes.
        noticed: time at which the changes were first noticed.
    """

    rows: int = 0
    any: bool = False
    mark: str = ""
    noticed: float = 0.0


@dataclass(frozen=True, slots=True, order=True)
class Due:
    """A time at which a job is due.

    Attributes:
        at: the time.
        reason: the reason.
    """

    at: float
    reason: Reason


def due(key: JobKey, trigger: Trigger, past: JobHistory, since: float, news: InputChanges | None) -> Due | None:
    """Return when a job is next due; a time in the past means now.

    Args:
        key: the job.
        trigger: its trigger.
        past: its history.
        since: time at which its schedule was written; earlier cron times are ignored.
        news: its changes; None for a job that does not depend on changes.
    """
    found = [Due(past.retry_at, past.retry_reason)] if past.retry_at is not None else []
    if trigger.cron is not None:
        base = max(past.started or 0.0, since)
        slot = next_time(trigger.cron, zone_named(trigger.timezone), base)
        if slot is not None:
            found.append(Due(slot + _jitter(key, trigger, slot), Reason.SCHEDULE))
    if trigger.every is not None and (news is None or news.any):
        base = since if past.started is None else past.started + trigger.every.seconds
        base = base if news is None else max(base, news.noticed)
        found.append(Due(base + _jitter(key, trigger, base), Reason.SCHEDULE))
    # Changes that a run has failed to process are left to retries: only further changes cause another run.
    is_tried = news is not None and news.mark == past.tried and past.started is not None
    if trigger.rows is not None and news is not None and news.rows >= trigger.rows and not is_tried:
        found.append(Due(news.noticed + _jitter(key, trigger, news.noticed), Reason.ROWS))
    return min(found, key=lambda one: one.at, default=None)


def needs_input_changes(job: Job, trigger: Trigger, *, is_derivative: bool) -> bool:
    """Return whether the times of a job depend on changes.

    Args:
        job: the job.
        trigger: its trigger.
        is_derivative: whether its dataset is derived from other local datasets.
    """
    return trigger.rows is not None or (job is Job.PULL and is_derivative and trigger.every is not None)


def _jitter(key: JobKey, trigger: Trigger, time: float) -> float:
    """Return the jitter of a run, which is deterministic."""
    if trigger.jitter is None:
        return 0.0
    seed = f"{key.dataset} {key.job.value} {time:.0f}".encode()
    share = int.from_bytes(hashlib.sha256(seed).digest()[:4], "big") / 2**32
    return share * trigger.jitter.seconds
