"""The schedule of a dataset: its jobs and their times. It is stored with the dataset, but not in its chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final

from odfpy.data.duration import Duration
from odfpy.data.scalars import U32, U64
from odfpy.data.timestamp import Timestamp
from odfpy.values import dataclass

if TYPE_CHECKING:
    from typing_extensions import Self


class Job(Enum):
    """A kind of job that a scheduler runs for a dataset."""

    PULL = "pull"
    COMPACT = "compact"
    VERIFY = "verify"
    PUSH = "push"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """The times of a job: by `cron`, or by `every` and `rows`, whichever is due first.

    Attributes:
        cron: five fields: minute, hour, day of the month, month, day of the week.
        timezone: name of the time zone of `cron`, such as Europe/Berlin; UTC by default.
        every: interval between the starts of two runs.
        rows: number of new rows after which the job runs.
        jitter: maximum delay; the actual delay is a fraction of it that depends on dataset and time.
    """

    KIND: ClassVar[str] = "a job of a schedule"

    cron: str | None = None
    timezone: str | None = None
    every: Duration | None = None
    rows: U64 | None = None
    jitter: Duration | None = None

    @property
    def in_words(self) -> str:
        """Return the times in words: `every 1h`, `15 6 * * mon-fri (Europe/Berlin)`."""
        if self.cron is not None:
            return f"{self.cron} ({self.timezone or 'UTC'})"
        rows = None if self.rows is None else f"{self.rows} new row{'' if self.rows == 1 else 's'}"
        words = [rows and f"after {rows}", None if self.every is None else f"every {self.every}"]
        return " or ".join(filter(None, words))

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """Return a copy with changes; times of the other kind are removed.

        Args:
            changes: new values by attribute name; None leaves an attribute unchanged.
        """
        given = {name: value for name, value in changes.items() if value is not None}
        others: dict[str, Any] = {}
        if "cron" in given:
            others = {"every": None, "rows": None}
        elif "every" in given or "rows" in given:
            others = {"cron": None, "timezone": None}
        return replace(self, **(others | given))


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyTrigger(Trigger):
    """The times of a verification.

    Attributes:
        integrity_only: whether to skip the replay of transforms.
    """

    integrity_only: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PushTrigger(Trigger):
    """The times of a push.

    Attributes:
        to: the remote; that of the last push by default.
    """

    to: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Retries after a failed run; the delay doubles with each retry.

    Attributes:
        attempts: total number of attempts, including the first one.
        delay: delay before the second attempt.
        max_delay: maximum delay between two attempts.
    """

    KIND: ClassVar[str] = "retry"

    attempts: U32 | None = None
    delay: Duration | None = None
    max_delay: Duration | None = None

    def allows(self, attempt: int) -> bool:
        """Return whether an attempt is permitted; the first one is number 1."""
        return attempt <= (_ATTEMPTS if self.attempts is None else self.attempts)

    def seconds_before(self, attempt: int) -> float:
        """Return the delay in seconds before an attempt; attempt 2 is the first with a delay."""
        delay = _DELAY if self.delay is None else self.delay
        most = _MAX_DELAY if self.max_delay is None else self.max_delay
        return float(min(most.seconds, delay.seconds * 2 ** min(attempt - 2, _MAX_DOUBLINGS)))


_ATTEMPTS: Final = 5
_DELAY: Final = Duration(30)
_MAX_DELAY: Final = Duration(3600)
_MAX_DOUBLINGS: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSchedule:
    """The schedule of a dataset.

    Attributes:
        pull, compact, verify, push: the times of each job; None if it is not scheduled.
        retry: retries of failed runs.
        max_age: promised freshness; a dataset whose last rows are older than this is late.
        timeout: maximum duration of a run.
        paused: whether all jobs and promises are suspended.
    """

    KIND: ClassVar[str] = "a schedule"

    pull: Trigger | None = None
    compact: Trigger | None = None
    verify: VerifyTrigger | None = None
    push: PushTrigger | None = None
    retry: Retry | None = None
    max_age: Duration | None = None
    timeout: Duration | None = None
    paused: bool | None = None

    @property
    def jobs(self) -> Mapping[Job, Trigger]:
        """Return the scheduled jobs with their times."""
        every = {Job.PULL: self.pull, Job.COMPACT: self.compact, Job.VERIFY: self.verify, Job.PUSH: self.push}
        return {job: trigger for job, trigger in every.items() if trigger is not None}

    def with_job(self, job: Job, trigger: Trigger | None) -> DatasetSchedule:
        """Return a copy with other times of a job; None removes the job.

        Args:
            job: the job.
            trigger: times of the job, an instance of the job's trigger class.
        """
        changes: dict[str, Any] = {job.value: trigger}
        return replace(self, **changes)

    @property
    def is_paused(self) -> bool:
        """True if all jobs are suspended."""
        return bool(self.paused)

    def is_late(self, last_data: Timestamp | None, now: Timestamp) -> bool:
        """Return whether a dataset is older than promised; before its first rows, the scheduler decides.

        Args:
            last_data: time of the last rows.
            now: the current time.
        """
        if self.max_age is None or self.is_paused or last_data is None:
            return False
        return Duration.between(last_data, now) > self.max_age

    @property
    def tries(self) -> Retry:
        """Return the retry policy, or the default one."""
        return self.retry or Retry()
