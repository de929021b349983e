"""The time at which a job is due next: pure arithmetic on its trigger, its past, and what is new.

Times are seconds since 1970, as the wall clock has them.
"""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import Final

from odfpy.coordinator.schedules.cron import next_time, zone_named
from odfpy.coordinator.schedules.schedule import Job, Trigger
from odfpy.values import dataclass

CLOCK_TOLERANCE: Final = 3600.0
"""Seconds that a clock may be set back while times by cron that have been are not run again."""


class Reason(Enum):
    """The reason of a run."""

    SCHEDULE = "schedule"
    ROWS = "rows"
    RETRY = "retry"
    MANUAL = "manual"
    INTERRUPTED = "interrupted"

    @property
    def is_another_try(self) -> bool:
        """True for a run that does what one before it did not get done."""
        return self in (Reason.RETRY, Reason.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class JobKey:
    """A job of a dataset.

    Attributes:
        dataset: id of the dataset, as its folder is named.
        job: the job.
    """

    dataset: str
    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHistory:
    """The past of a job, as far as its next time depends on it.

    Attributes:
        started: when its last run began; None if it never ran.
        attempt: the number of that try.
        failures: runs that failed since one that did not.
        retry_at: when it is tried again; None if it is not.
        retry_reason: why.
        seen_rows: rows of the dataset that its last run that did not fail has seen.
        tried: what was new for its last run, see `InputChanges.mark`.
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
    """The news for a job.

    Attributes:
        rows: number of rows that are new to it.
        any: whether there is anything new, such as a block without rows.
        mark: another text whenever there is something else.
        noticed: since when.
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
        reason: why.
    """

    at: float
    reason: Reason


def due(key: JobKey, trigger: Trigger, past: JobHistory, since: float, news: InputChanges | None) -> Due | None:
    """The time at which a job is due next; one that is over means now.

    Args:
        key: the job.
        trigger: its times.
        past: its past.
        since: when its schedule was written; times by cron before that do not count.
        news: what is new to it; None for a job that runs whether there is anything new or not.
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
    # What a run has tried in vain is for its retries: only more of it is a reason for another run.
    is_tried = news is not None and news.mark == past.tried and past.started is not None
    if trigger.rows is not None and news is not None and news.rows >= trigger.rows and not is_tried:
        found.append(Due(news.noticed + _jitter(key, trigger, news.noticed), Reason.ROWS))
    return min(found, key=lambda one: one.at, default=None)


def needs_news(job: Job, trigger: Trigger, *, is_derivative: bool) -> bool:
    """Return whether the times of a job depend on what is new to it.

    Args:
        job: the job.
        trigger: its times.
        is_derivative: whether its dataset is derived from others here.
    """
    return trigger.rows is not None or (job is Job.PULL and is_derivative and trigger.every is not None)


def _jitter(key: JobKey, trigger: Trigger, time: float) -> float:
    """The delay of a run, the same for everybody who asks."""
    if trigger.jitter is None:
        return 0.0
    seed = f"{key.dataset} {key.job.value} {time:.0f}".encode()
    share = int.from_bytes(hashlib.sha256(seed).digest()[:4], "big") / 2**32
    return share * trigger.jitter.seconds
