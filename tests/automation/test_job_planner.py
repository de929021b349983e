"""The planner: what it starts, beside a plain model; retries, pauses, and clocks that jump."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odfpy.automation.due import InputChanges, JobHistory, JobKey, Reason
from odfpy.automation.job_planner import JobPlanner, Outcome, Planned, Start
from odfpy.coordinator.schedules.schedule import DatasetSchedule, Job, PushTrigger, Retry, Trigger, VerifyTrigger
from odfpy.data.duration import Duration

T0 = 1_780_000_000.0
PULL = JobKey("f1", Job.PULL)


def hourly(**more: object) -> DatasetSchedule:
    return replace(DatasetSchedule(pull=Trigger(every=Duration(3600))), **more)  # type: ignore[arg-type]


def planner_of(schedule: DatasetSchedule, *, parallel: int = 2, is_derivative: bool = False) -> JobPlanner:
    planner = JobPlanner(parallel)
    planner.put("f1", Planned(schedule, T0, is_derivative), T0)
    return planner


def starts(planner: JobPlanner, now: float) -> list[Start]:
    return [start for start, _, _ in planner.start_next(now)]


def one(planner: JobPlanner, now: float) -> Start:
    (found,) = starts(planner, now)
    return found


# --- What is due -----------------------------------------------------------------------------------------------------


def test_a_run_that_has_begun_is_not_begun_again() -> None:
    planner = planner_of(hourly())
    start = one(planner, T0)
    assert (start.key, start.reason, start.attempt) == (PULL, Reason.SCHEDULE, 1)
    assert starts(planner, T0 + 7200) == []
    planner.ended(start, Outcome.UPDATED, T0 + 7200)
    assert one(planner, T0 + 7200).due_at == T0 + 3600


def test_jobs_of_a_dataset_wait_for_each_other_and_all_for_a_place() -> None:
    both = DatasetSchedule(pull=Trigger(every=Duration(60)), verify=VerifyTrigger(every=Duration(60)))
    planner = JobPlanner(2)
    for dataset in ("f1", "f2", "f3"):
        planner.put(dataset, Planned(both, T0), T0)
    first = starts(planner, T0)
    assert len({start.key.dataset for start in first}) == len(first) == 2
    planner.ended(first[0], Outcome.UP_TO_DATE, T0 + 1)
    assert len(starts(planner, T0 + 1)) == 1


def test_who_has_waited_longest_is_first() -> None:
    planner = JobPlanner(1)
    for dataset, since in (("f1", T0), ("f2", T0 - 50), ("f3", T0 - 20)):
        planner.put(dataset, Planned(hourly(), since), T0)
    order = []
    for _ in range(3):
        start = one(planner, T0)
        order.append(start.key.dataset)
        planner.ended(start, Outcome.UPDATED, T0)
    assert order == ["f2", "f3", "f1"]


@settings(deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(1, 4000), st.sampled_from(list(Outcome)), st.integers(0, 3)), max_size=40),
    parallel=st.integers(1, 3),
)
def test_nothing_runs_twice_at_once_and_nothing_is_lost(steps: list[tuple[int, Outcome, int]], parallel: int) -> None:
    """Whatever happens: at most one run a dataset, as many as allowed; and what is overdue has a reason to wait."""
    planner = JobPlanner(parallel)
    datasets = [f"f{number}" for number in range(4)]
    for dataset in datasets:
        planner.put(dataset, Planned(hourly(), T0), T0)
    running: list[Start] = []
    last: dict[str, float] = {}
    now = T0
    for seconds, outcome, which in steps:
        now += seconds
        for start in starts(planner, now):
            assert start.key.dataset not in {other.key.dataset for other in running}
            running.append(start)
            last[start.key.dataset] = now
        assert len(running) <= parallel
        if len(running) < parallel:
            idle = set(datasets) - {start.key.dataset for start in running}
            assert all(now - last[dataset] < 3600 for dataset in idle), "a due run is not left out"
        if running:
            planner.ended(running.pop(which % len(running)), outcome, now)


# --- Failures --------------------------------------------------------------------------------------------------------


def test_retries_wait_twice_as_long_each_time_and_end() -> None:
    retry = Retry(attempts=4, delay=Duration(10), max_delay=Duration(30))
    planner = planner_of(DatasetSchedule(pull=Trigger(cron="0 0 1 1 *"), retry=retry))
    planner.ask("r1", PULL, T0)
    now, waits = T0, []
    for attempt in range(1, 5):
        start = one(planner, now)
        assert start.attempt == attempt
        past = planner.ended(start, Outcome.FAILED, now)
        assert past.failures == attempt
        if past.retry_at is not None:
            waits.append(past.retry_at - now)
            assert starts(planner, past.retry_at - 0.1) == []
            now = past.retry_at
    assert waits == [10, 20, 30]
    assert starts(planner, now + 3600) == []


def test_a_success_ends_the_count_of_failures() -> None:
    planner = planner_of(hourly())
    past = planner.ended(one(planner, T0), Outcome.FAILED, T0)
    assert past.retry_at is not None
    again = one(planner, past.retry_at)
    assert (again.reason, again.attempt) == (Reason.RETRY, 2)
    past = planner.ended(again, Outcome.UPDATED, past.retry_at)
    assert (past.failures, past.retry_at) == (0, None)


def test_an_interrupted_run_is_tried_again_at_once_but_not_for_ever() -> None:
    planner = planner_of(DatasetSchedule(pull=Trigger(cron="0 0 1 1 *"), retry=Retry(attempts=3)))
    planner.ask("r1", PULL, T0)
    reasons = []
    while found := starts(planner, T0):
        reasons.append((found[0].reason.value, found[0].attempt))
        planner.ended(found[0], Outcome.INTERRUPTED, T0)
    assert reasons == [("manual", 1), ("interrupted", 2), ("interrupted", 3), ("interrupted", 4)]


def test_an_interrupted_run_is_tried_again_where_failures_are_not() -> None:
    planner = planner_of(DatasetSchedule(pull=Trigger(cron="0 0 1 1 *"), retry=Retry(attempts=1)))
    planner.ask("r1", PULL, T0)
    planner.ended(one(planner, T0), Outcome.INTERRUPTED, T0)
    assert one(planner, T0).reason is Reason.INTERRUPTED


def test_rows_that_a_run_could_not_take_in_do_not_start_it_over_and_over() -> None:
    schedule = DatasetSchedule(pull=Trigger(rows=5), retry=Retry(attempts=1))
    planner = planner_of(schedule, is_derivative=True)
    planner.set_changes(PULL, InputChanges(7, any=True, mark="a", noticed=T0))
    planner.ended(one(planner, T0), Outcome.FAILED, T0)
    assert starts(planner, T0 + 1e6) == []
    planner.set_changes(PULL, InputChanges(8, any=True, mark="b", noticed=T0 + 2e6))
    assert one(planner, T0 + 2e6).due_at == T0 + 2e6


def test_rows_that_come_while_a_push_runs_are_new_for_the_next() -> None:
    push = JobKey("f1", Job.PUSH)
    planner = planner_of(DatasetSchedule(push=PushTrigger(rows=1)))
    planner.set_changes(push, InputChanges(3, any=True, mark="3", noticed=T0))
    start = one(planner, T0)
    past = planner.ended(start, Outcome.UPDATED, T0, seen_rows=3)
    planner.set_changes(push, InputChanges(5 - past.seen_rows, any=True, mark="5", noticed=T0 + 1))
    assert one(planner, T0 + 1).reason is Reason.ROWS


# --- Changes while something waits -----------------------------------------------------------------------------------


def test_what_waits_for_a_place_goes_with_its_schedule() -> None:
    for change in ("paused", "removed", "later"):
        planner = JobPlanner(1)
        planner.put("f0", Planned(hourly(), T0 - 1), T0)
        planner.put("f1", Planned(hourly(), T0), T0)
        first = one(planner, T0)
        assert first.key.dataset == "f0"
        if change == "paused":
            planner.put("f1", Planned(hourly(paused=True), T0), T0)
        elif change == "removed":
            planner.drop("f1")
        else:
            planner.put("f1", Planned(DatasetSchedule(pull=Trigger(cron="0 0 1 1 *")), T0), T0)
        planner.ended(first, Outcome.UPDATED, T0 + 1)
        assert starts(planner, T0 + 1) == [], change


def test_a_pause_leaves_out_times_by_cron_and_catches_up_intervals() -> None:
    cron = DatasetSchedule(pull=Trigger(cron="0 * * * *"))
    planner = planner_of(cron)
    planner.put("f1", Planned(replace(cron, paused=True), T0), T0)
    assert starts(planner, T0 + 20_000) == []
    planner.put("f1", Planned(cron, T0 + 20_000), T0 + 20_000)
    assert starts(planner, T0 + 20_001) == []
    planner.put("f1", Planned(hourly(), T0 + 20_000), T0 + 20_000)
    assert len(starts(planner, T0 + 20_001)) == 1


def test_what_somebody_asks_for_runs_also_when_paused_or_without_a_schedule() -> None:
    planner = planner_of(hourly(paused=True))
    planner.ask("r1", PULL, T0)
    planner.ask("r2", JobKey("f9", Job.VERIFY), T0)
    assert [(start.request, start.reason) for start in starts(planner, T0)] == [
        ("r1", Reason.MANUAL),
        ("r2", Reason.MANUAL),
    ]


def test_what_could_not_be_written_down_has_not_begun() -> None:
    planner = planner_of(hourly())
    ((start, before, _),) = planner.start_next(T0)
    planner.withdraw(start, before)
    assert one(planner, T0 + 5) == start


def test_a_request_that_is_taken_back_leaves_a_retry_as_it_was() -> None:
    planner = planner_of(hourly())
    past = planner.ended(one(planner, T0), Outcome.FAILED, T0)
    assert past.retry_at is not None
    planner.ask("r1", PULL, T0 + 1)
    ((start, before, _),) = planner.start_next(T0 + 1)
    planner.cancel(start, before)
    again = one(planner, past.retry_at)
    assert (again.reason, again.attempt, again.request) == (Reason.RETRY, 2, None)


# --- Clocks ----------------------------------------------------------------------------------------------------------


def test_a_clock_that_goes_forward_runs_once_what_it_has_left_out() -> None:
    planner = planner_of(DatasetSchedule(pull=Trigger(cron="*/5 * * * *")))
    assert starts(planner, T0) == []
    start = one(planner, T0 + 86_400)  # also a machine that was asleep
    planner.ended(start, Outcome.UPDATED, T0 + 86_400)
    assert starts(planner, T0 + 86_401) == []


@pytest.mark.parametrize("back", [120, 3000])
def test_a_clock_that_is_set_back_runs_no_time_by_cron_twice(back: float) -> None:
    planner = planner_of(DatasetSchedule(pull=Trigger(cron="*/5 * * * *")))
    start = one(planner, T0 + 6000)
    planner.ended(start, Outcome.UPDATED, T0 + 6000)
    assert starts(planner, T0 + 6000 - back) == []
    assert starts(planner, T0 + 5990) == []
    assert len(starts(planner, T0 + 6301)) == 1


def test_a_clock_that_was_years_ahead_does_not_hold_anything_back() -> None:
    for trigger in (Trigger(cron="*/5 * * * *"), Trigger(every=Duration(300))):
        planner = planner_of(DatasetSchedule(pull=trigger))
        planner.ended(one(planner, T0 + 3e8), Outcome.UPDATED, T0 + 3e8)
        assert starts(planner, T0 + 10) == []
        assert len(starts(planner, T0 + 10 + 301)) == 1
        again = JobPlanner(1)  # the same found by the next scheduler
        again.remember({PULL: JobHistory(started=T0 + 3e8)})
        again.put("f1", Planned(DatasetSchedule(pull=trigger), T0), T0 + 10)
        assert len(starts(again, T0 + 10 + 301)) == 1


def test_an_interval_goes_on_when_the_clock_is_set_back() -> None:
    planner = planner_of(DatasetSchedule(pull=Trigger(every=Duration(60))))
    planner.ended(one(planner, T0 + 3000), Outcome.UPDATED, T0 + 3000)
    assert starts(planner, T0) == []
    assert len(starts(planner, T0 + 61)) == 1
