"""`odf schedule`: schedules of jobs for datasets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.cli.grammar import Form, Name, Names, command, group, session_of, whole_number
from odfpy.data.amounts import count_of
from odfpy.errors import NotFound, OdfError, UsageError, did_you_mean

if TYPE_CHECKING:
    from odfpy.cli.session import Session
    from odfpy.coordinator.schedules.schedule import DatasetSchedule, Job, Retry, Trigger
    from odfpy.coordinator.storage.storage import StoredDataset
    from odfpy.data.duration import Duration

app = group("Schedules: when `odf run` pulls, compacts, verifies and pushes datasets.")

JobOption = Annotated[str | None, typer.Option("--job", help="pull, compact, verify or push.", metavar="JOB")]


@command(
    app,
    "odf schedule set com.example.rates --every 1h",
    "odf schedule set com.example.rates --cron '15 6 * * mon-fri' --timezone Europe/Berlin --jitter 5m --max-age 2d",
    "odf schedule set com.example.upper --rows 1000 --every 1h",
    "odf schedule set com.example.rates --job push --rows 1 --to mirror/rates",
    name="set",
)
def set_(
    context: typer.Context,
    name: Name,
    job: JobOption = None,
    cron: Annotated[
        str | None, typer.Option(help="Five fields: minute, hour, day, month, day of the week.", metavar="CRON")
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(help="Time zone of --cron, such as Europe/Berlin; UTC by default.", metavar="ZONE")
    ] = None,
    every: Annotated[str | None, typer.Option(help="Time between two runs, such as 1h.", metavar="DURATION")] = None,
    rows: Annotated[str | None, typer.Option(help="Run when this many rows are new.", metavar="N")] = None,
    jitter: Annotated[
        str | None,
        typer.Option(help="Spread starts: delay runs of this dataset by a fixed part of this.", metavar="DURATION"),
    ] = None,
    integrity: Annotated[
        bool | None, typer.Option("--integrity/--replay", help="Verify without replay, or with replay.")
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="Repository to push to; by default the last one.", metavar="REPOSITORY")
    ] = None,
    attempts: Annotated[
        str | None, typer.Option(help="Maximum number of attempts of a failing run.", metavar="N")
    ] = None,
    retry_delay: Annotated[
        str | None, typer.Option(help="Time before the second attempt; it doubles.", metavar="DURATION")
    ] = None,
    max_retry_delay: Annotated[
        str | None, typer.Option(help="Maximum time between two attempts.", metavar="DURATION")
    ] = None,
    max_age: Annotated[
        str | None, typer.Option(help="A dataset whose last rows are older than this is late.", metavar="DURATION")
    ] = None,
    timeout: Annotated[str | None, typer.Option(help="Maximum duration of a run.", metavar="DURATION")] = None,
) -> None:
    """Set when a job runs, and the promised freshness; fields that are not given stay."""
    from odfpy.coordinator.schedules.schedule import Job

    times = {
        "cron": cron,
        "timezone": timezone,
        "every": _duration(every, "--every"),
        "rows": whole_number(rows, "--rows", at_least=1),
        "jitter": _duration(jitter, "--jitter"),
    }
    tries = {
        "attempts": whole_number(attempts, "--attempts", at_least=1),
        "delay": _duration(retry_delay, "--retry-delay"),
        "max_delay": _duration(max_retry_delay, "--max-retry-delay"),
    }
    promises = {"max_age": _duration(max_age, "--max-age"), "timeout": _duration(timeout, "--timeout")}
    session = session_of(context)
    dataset = session.workspace.storage.get(name)
    schedule = _schedule_of(dataset) or _nothing()
    has_times = any(value is not None for value in (*times.values(), to, integrity))
    if not has_times and job is not None:
        raise UsageError("A job needs a time", hint="Give --cron, --every or --rows.")
    if has_times:
        chosen = _job(job) or Job.PULL
        schedule = schedule.with_job(chosen, _trigger(schedule, chosen, times, integrity=integrity, to=to))
    if any(value is not None for value in tries.values()):
        schedule = replace(schedule, retry=_with(schedule.retry or _no_retry(), tries))
    schedule = _with(schedule, promises)
    _save(dataset, schedule)
    _say(session, dataset, schedule)


@command(app, "odf schedule show com.example.rates", "odf schedule show com.example.rates -o json")
def show(context: typer.Context, name: Name, form: Form = None) -> None:
    """Show the schedule of a dataset, as in a manifest."""
    from odfpy.codec.tree import to_tree

    session = session_of(context)
    dataset = session.workspace.storage.get(name)
    session.output_as(form).tree({"schedule": to_tree(_require(dataset))})


@command(app, "odf schedule list", "odf schedule list com.example.% -o json", name="list")
def list_(context: typer.Context, names: Names = None, form: Form = None) -> None:
    """List the schedules."""
    session = session_of(context)
    output = session.output_as(form)
    storage = session.workspace.storage
    found = [line for one in (storage.match(names) if names else storage.datasets()) for line in _lines(one)]
    if not found and output.for_people:
        output.info("No schedules; set one with `odf schedule set NAME --every 1h`.")
        return
    columns = {"Name": "name", "Job": "job", "When": "when", "Promise": "maxAge", "State": "state"}
    output.records(found, columns)
    _remark_if_nothing_runs(session)


@command(app, "odf schedule pause com.example.rates", "odf schedule pause com.example.%")
def pause(context: typer.Context, names: Names = None) -> None:
    """Pause schedules until `odf schedule resume`; no freshness is promised meanwhile."""
    _set_paused(session_of(context), names, is_paused=True)


@command(app, "odf schedule resume com.example.rates")
def resume(context: typer.Context, names: Names = None) -> None:
    """Resume paused schedules; missed cron times are skipped."""
    _set_paused(session_of(context), names, is_paused=False)


@command(app, "odf schedule remove com.example.rates", "odf schedule remove com.example.rates --job compact")
def remove(context: typer.Context, name: Name, job: JobOption = None) -> None:
    """Remove the schedule of a dataset, or that of one job."""
    from odfpy.coordinator.schedules.keeping import drop_schedule

    session = session_of(context)
    dataset = session.workspace.storage.get(name)
    chosen = _job(job)
    if chosen is not None:
        schedule = _require(dataset)
        if chosen not in schedule.jobs:
            raise NotFound(f"{dataset.handle} has no scheduled {chosen.value}", hint="`odf schedule list` shows all.")
        schedule = schedule.with_job(chosen, None)
        if schedule.jobs or schedule.max_age is not None:
            _save(dataset, schedule)
            session.output.info(f"{dataset.handle}: no {chosen.value} any more")
            return
    if not drop_schedule(dataset):
        raise _no_schedule(dataset)
    session.output.info(f"{dataset.handle} is no longer scheduled")


@command(
    app,
    "odf schedule next",
    "odf schedule next com.example.rates -n 10",
    "odf schedule next com.example.rates --after 2026-03-27 -n 4",
    name="next",
)
def next_(
    context: typer.Context,
    names: Names = None,
    num: Annotated[str, typer.Option("-n", help="Maximum number per job.", metavar="N")] = "1",
    after: Annotated[
        str | None, typer.Option(help="From this time on, as if each job had run then.", metavar="TIME")
    ] = None,
    form: Form = None,
) -> None:
    """Show the next runs, in UTC and in the time zone of the schedule."""
    from odfpy.automation.preview import upcoming
    from odfpy.data.timestamp import NANOS_PER_SECOND, Timestamp

    session = session_of(context)
    output = session.output_as(form)
    count = whole_number(num, "-n", at_least=1) or 1
    since = None if after is None else Timestamp.parse(after).nanos / NANOS_PER_SECOND
    found = sorted(upcoming(session.workspace, names or (), count, since), key=lambda one: (one.at or "~", one.dataset))
    trees = [
        {"name": one.dataset, "job": one.job, "at": one.at, "local": one.local, "when": one.trigger} for one in found
    ]
    if not trees and output.for_people:
        output.info("No schedules, or all are paused; see `odf schedule list`.")
        return
    output.records(trees, {"At": "at", "Local": "local", "Name": "name", "Job": "job", "When": "when"})
    _remark_if_nothing_runs(session)


@command(app, "odf schedule run com.example.rates", "odf schedule run com.example.rates --job verify")
def run(context: typer.Context, name: Name, job: JobOption = None, form: Form = None) -> int:
    """Run a job now: in the active scheduler, or in this process if there is none."""
    from odfpy.automation.run_now import run_now
    from odfpy.cli.automation.lines import has_failed, line_of

    session = session_of(context)
    output = session.output_as(form)
    row = run_now(session.workspace, session.workspace.storage.get(name), _job(job))
    if output.for_people:
        output.info(line_of(row))
    else:
        output.tree(dict(row))
    return 1 if has_failed(row) else 0


# --- Helpers ---------------------------------------------------------------------------------------------------------


def _job(text: str | None) -> Job | None:
    from odfpy.coordinator.schedules.schedule import Job

    if text is None:
        return None
    names = [job.value for job in Job]
    if text not in names:
        raise UsageError(
            f"No such job: {text!r}", hint=did_you_mean(text, names, otherwise=f"One of: {', '.join(names)}")
        )
    return Job(text)


def _duration(text: str | None, option: str) -> Duration | None:
    from odfpy.data.duration import Duration
    from odfpy.errors import InvalidValue

    try:
        return None if text is None else Duration.parse(text)
    except InvalidValue as error:
        raise error.with_context(option) from error


def _trigger(
    schedule: DatasetSchedule, job: Job, times: dict[str, Any], *, integrity: bool | None, to: str | None
) -> Trigger:
    """Return the trigger of a job, with the given changes."""
    from odfpy.coordinator.schedules.form import TRIGGERS

    of_others = {"--integrity" if integrity else "--replay": (integrity, "verify"), "--to": (to, "push")}
    for option, (given, owner) in of_others.items():
        if given is not None and job.value != owner:
            raise UsageError(f"{option} is for --job {owner}")
    more: dict[str, Any] = {} if integrity is None else {"integrity_only": integrity}
    more |= {} if to is None else {"to": to}
    return (schedule.jobs.get(job) or TRIGGERS[job]()).changed(times | more)


def _with(value: Any, changes: dict[str, Any]) -> Any:
    """Return a copy of a value with the given fields replaced."""
    return replace(value, **{name: change for name, change in changes.items() if change is not None})


def _nothing() -> DatasetSchedule:
    from odfpy.coordinator.schedules.schedule import DatasetSchedule

    return DatasetSchedule()


def _no_retry() -> Retry:
    from odfpy.coordinator.schedules.schedule import Retry

    return Retry()


def _schedule_of(dataset: StoredDataset) -> DatasetSchedule | None:
    from odfpy.coordinator.schedules.file import load_schedule

    return load_schedule(dataset.folder)


def _require(dataset: StoredDataset) -> DatasetSchedule:
    schedule = _schedule_of(dataset)
    if schedule is None:
        raise _no_schedule(dataset)
    return schedule


def _no_schedule(dataset: StoredDataset) -> NotFound:
    return NotFound(
        f"{dataset.handle} has no schedule", hint=f"`odf schedule set {dataset.handle} --every 1h` sets one."
    )


def _save(dataset: StoredDataset, schedule: DatasetSchedule) -> None:
    from odfpy.coordinator.schedules.keeping import keep_schedule

    keep_schedule(dataset, schedule)


def _say(session: Session, dataset: StoredDataset, schedule: DatasetSchedule) -> None:
    for job, trigger in schedule.jobs.items():
        session.output.info(f"{dataset.handle}: {job.value} {trigger.in_words}{' (paused)' * schedule.is_paused}")
    if schedule.max_age is not None:
        session.output.info(f"{dataset.handle}: late when its last rows are older than {schedule.max_age}")
    push = schedule.push
    if (
        push is not None
        and push.to is None
        and not session.workspace.remotes.aliases(str(dataset.handle.id)).list("push")
    ):
        place = f"run `odf push {dataset.handle} --to PLACE` once, or set a place with --to"
        session.output.info(f"note: {dataset.handle} has not been pushed anywhere yet, so its runs fail; {place}")
    _remark_if_nothing_runs(session)


def _remark_if_nothing_runs(session: Session) -> None:
    from odfpy.automation.lock import nothing_runs

    if nothing_runs(session.workspace.storage):
        session.output.info("note: no scheduler is running; start `odf run`, or `odf serve --run`")


def _set_paused(session: Session, names: list[str] | None, *, is_paused: bool) -> None:
    if not names:
        raise UsageError("No datasets given", hint="Name them, or give a pattern such as com.example.%.")
    datasets = session.workspace.storage.match(names)
    scheduled = [(one, schedule) for one in datasets if (schedule := _schedule_of(one)) is not None]
    if not scheduled:
        raise _no_schedule(datasets[0])
    for dataset, schedule in scheduled:
        if schedule.is_paused != is_paused:
            _save(dataset, replace(schedule, paused=True if is_paused else None))
        session.output.info(f"{dataset.handle} {'is paused' if is_paused else 'is resumed'}")
    if len(scheduled) < len(datasets):
        session.output.info(f"{count_of(len(datasets) - len(scheduled), 'dataset')} without a schedule")


def _lines(dataset: StoredDataset) -> list[dict[str, Any]]:
    name = str(dataset.handle)
    try:
        schedule = _schedule_of(dataset)
    except OdfError as error:
        return [{"name": name, "job": None, "when": None, "maxAge": None, "state": error.message}]
    if schedule is None:
        return []
    promise = None if schedule.max_age is None else str(schedule.max_age)
    state = "paused" if schedule.is_paused else "scheduled"
    common = {"maxAge": promise, "state": state}
    jobs = [{"name": name, "job": job.value, "when": one.in_words, **common} for job, one in schedule.jobs.items()]
    return jobs or [{"name": name, "job": None, "when": None, **common}]
