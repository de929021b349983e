"""`odf schedule`, `odf runs` and what `odf status` says of them."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli.conftest import dataset_folder
from support.processes.terminal import PATIENCE, start

from odfpy.automation.lock import SchedulerLock
from odfpy.coordinator.workspace import Workspace

if TYPE_CHECKING:
    from cli.conftest import Odf

UPPER, RATES, POLLED = "com.example.upper", "com.example.rates", "com.example.polled"
MANIFEST = """\
kind: DatasetSnapshot
version: 1
schedule:
  pull: {cron: "15 6 * * mon-fri", timezone: Europe/Berlin, jitter: 5m}
  compact: {cron: "0 3 * * sun"}
  verify: {every: 7d, integrityOnly: true}
  push: {rows: 1, to: mirror/polled}
  retry: {attempts: 5, delay: 30s, maxDelay: 1h}
  maxAge: 2d
  timeout: 2h
  paused: false
content:
  name: com.example.polled
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: "in/*.csv", order: ByName}
      read: {kind: Csv, header: true, schema: {fields: [{name: id, type: Int64}]}}
      merge: {kind: Append}
"""


@pytest.fixture
def polled(workspace: Path, odf: Odf) -> Path:
    """A root that polls, with a schedule from its manifest."""
    (workspace / "in").mkdir()
    (workspace / "in" / "a.csv").write_text("id\n1\n")
    manifest = workspace / "polled.yaml"
    manifest.write_text(MANIFEST)
    assert odf("add", manifest).code == 0
    return manifest


# --- Manifests -------------------------------------------------------------------------------------------------------


def test_a_manifest_comes_out_as_it_went_in(polled: Path, odf: Odf, workspace: Path) -> None:
    shown = odf("schedule", "show", POLLED, "-o", "yaml").out
    before = odf("schedule", "show", POLLED, "-o", "json").json
    assert before["schedule"]["pull"] == {
        "cron": "15 6 * * mon-fri", "timezone": "Europe/Berlin", "jitter": "5m",
    }  # fmt: skip
    content = MANIFEST[MANIFEST.index("content:") :].replace("polled", "again")
    (workspace / "again.yaml").write_text(f"kind: DatasetSnapshot\nversion: 1\n{shown}{content}")
    assert odf("add", "again.yaml").code == 0
    assert odf("schedule", "show", "com.example.again", "-o", "json").json == before


def test_replace_changes_the_schedule_and_a_manifest_without_one_leaves_it(polled: Path, odf: Odf) -> None:
    polled.write_text(MANIFEST.replace("maxAge: 2d", "maxAge: 3d"))
    planned = odf("add", "--replace", "--dry-run", polled)
    assert "would be updated" in planned.err
    assert "-  maxAge: 2d" in planned.err
    assert "+  maxAge: 3d" in planned.err
    assert "`odf run` does a pull: 15 6 * * mon-fri (Europe/Berlin)" in planned.err
    assert odf("schedule", "show", POLLED, "-o", "json").json["schedule"]["maxAge"] == "2d"
    assert odf("add", "--replace", polled).code == 0
    assert odf("schedule", "show", POLLED, "-o", "json").json["schedule"]["maxAge"] == "3d"
    start, end = MANIFEST.index("schedule:"), MANIFEST.index("content:")
    polled.write_text(MANIFEST[:start] + MANIFEST[end:])
    assert "unchanged" in odf("add", "--replace", polled).err
    assert odf("schedule", "show", POLLED).code == 0


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"15 6 ', '"15 26 ', "line 4, column 10: Not a cron expression: '15 26 * * mon-fri', wrong hour at `schedule.pull.cron`"),
        ("Berlin", "Berln", "No such time zone: 'Europe/Berln' at `schedule.pull.timezone` (E202)\nhint: Did you mean Europe/Berlin?"),
        ("jitter: 5m", "jitter: -5m", "Not a duration: '-5m' at `schedule.pull.jitter`"),
        ("jitter:", "jiter:", "unknown key in a job of a schedule at `schedule.pull.jiter` (E202)\nhint: Did you mean jitter?"),
        ("pull: {cron", "pull: {every: 1h, cron", "`cron` and `every` cannot be combined at `schedule.pull.every`"),
        ('cron: "0 3 * * sun"', "jitter: 1m", "it has no time at `schedule.compact`"),
        ('cron: "0 3 * * sun"', "every: 1m, jitter: 1m", "the jitter must be less than `every`"),
        ('cron: "0 3 * * sun"', "every: 1m, timezone: UTC", "a time zone is for `cron` at `schedule.compact.timezone`"),
        ("every: 7d", "every: 0s", "it must be at least a second at `schedule.verify.every`"),
        ("every: 7d", "every: 90", "expected a duration, found the number 90 at `schedule.verify.every`"),
        ("rows: 1,", "rows: 0,", "at least one row must be new at `schedule.push.rows`"),
        ("rows: 1,", "rows: -1,", "-1 is not between 0 and"),
        ("attempts: 5", "attempts: 0", "there is at least one attempt at `schedule.retry.attempts`"),
        ("maxAge: 2d", "maxAge: 0s", "it must be at least a second at `schedule.maxAge`"),
        ("schedule:", "shedule:", "unknown key in a manifest at `shedule`"),
        ('pull: {cron: "15 6 * * mon-fri", timezone: Europe/Berlin, jitter: 5m}', "pull: {rows: 5}",
         "the number of rows of its source is unknown until it is fetched at `schedule.pull.rows`"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_schedule_is_told_with_its_place(
    old: str, new: str, told: str, odf: Odf, workspace: Path
) -> None:
    assert old in MANIFEST
    (workspace / "wrong.yaml").write_text(MANIFEST.replace(old, new))
    refused = odf("add", "wrong.yaml")
    assert refused.code == 1
    assert told in refused.says
    assert odf("show", POLLED).code == 1, "nothing was added"


# --- Commands --------------------------------------------------------------------------------------------------------


def test_set_changes_what_is_given_and_leaves_the_rest(odf: Odf, workspace: Path) -> None:
    odf("schedule", "set", UPPER, "--rows", "1000", "--every", "1h", "--max-age", "2d")
    odf("schedule", "set", UPPER, "--job", "push", "--rows", "1", "--to", "mirror/x")
    odf(
        "schedule",
        "set",
        UPPER,
        "--job",
        "verify",
        "--every",
        "1w",
        "--integrity",
        "--attempts",
        "2",
        "--retry-delay",
        "5s",
    )
    assert odf("schedule", "set", UPPER, "--timeout", "1h").code == 0
    assert odf("schedule", "show", UPPER, "-o", "json").json["schedule"] == {
        "pull": {"every": "1h", "rows": 1000},
        "verify": {"every": "1w", "integrityOnly": True},
        "push": {"rows": 1, "to": "mirror/x"},
        "retry": {"attempts": 2, "delay": "5s"},
        "maxAge": "2d",
        "timeout": "1h",
    }
    assert odf("schedule", "set", UPPER, "--job", "verify", "--replay").code == 0
    changed = odf("schedule", "show", UPPER, "-o", "json").json["schedule"]
    assert changed["verify"] == {"every": "1w", "integrityOnly": False}
    assert odf("schedule", "set", UPPER, "--replay").code == 2, "of a pull"
    listed = odf("schedule", "list", "-o", "json").json
    assert [(one["job"], one["when"]) for one in listed] == [
        ("pull", "after 1000 new rows or every 1h"),
        ("verify", "every 1w"),
        ("push", "after 1 new row"),
    ]


def test_set_changes_single_times_of_a_job(odf: Odf, workspace: Path) -> None:
    def pull(*words: str) -> object:
        assert odf("schedule", "set", UPPER, *words).code == 0
        return odf("schedule", "show", UPPER, "-o", "json").json["schedule"]["pull"]

    berlin = {"timezone": "Europe/Berlin", "jitter": "10m"}
    assert pull("--cron", "30 6 * * *", "--timezone", "Europe/Berlin", "--jitter", "10m")
    assert pull("--cron", "0 7 * * *") == {"cron": "0 7 * * *", **berlin}
    assert pull("--jitter", "1m") == {"cron": "0 7 * * *", **berlin, "jitter": "1m"}
    assert pull("--timezone", "UTC") == {"cron": "0 7 * * *", "timezone": "UTC", "jitter": "1m"}
    assert pull("--every", "1h") == {"every": "1h", "jitter": "1m"}, "a time of the other kind takes its place"
    assert pull("--rows", "5") == {"every": "1h", "rows": 5, "jitter": "1m"}
    assert pull("--cron", "0 7 * * *") == {"cron": "0 7 * * *", "jitter": "1m"}
    assert odf("schedule", "set", UPPER, "--job", "push", "--to", "mirror/x", "--rows", "1").code == 0
    assert odf("schedule", "set", UPPER, "--job", "push", "--rows", "2").code == 0
    assert odf("schedule", "show", UPPER, "-o", "json").json["schedule"]["push"] == {"rows": 2, "to": "mirror/x"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([RATES, "--job", "verify", "--jitter", "1m"], "it has no time"),
        ([RATES, "--every", "1h"], "the dataset has no source to pull from"),
        ([RATES, "--job", "compact"], "A job needs a time"),
        ([RATES, "--job", "clean", "--every", "1h"], "No such job: 'clean'"),
        ([RATES, "--job", "verify", "--cron", "* * *"], "verify.cron: Not a cron expression: '* * *' has 3 fields"),
        ([RATES, "--job", "verify", "--every", "soon"], "--every: Not a duration: 'soon'"),
        ([RATES, "--job", "verify", "--rows", "0"], "--rows must be a whole number, at least 1"),
        ([RATES, "--job", "compact", "--every", "1h", "--to", "x"], "--to is for --job push"),
        ([UPPER, "--job", "compact", "--every", "1h"], "a derivative is not compacted"),
        (["trades", "--rows", "5"], "the number of rows of its origin is unknown"),
        (["trades", "--job", "compact", "--every", "1h"], "a copy is not compacted"),
        ([RATES], "nothing is scheduled"),
        (["com.example.nothing", "--every", "1h"], "No dataset"),
    ],
)
def test_set_refuses_what_makes_no_sense(words: list[str], told: str, odf: Odf, workspace: Path) -> None:
    refused = odf("schedule", "set", *words)
    assert refused.code in (1, 2)
    assert told in refused.says
    assert odf("schedule", "list", "-o", "json").json == []


def test_a_copy_can_be_pulled_by_time(odf: Odf, workspace: Path) -> None:
    assert odf("schedule", "set", "trades", "--every", "1h").err.startswith("trades: pull every 1h\n")


def test_pause_resume_remove(odf: Odf, workspace: Path) -> None:
    assert "has no schedule" in odf("schedule", "pause", UPPER).says
    odf("schedule", "set", UPPER, "--every", "1h", "--max-age", "1s")
    odf("schedule", "set", UPPER, "--job", "verify", "--every", "1w")
    assert odf("schedule", "pause", "com.example.%").err.startswith(f"{UPPER} is paused\n")
    assert {one["state"] for one in odf("schedule", "list", "-o", "json").json} == {"paused"}
    assert odf("schedule", "next", "-o", "json").json == []
    odf("schedule", "resume", UPPER)
    assert len(odf("schedule", "next", "-o", "json").json) == 2
    assert odf("schedule", "remove", UPPER, "--job", "verify").code == 0
    assert "has no scheduled verify" in odf("schedule", "remove", UPPER, "--job", "verify").says
    assert odf("schedule", "remove", UPPER).code == 0
    assert "has no schedule" in odf("schedule", "remove", UPPER).says
    assert not (dataset_folder(workspace, UPPER) / "info" / "schedule.yaml").exists()


def test_next_shows_the_days_around_summer_time(odf: Odf, workspace: Path) -> None:
    odf("schedule", "set", RATES, "--job", "verify", "--cron", "30 2 * * *", "--timezone", "Europe/Berlin")
    shown = odf("schedule", "next", "--after", "2028-03-25T12:00:00Z", "-n", "2", "-o", "json").json
    assert [(one["at"], one["local"]) for one in shown] == [
        ("2028-03-26T01:00:00Z", "2028-03-26T03:00:00+02:00"),
        ("2028-03-27T00:30:00Z", "2028-03-27T02:30:00+02:00"),
    ]


def test_next_shows_days_that_are_over(odf: Odf, workspace: Path) -> None:
    odf("schedule", "set", RATES, "--job", "verify", "--cron", "30 2 * * *")
    odf("schedule", "set", UPPER, "--every", "1h")
    shown = odf("schedule", "next", "--after", "2021-03-25T12:00:00Z", "-n", "2", "-o", "json").json
    assert [(one["job"], one["at"]) for one in shown] == [
        ("pull", "2021-03-25T13:00:00Z"),
        ("pull", "2021-03-25T14:00:00Z"),
        ("verify", "2021-03-26T02:30:00Z"),
        ("verify", "2021-03-27T02:30:00Z"),
    ]


def test_next_does_not_know_when_rows_come(odf: Odf, workspace: Path) -> None:
    odf("schedule", "set", UPPER, "--rows", "5")
    (one,) = odf("schedule", "next", "-o", "json").json
    assert (one["at"], one["when"]) == (None, "after 5 new rows")


def test_a_schedule_that_cannot_be_read_is_shown_as_such(odf: Odf, workspace: Path) -> None:
    odf("schedule", "set", UPPER, "--every", "1h")
    (dataset_folder(workspace, UPPER) / "info" / "schedule.yaml").write_text("pull: soon")
    assert "expected `kind`" in odf("schedule", "list", "-o", "json").json[0]["state"]
    statuses = [one["what"] for one in odf("status", UPPER, "-o", "json").json]
    assert any(what.startswith("its schedule: ") for what in statuses)
    assert "expected `kind`" in odf("schedule", "show", UPPER).says


# --- Runs, status ----------------------------------------------------------------------------------------------------


def test_runs_are_listed_and_filtered(polled: Path, odf: Odf, workspace: Path) -> None:
    assert odf("runs").err == "No runs.\n"
    assert odf("schedule", "run", POLLED).code == 0
    (workspace / "in" / "b.csv").write_text("id\nx\n")
    failed = odf("schedule", "run", POLLED, "-o", "json")
    assert (failed.code, failed.json["error_code"]) == (1, "E402")
    assert [(one["outcome"], one["rows"]) for one in odf("runs", "-o", "json").json] == [("failed", 0), ("updated", 1)]
    assert [one["outcome"] for one in odf("runs", POLLED, "--failed", "--since", "1h", "-o", "json").json] == ["failed"]
    assert odf("runs", RATES, "-o", "json").json == []
    assert odf("runs", "--since", "2999-01-01", "-o", "json").json == []
    odf("rename", POLLED, "com.example.other")
    assert len(odf("runs", "com.example.other", "-o", "json").json) == 2, "the id counts"
    odf("delete", "com.example.other", "-y")
    assert len(odf("runs", POLLED, "-o", "json").json) == 2, "the name of then"
    assert odf("runs", POLLED, "--since", "2999-01-01").err == "No runs.\n"
    typo = odf("runs", f"{RATES}x")
    assert (typo.code, RATES in typo.err) == (1, True), "a typo is no dataset without runs"
    shown = odf("runs", "-n", "1").out
    assert "E402: " in shown
    assert Workspace.open(workspace).datasets.summary("odf.runs").num_records == 2


def test_status_says_which_scheduled_jobs_fail(odf: Odf, workspace: Path) -> None:
    odf("schedule", "set", RATES, "--job", "push", "--every", "1h", "--to", "nowhere/x", "--attempts", "1")
    assert odf("schedule", "run", RATES, "--job", "push").code == 1
    [told] = [one for one in odf("status", RATES, "-o", "json").json if one["status"] == "failed"]
    assert told["what"].startswith("the last push: No repository is called 'nowhere' (E113, ")
    assert told["command"] == f"odf schedule run {RATES} --job push"
    assert odf("status", RATES).code == 1
    odf("schedule", "remove", RATES, "--job", "push")
    assert odf("status", RATES).code == 0, "nothing will ever clear the failure of a job that was given up"


def test_status_says_what_is_late_and_that_nothing_runs(odf: Odf, workspace: Path) -> None:
    calm = odf("status", RATES)
    assert (calm.code, "no scheduler is running" in calm.err) == (0, False)
    odf("schedule", "set", RATES, "--max-age", "1w")
    assert odf("status", RATES, "-o", "json").json == []
    path = dataset_folder(workspace, RATES) / "info" / "schedule.yaml"
    path.write_text(json.dumps({"kind": "DatasetSchedule", "version": 1, "content": {"maxAge": "1s"}}))
    time.sleep(1.1)  # the workspace may have been made just now
    late = odf("status", RATES)
    assert late.code == 1
    assert "late" in late.out
    assert "no scheduler is running: start `odf run`" in late.err
    odf("schedule", "pause", RATES)
    assert odf("status", RATES).code == 0, "nothing is promised"
    lock = SchedulerLock(workspace / ".odf" / "automation")
    assert lock.take()
    assert "no scheduler is running" not in odf("status", RATES).err
    lock.free()


@pytest.mark.parametrize(
    ("option", "value", "most"),
    [("--attempts", "4294967296", "4294967295"), ("--rows", "18446744073709551616", "9223372036854775807")],
)
def test_numbers_that_no_schedule_has_room_for_are_refused(
    odf: Odf, workspace: Path, option: str, value: str, most: str
) -> None:
    assert odf("schedule", "set", UPPER, "--every", "1h").code == 0
    refused = odf("schedule", "set", UPPER, option, value)
    assert refused.code == 2
    assert most in refused.err
    assert odf("schedule", "show", UPPER).code == 0


def test_after_the_last_day_of_the_calendar_nothing_comes(odf: Odf, workspace: Path) -> None:
    odf("schedule", "set", UPPER, "--every", "1h")
    assert odf("schedule", "next", UPPER, "--after", "9999-12-31T23:30:00Z").code == 0


def test_a_push_without_a_place_is_remarked_on(workspace: Path, odf: Odf, tmp_path: Path) -> None:
    place = str(tmp_path / "pushed" / "rates")
    assert "has not been pushed anywhere yet" in odf("schedule", "set", RATES, "--job", "push", "--every", "1h").err
    assert odf("push", RATES, "--to", place).code == 0
    pushed = odf("schedule", "set", RATES, "--job", "push", "--every", "2h")
    assert (pushed.code, "has not been pushed" in pushed.err) == (0, False)
    assert odf("schedule", "remove", RATES, "--job", "push").code == 0


def test_a_push_to_a_given_place_is_not_remarked_on(workspace: Path, odf: Odf, tmp_path: Path) -> None:
    given = odf("schedule", "set", RATES, "--job", "push", "--every", "1h", "--to", str(tmp_path / "pushed" / "rates"))
    assert (given.code, "has not been pushed" in given.err) == (0, False)


def test_a_scheduler_with_nothing_to_do_says_so(workspace: Path, odf: Odf) -> None:
    def lines_of_scheduler() -> list[str]:
        process = start("run", cwd=workspace)
        assert process.stderr is not None
        lines = []
        while "is running" not in "".join(lines):
            lines.append(process.stderr.readline())
            assert lines[-1]
        process.terminate()
        process.communicate(timeout=PATIENCE)
        return lines

    assert any("note: no dataset has a schedule; `odf schedule set NAME" in line for line in lines_of_scheduler())
    assert odf("schedule", "set", RATES, "--job", "compact", "--cron", "0 0 29 2 *").code == 0
    assert not any("no dataset has a schedule" in line for line in lines_of_scheduler())
