"""Schedules as users write them: parsed from a tree, with positions of errors, and validated against a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from odfpy.chain.state import ChainState
from odfpy.codec.tree import Path, TreeError, from_tree
from odfpy.coordinator.schedules.cron import check_cron, zone_named
from odfpy.coordinator.schedules.schedule import DatasetSchedule, Job, PushTrigger, Trigger, VerifyTrigger
from odfpy.data.duration import Duration
from odfpy.dataset.kind import DatasetKind
from odfpy.errors import InvalidValue, UsageError
from odfpy.values import dataclass

TRIGGERS: Final = {Job.PULL: Trigger, Job.COMPACT: Trigger, Job.VERIFY: VerifyTrigger, Job.PUSH: PushTrigger}
"""The trigger class of each job."""

MAX_ATTEMPTS: Final = (1 << 32) - 1
MAX_ROWS: Final = (1 << 63) - 1
_EXAMPLES: Final = 'Write `cron: "15 6 * * mon-fri"`, `every: 1h` or `rows: 1000`.'


@dataclass(frozen=True, slots=True)
class Target:
    """The properties of a dataset that its jobs depend on.

    Attributes:
        is_derivative: whether it is derived from other datasets here.
        polls: whether it has a polling source.
        is_copy: whether it is pulled from another location.
    """

    is_derivative: bool
    polls: bool
    is_copy: bool = False

    @classmethod
    def of(cls, state: ChainState, *, is_copy: bool) -> Target:
        """Return the properties of a dataset.

        Args:
            state: state of its chain.
            is_copy: whether it is pulled from another location.
        """
        derivative = state.kind is DatasetKind.DERIVATIVE
        return cls(derivative and not is_copy, state.polling_source is not None, is_copy)


def read_schedule(tree: Any, path: Path, target: Target | None = None) -> DatasetSchedule:
    """Parse a schedule from a tree.

    Args:
        tree: the schedule in a document.
        path: its path in the document.
        target: the dataset of the schedule, None if unknown.

    Raises:
        TreeError: the schedule is invalid; the message names the position.
    """
    schedule: DatasetSchedule = from_tree(DatasetSchedule, tree, path)
    check_schedule(schedule, path, target)
    return schedule


def check_schedule(schedule: DatasetSchedule, path: Path, target: Target | None = None) -> None:
    """Check that a schedule is valid, for a given dataset or in general.

    Args:
        schedule: the schedule.
        path: its path in the document.
        target: the dataset of the schedule, None if unknown.

    Raises:
        TreeError: the schedule is invalid.
    """
    for place, fault in _faults(schedule, target):
        raise TreeError((*path, *place), fault.message, hint=fault.hint)


def _faults(schedule: DatasetSchedule, target: Target | None) -> Iterator[tuple[Path, InvalidValue]]:
    if not schedule.jobs and schedule.max_age is None:
        yield (), InvalidValue("nothing is scheduled", hint="Name a job: pull, compact, verify or push; or `maxAge`.")
    for job, trigger in schedule.jobs.items():
        for place, fault in _faults_of_trigger(trigger):
            yield (job.value, *place), fault
        if target is not None:
            for place, fault in _faults_for(target, job, trigger):
                yield (job.value, *place), fault
    retry = schedule.retry
    if retry is not None and retry.attempts == 0:
        yield ("retry", "attempts"), InvalidValue("there is at least one attempt", hint="1 is for no retries.")
    elif retry is not None and (retry.attempts or 0) > MAX_ATTEMPTS:
        yield ("retry", "attempts"), InvalidValue(f"there are {MAX_ATTEMPTS} attempts at most")
    lengths = {"maxAge": schedule.max_age, "timeout": schedule.timeout}
    yield from ((((name,)), _too_short()) for name, length in lengths.items() if length == Duration())


def _faults_of_trigger(trigger: Trigger) -> Iterator[tuple[Path, InvalidValue]]:
    if trigger.cron is not None:
        if trigger.every is not None or trigger.rows is not None:
            other = "every" if trigger.every is not None else "rows"
            yield (other,), InvalidValue(f"`cron` and `{other}` cannot be combined", hint=_EXAMPLES)
        try:
            check_cron(trigger.cron)
        except InvalidValue as error:
            yield ("cron",), error
    elif trigger.every is None and trigger.rows is None:
        yield (), InvalidValue("it has no time", hint=_EXAMPLES)
    if trigger.timezone is not None:
        if trigger.cron is None:
            yield ("timezone",), InvalidValue("a time zone is for `cron`", hint="Leave it out.")
        try:
            zone_named(trigger.timezone)
        except InvalidValue as error:
            yield ("timezone",), error
    if trigger.every == Duration():
        yield ("every",), _too_short()
    if trigger.rows == 0:
        yield ("rows",), InvalidValue("at least one row must be new", hint="Write `rows: 1`.")
    elif trigger.rows is not None and trigger.rows > MAX_ROWS:
        yield ("rows",), InvalidValue(f"a dataset has {MAX_ROWS} rows at most")
    if trigger.jitter is not None and trigger.every is not None and trigger.jitter >= trigger.every:
        yield ("jitter",), InvalidValue("the jitter must be less than `every`")


def _faults_for(target: Target, job: Job, trigger: Trigger) -> Iterator[tuple[Path, InvalidValue]]:
    if job is Job.PULL and not (target.is_derivative or target.polls or target.is_copy):
        yield (
            (),
            InvalidValue(
                "the dataset has no source to pull from", hint="Its rows come by `odf ingest`. Schedule another job."
            ),
        )
    elif job is Job.PULL and not target.is_derivative and trigger.rows is not None:
        where = "its origin" if target.is_copy else "its source"
        yield (
            ("rows",),
            InvalidValue(f"the number of rows of {where} is unknown until it is fetched", hint="Write `every: 1h`."),
        )
    if job is Job.COMPACT and (target.is_derivative or target.is_copy):
        what = "copy" if target.is_copy else "derivative"
        yield (), InvalidValue(f"a {what} is not compacted", hint="Only root datasets are.")


def _too_short() -> InvalidValue:
    return InvalidValue("it must be at least a second", hint="Write `1h`, for example.")


def require_target(schedule: DatasetSchedule, target: Target, name: str) -> None:
    """Check a schedule given in a command.

    Args:
        schedule: the schedule.
        target: the dataset of the schedule.
        name: name of the dataset, for the message.

    Raises:
        UsageError: the schedule does not apply to the dataset.
    """
    try:
        check_schedule(schedule, (), target)
    except TreeError as error:
        raise UsageError(f"{name}: {error.message}", hint=error.hint) from error
