"""When a job is due: triggers, what is new, retries."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.automation.due import Due, InputChanges, JobHistory, JobKey, Reason, due
from odfpy.coordinator.schedules.schedule import Job, Trigger
from odfpy.data.duration import Duration

KEY = JobKey("f1", Job.PULL)
HOUR = 3600.0
T0 = datetime.fromisoformat("2026-06-01T00:00:00+00:00").timestamp()
HOURLY = Trigger(every=Duration(3600))


def test_an_interval_is_due_at_once_then_counts_from_the_last_start() -> None:
    assert due(KEY, HOURLY, JobHistory(), T0, None) == Due(T0, Reason.SCHEDULE)
    assert due(KEY, HOURLY, JobHistory(started=T0 + 60), T0, None) == Due(T0 + 60 + HOUR, Reason.SCHEDULE)


def test_cron_counts_from_the_last_start_or_the_schedule() -> None:
    trigger = Trigger(cron="0 6 * * *")
    assert due(KEY, trigger, JobHistory(), T0, None) == Due(T0 + 6 * HOUR, Reason.SCHEDULE)
    assert due(KEY, trigger, JobHistory(started=T0 + 7 * HOUR), T0, None) == Due(T0 + 30 * HOUR, Reason.SCHEDULE)
    assert due(KEY, trigger, JobHistory(started=T0 - 90 * HOUR), T0, None) == Due(T0 + 6 * HOUR, Reason.SCHEDULE), (
        "times before the schedule was written do not count"
    )


def test_times_that_were_missed_are_one_run() -> None:
    past = JobHistory(started=T0)
    late = due(KEY, Trigger(cron="*/5 * * * *"), past, T0, None)
    assert late == Due(T0 + 300, Reason.SCHEDULE)
    assert due(KEY, Trigger(cron="*/5 * * * *"), JobHistory(started=T0 + 10 * HOUR), T0, None) == Due(
        T0 + 10 * HOUR + 300, Reason.SCHEDULE
    )


def test_rows_are_waited_for() -> None:
    trigger = Trigger(rows=10)
    assert due(KEY, trigger, JobHistory(), T0, InputChanges(9, any=True, mark="a", noticed=T0)) is None
    assert due(KEY, trigger, JobHistory(), T0, InputChanges(10, any=True, mark="b", noticed=T0 + 5)) == Due(
        T0 + 5, Reason.ROWS
    )


def test_the_first_of_rows_and_time_counts() -> None:
    trigger = Trigger(rows=10, every=Duration(3600))
    past = JobHistory(started=T0, tried="old")
    few, many = (
        InputChanges(1, any=True, mark="a", noticed=T0 + 5),
        InputChanges(10, any=True, mark="b", noticed=T0 + 5),
    )
    assert due(KEY, trigger, past, T0, few) == Due(T0 + HOUR, Reason.SCHEDULE)
    assert due(KEY, trigger, past, T0, many) == Due(T0 + 5, Reason.ROWS)
    assert due(KEY, trigger, past, T0, InputChanges(noticed=T0)) is None, "nothing is new"
    late = InputChanges(1, any=True, mark="a", noticed=T0 + 5 * HOUR)
    assert due(KEY, trigger, past, T0, late) == Due(T0 + 5 * HOUR, Reason.SCHEDULE), "not before there is anything new"


def test_what_was_tried_in_vain_is_left_to_the_retries() -> None:
    trigger, news = Trigger(rows=1), InputChanges(5, any=True, mark="head 5", noticed=T0)
    assert due(KEY, trigger, JobHistory(started=T0, tried="head 5"), T0, news) is None
    retrying = JobHistory(started=T0, tried="head 5", retry_at=T0 + 30)
    assert due(KEY, trigger, retrying, T0, news) == Due(T0 + 30, Reason.RETRY)
    more = InputChanges(6, any=True, mark="head 6", noticed=T0 + 9)
    assert due(KEY, trigger, JobHistory(started=T0, tried="head 5"), T0, more) == Due(T0 + 9, Reason.ROWS)


def test_what_comes_first_is_the_reason() -> None:
    past = JobHistory(started=T0, retry_at=T0 + 30)
    assert due(KEY, HOURLY, past, T0, None) == Due(T0 + 30, Reason.RETRY)
    assert due(KEY, Trigger(every=Duration(10)), past, T0, None) == Due(T0 + 10, Reason.SCHEDULE)


@given(started=st.floats(T0, T0 + 1e8), jitter=st.integers(1, 3599))
def test_jitter_is_less_than_it_says_and_always_the_same(started: float, jitter: int) -> None:
    trigger = Trigger(every=Duration(3600), jitter=Duration(jitter))
    found = due(KEY, trigger, JobHistory(started=started), T0, None)
    assert found is not None
    assert 0 <= found.at - (started + HOUR) < jitter
    assert found == due(KEY, trigger, JobHistory(started=started), T0, None)


def test_jitter_spreads_datasets() -> None:
    trigger = Trigger(cron="0 6 * * *", jitter=Duration(600))
    found = [due(JobKey(f"f{number}", Job.PULL), trigger, JobHistory(), T0, None) for number in range(200)]
    delays = [one.at - (T0 + 6 * HOUR) for one in found if one is not None]
    assert len(delays) == 200
    assert min(delays) == pytest.approx(0, abs=60)
    assert max(delays) == pytest.approx(600, abs=60)
