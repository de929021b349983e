"""The scheduler with a clock and runs in a test's hand: what it notices, remembers and tells."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from automation.conftest import DERIVED, POLLED, PUSHED, Bench, schedule
from support.chains.workspaces import feed

from odfpy.automation.history import recorded_runs
from odfpy.automation.runs import RUNS
from odfpy.coordinator.schedules.file import remove_schedule, schedule_path
from odfpy.coordinator.schedules.schedule import DatasetSchedule, PushTrigger, Retry, Trigger, VerifyTrigger
from odfpy.coordinator.workspace import Workspace
from odfpy.data.duration import Duration
from odfpy.errors import OdfError

Benches = Callable[..., Bench]
HOURLY = DatasetSchedule(pull=Trigger(every=Duration(3600)))


def test_what_is_due_is_run_and_recorded(workspace: Workspace, bench: Benches) -> None:
    schedule(workspace, POLLED, HOURLY)
    one = bench()
    assert one.beat() == [(POLLED, "pull")]
    one.end("updated", rows=3, blocks=1, seconds=0.5, warnings="a\x1b[31mb", peak_memory=9)
    assert one.beat(3590) == []
    assert one.beat(11) == [(POLLED, "pull")]
    one.end("failed", error_code="E401", error_message="x" * 5000)
    one.scheduler.close()
    failed, updated = recorded_runs(workspace, num=10)
    assert (updated["outcome"], updated["rows"], updated["reason"], updated["attempt"]) == ("updated", 3, "schedule", 1)
    assert updated["warnings"] == "a\\x1b[31mb"
    assert updated["started_at"] <= updated["at"]
    assert (failed["error_code"], len(failed["error_message"])) == ("E401", 2000)


def test_a_derivative_runs_when_its_input_has_enough_rows(workspace: Workspace, bench: Benches) -> None:
    schedule(workspace, DERIVED, DatasetSchedule(pull=Trigger(rows=4)))
    one = bench()
    assert one.beat() == []
    feed(workspace, PUSHED, "3 c", "4 d")  # with the two that are there, they are four
    assert one.beat() == [(DERIVED, "pull")]
    list(workspace.pull([DERIVED]))
    one.end()
    assert one.beat() == []
    feed(workspace, PUSHED, "5 e")
    assert one.beat(1e5) == []


def test_rows_and_time_of_a_derivative(workspace: Workspace, bench: Benches) -> None:
    schedule(workspace, DERIVED, DatasetSchedule(pull=Trigger(rows=100, every=Duration(60))))
    one = bench()
    assert one.beat(61) == [(DERIVED, "pull")], "two rows, and a minute has passed"
    list(workspace.pull([DERIVED]))
    one.end()
    assert one.beat(600) == [], "nothing is new"
    feed(workspace, PUSHED, "3 c")
    assert one.beat() == [(DERIVED, "pull")]


def test_a_push_counts_the_rows_that_it_has_not_seen(workspace: Workspace, bench: Benches) -> None:
    schedule(workspace, PUSHED, DatasetSchedule(push=PushTrigger(rows=2, to="place")))
    one = bench()
    assert one.beat() == [(PUSHED, "push")]
    assert next(iter(one.runner.running.values()))[1].to == "place"
    feed(workspace, PUSHED, "3 c")
    one.end()
    assert one.beat() == [], "one row is new to it"
    feed(workspace, PUSHED, "4 d")
    assert one.beat() == [(PUSHED, "push")]


def test_a_schedule_that_cannot_be_read_is_told_once_and_others_go_on(workspace: Workspace, bench: Benches) -> None:
    schedule(workspace, POLLED, HOURLY)
    path = schedule_path(workspace.storage.get(PUSHED).folder)
    path.write_text("kind: DatasetSchedule\nversion: 1\ncontent:\n  pull: {cron: '99 * * * *'}\n")
    one = bench()
    assert one.beat() == [(POLLED, "pull")]
    one.beat(20)
    (remark,) = one.remarks
    assert f"{path}, line 4: content.pull.cron: Not a cron expression: '99 * * * *', wrong minute" in remark
    one.end()
    path.write_text("kind: DatasetSchedule\nversion: 1\ncontent:\n  verify: {every: 1h}\n")
    assert one.beat(11) == [(PUSHED, "verify")], "a hand has mended it"


def test_a_dataset_that_could_not_be_read_is_scheduled_once_it_is_mended(workspace: Workspace, bench: Benches) -> None:
    schedule(workspace, POLLED, HOURLY)
    head = workspace.storage.get(POLLED).folder / "refs" / "head"
    good = head.read_bytes()
    head.write_bytes(b"damaged")
    one = bench()
    assert one.beat() == []
    assert one.beat(20) == []
    assert len(one.remarks) == 1, "told once"
    head.write_bytes(good)
    assert one.beat(20) == [(POLLED, "pull")]


def test_datasets_that_are_renamed_or_deleted_while_scheduled(workspace: Workspace, bench: Benches) -> None:
    schedule(workspace, POLLED, HOURLY)
    one = bench()
    one.beat()
    workspace.datasets.rename(POLLED, "com.example.other")
    one.end()
    assert one.beat(3601) == [("com.example.other", "pull")]
    workspace.datasets.delete(["com.example.other"])
    one.end("failed", error_code="E112", error_message="gone")
    assert one.beat(1e6) == []
    assert [row["dataset"] for row in one.rows] == [POLLED, "com.example.other"]


@pytest.mark.parametrize("what", ["removed", "paused", "changed"])
def test_a_schedule_that_goes_while_its_run_waits(what: str, workspace: Workspace, bench: Benches) -> None:
    workspace.config.set("automation.parallel", "1")
    schedule(workspace, POLLED, HOURLY)
    schedule(workspace, PUSHED, DatasetSchedule(verify=VerifyTrigger(every=Duration(3600))))
    one = bench()
    ((running, _),) = one.beat()
    waiting = PUSHED if running == POLLED else POLLED
    if what == "removed":
        remove_schedule(workspace.storage.get(waiting).folder)
    else:
        other = DatasetSchedule(verify=VerifyTrigger(cron="0 0 1 1 *"), paused=what == "paused")
        schedule(workspace, waiting, other)
    one.beat(20)
    one.end()
    assert one.beat() == []


def test_notices_of_failures_and_recoveries(workspace: Workspace, bench: Benches) -> None:
    retry = Retry(attempts=3, delay=Duration(10))
    schedule(workspace, POLLED, DatasetSchedule(pull=Trigger(every=Duration(36_000)), retry=retry))
    one = bench()
    for _ in range(3):
        assert one.beat(25) == [(POLLED, "pull")]
        one.end("failed", error_code="E401", error_message="no such host")
    assert one.beat(100) == []
    one.beat(36_000)
    one.end()
    assert [kind for kind, _ in one.notices] == ["failed", "failed", "recovered"]
    assert one.notices[0][1] == f"{POLLED}: pull failed: no such host (E401); it will be retried"
    assert one.notices[1][1] == f"{POLLED}: pull failed: no such host (E401)"
    assert one.notices[2][1] == f"{POLLED}: pull succeeded after 3 failures"
    assert [row["attempt"] for row in one.rows] == [1, 2, 3, 1]


def test_a_dataset_that_is_older_than_promised_is_late_once(workspace: Workspace, bench: Benches) -> None:
    schedule(workspace, PUSHED, DatasetSchedule(max_age=Duration(3600)))
    one = bench()
    one.beat()
    assert one.notices == []
    one.beat(3700)
    one.beat(3700)
    one.scheduler.close()
    again = bench(one.now)
    again.beat()
    assert [kind for kind, _ in (*one.notices, *again.notices)] == ["late"], "also not by the next scheduler"
    assert "promises 1 hour" not in one.notices[0][1]
    assert "promises 1h" in one.notices[0][1]
    again.now -= 7400  # or rows that come later; what counts is their age
    feed(workspace, PUSHED, "9 x")
    again.beat()
    assert [kind for kind, _ in again.notices] == ["on-time"]


def test_a_full_disk_begins_nothing_that_it_cannot_remember(workspace: Workspace, bench: Benches) -> None:
    schedule(workspace, POLLED, HOURLY)
    one = bench()
    path = workspace.odf / "automation" / "state.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TRIGGER full BEFORE INSERT ON runs BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    assert one.beat() == []
    assert one.beat() == []
    (remark,) = one.remarks
    assert f"cannot use {path}: disk is full" in remark
    with sqlite3.connect(path) as other:
        other.execute("DROP TRIGGER full")
        other.execute("CREATE TRIGGER full BEFORE UPDATE ON runs BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    assert one.beat(10) == [(POLLED, "pull")]
    one.end()
    one.beat(10)
    with sqlite3.connect(path) as other:
        other.execute("DROP TRIGGER full")
    one.beat(10)
    one.scheduler.close()
    assert len(list(recorded_runs(workspace, num=10))) == 1, "what has ended is written down as soon as it can be"
    other.close()


def test_a_run_that_cannot_be_started_has_failed(workspace: Workspace, bench: Benches) -> None:
    schedule(workspace, POLLED, HOURLY)
    one = bench()
    one.runner.refuses = OdfError("Cannot start a run: no more processes")
    one.beat()
    assert [(row["outcome"], row["error_code"]) for row in one.rows] == [("failed", "E900")]


def test_the_next_scheduler_tells_and_repeats_what_was_interrupted(workspace: Workspace, bench: Benches) -> None:
    schedule(workspace, POLLED, HOURLY)
    one = bench()
    one.beat()
    again = bench(one.now)
    assert again.beat() == [(POLLED, "pull")]
    assert [(row["outcome"], row["attempt"]) for row in again.rows] == [("interrupted", 1)]
    again.end()
    assert [(row["outcome"], row["reason"], row["attempt"]) for row in again.rows][1:] == [
        ("updated", "interrupted", 2)
    ]


def test_timeouts_are_those_of_the_schedule_or_of_the_settings(workspace: Workspace, bench: Benches) -> None:
    workspace.config.set("automation.timeout", "50")
    schedule(workspace, POLLED, HOURLY)
    schedule(workspace, PUSHED, DatasetSchedule(verify=VerifyTrigger(every=Duration(9)), timeout=Duration(7)))
    one = bench()
    one.beat()
    assert sorted(one.runner.timeouts, key=str) == [50.0, 7.0]


def test_a_damaged_file_of_the_scheduler_is_told(workspace: Workspace, bench: Benches) -> None:
    path = workspace.odf / "automation" / "state.db"
    path.parent.mkdir()
    path.write_text("this is not a database" * 100)
    with pytest.raises(OdfError, match=r"cannot use .*state.db: file is not a database"):
        bench()


def test_rows_that_were_not_taken_into_the_log_are_so_by_the_next_scheduler(
    workspace: Workspace, bench: Benches, tmp_path: Path
) -> None:
    schedule(workspace, POLLED, HOURLY)
    one = bench()
    one.beat()
    one.end()
    with sqlite3.connect(workspace.odf / "automation" / "state.db") as database:
        database.execute("UPDATE runs SET is_logged = 0")  # killed before it could say so
    database.close()
    one.scheduler.close()
    bench().scheduler.close()
    assert RUNS.ingest(workspace) == 0
    assert len(list(recorded_runs(workspace, num=10))) == 1
