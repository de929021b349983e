"""Real schedulers with real runs: killed at any point, two at once, stopped with grace, inside of a server."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from automation.conftest import POLLED, PUSHED, schedule
from support.examples import examples

from odfpy.automation.history import last_runs, recorded_runs
from odfpy.automation.lock import SchedulerLock
from odfpy.automation.run_now import run_now
from odfpy.automation.scheduler import Scheduler
from odfpy.automation.state import SchedulerState
from odfpy.coordinator.schedules.schedule import DatasetSchedule, Job, Trigger, VerifyTrigger
from odfpy.coordinator.workspace import Workspace
from odfpy.data.duration import Duration
from odfpy.errors import DatasetNotFound

PATIENCE = 300.0
KILLS = examples(8, 20)
EACH_SECOND = DatasetSchedule(pull=Trigger(every=Duration(1)))
NEVER = DatasetSchedule(pull=Trigger(cron="0 0 1 1 *"))

# Imports once, then forks a scheduler for each line it reads, and tells its process id: a start costs nothing then.
ZYGOTE = """
import os, sys, threading
from odfpy.automation.listener import Listener
from odfpy.automation.scheduler import Scheduler
from odfpy.coordinator.workspace import Workspace
root, log = sys.argv[1:]
def began(row):
    with open(log, "a") as file:
        file.write(row["id"] + "\\n")
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        Scheduler(Workspace.open(root), Listener(on_run=began)).work(threading.Event())
        os._exit(0)
    print(pid, flush=True)
    os.waitpid(pid, 0)
"""
SLOW = """kind: DatasetSnapshot
version: 1
content:
  name: com.example.slow
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: "slow/*.csv", order: ByName}
      prepare: [{kind: Pipe, command: [sh, -c, "echo begun > begun; sleep 600"]}]
      read: {kind: Csv, header: true, schema: {fields: [{name: id, type: Int64}]}}
      merge: {kind: Append}
"""


def eventually(holds: Callable[[], Any]) -> Any:
    """Wait for what other processes do."""
    deadline = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
    return found


def put_file(workspace: Workspace, number: int) -> None:
    """A file with one row more for the root that polls."""
    folder = workspace.root / "in"
    folder.mkdir(exist_ok=True)
    (folder / f"{number:04}.csv").write_text(f"id\n{number}\n")


def ended(workspace: Workspace) -> list[dict[str, Any]]:
    return [row for row in last_runs(workspace, num=10_000) if row["outcome"] != "running"]


@contextmanager
def odf(workspace: Workspace, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command in a separate process, which is ended at last."""
    command = [sys.executable, "-m", "odfpy", "-w", str(workspace.root), *words]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def works(workspace: Workspace) -> str | None:
    return SchedulerLock(workspace.odf / "automation").holder


def is_running(workspace: Workspace) -> bool:
    return any(row["outcome"] == "running" for row in last_runs(workspace, num=5))


@pytest.fixture
def slow(workspace: Workspace) -> Workspace:
    """A workspace with a pull that takes ten minutes."""
    manifest = workspace.root / "slow.yaml"
    manifest.write_text(SLOW)
    workspace.add(workspace.load([manifest]))
    (workspace.root / "slow").mkdir()
    (workspace.root / "slow" / "a.csv").write_text("id\n1\n")
    schedule(workspace, "com.example.slow", DatasetSchedule(pull=Trigger(every=Duration(3600))))
    return workspace


def test_killed_at_any_point_many_times_each_run_is_recorded_once(workspace: Workspace, tmp_path: Path) -> None:
    dice = random.Random(7)
    for name in (POLLED, PUSHED):
        job = {"verify": VerifyTrigger(every=Duration(1), integrity_only=True)}
        schedule(workspace, name, EACH_SECOND if name == POLLED else DatasetSchedule(**job))
    log = tmp_path / "begun"
    command = [sys.executable, "-c", ZYGOTE, str(workspace.root), str(log)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as zygote:
        assert zygote.stdin
        assert zygote.stdout
        for number in range(KILLS):
            put_file(workspace, number)
            zygote.stdin.write("go\n")
            zygote.stdin.flush()
            pid = int(zygote.stdout.readline())
            time.sleep(dice.uniform(0.05, 1.5))  # the point at which it is killed
            os.kill(pid, signal.SIGKILL)
        zygote.stdin.close()
    schedule(workspace, PUSHED, NEVER_VERIFIED)
    schedule(workspace, POLLED, NEVER)
    again(workspace)
    rows = list(recorded_runs(workspace, num=10_000))
    counts = Counter(row["id"] for row in rows)
    begun = log.read_text().split()
    assert max(counts.values()) == 1
    assert set(begun) <= counts.keys(), "none is lost"
    assert SchedulerState(workspace.odf / "automation").unfinished() == []
    again(workspace, POLLED)
    assert workspace.datasets.summary(POLLED).num_records == KILLS, "each file was taken in once"
    for name in (POLLED, PUSHED):
        times = sorted((row["started_at"], row["at"]) for row in rows if row["dataset"] == name)
        assert all(before[1] <= after[0] for before, after in pairwise(times)), "one at a time"


NEVER_VERIFIED = DatasetSchedule(verify=VerifyTrigger(cron="0 0 1 1 *"))


def again(workspace: Workspace, name: str | None = None) -> None:
    """Let a scheduler do in this process what is due, and maybe one pull more."""
    import threading

    if name is not None:
        run_now(workspace, workspace.storage.get(name), Job.PULL)
    Scheduler(workspace).work(threading.Event(), once=True)


def test_of_two_schedulers_one_works_and_the_other_takes_over(workspace: Workspace) -> None:
    schedule(workspace, POLLED, EACH_SECOND)
    with odf(workspace, "run") as first, odf(workspace, "run") as second:
        holder = eventually(lambda: works(workspace))
        assert str(first.pid) in holder or str(second.pid) in holder
        one, other = (first, second) if str(first.pid) in holder else (second, first)
        eventually(lambda: is_running(workspace))
        one.kill()
        eventually(lambda: f"process {other.pid} " in (works(workspace) or ""))
        count = len(ended(workspace))
        eventually(lambda: len(ended(workspace)) > count)
        other.send_signal(signal.SIGTERM)
        assert other.wait(PATIENCE) == 0
    assert max(Counter(row["id"] for row in ended(workspace)).values()) == 1


def test_a_graceful_stop_waits_for_what_is_under_way(workspace: Workspace) -> None:
    put_file(workspace, 1)
    schedule(workspace, POLLED, DatasetSchedule(pull=Trigger(every=Duration(3600))))
    with odf(workspace, "run", "-o", "json") as process:
        eventually(lambda: is_running(workspace))
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    (row,) = ended(workspace)
    assert (row["outcome"], row["rows"]) == ("updated", 1)
    assert row["peak_memory"] > 1_000_000
    assert json.loads(out)["id"] == row["id"]


def test_a_second_signal_ends_what_is_under_way(slow: Workspace) -> None:
    with odf(slow, "run") as process:
        eventually(lambda: is_running(slow))
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert process.poll() is None, "it waits"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    (row,) = ended(slow)
    assert (row["outcome"], row["error_message"]) == ("interrupted", "the scheduler has stopped it")


def test_the_process_of_a_run_ends_with_a_killed_scheduler(slow: Workspace) -> None:
    with odf(slow, "run") as process:
        eventually(lambda: is_running(slow))
        children = eventually(lambda: children_of(process.pid))
        process.kill()
        process.wait(PATIENCE)
        eventually(lambda: not any(Path(f"/proc/{child}/cmdline").exists() for child in children))
    schedule(slow, "com.example.slow", NEVER)
    with odf(slow, "run") as process:
        eventually(lambda: any(row["outcome"] == "interrupted" for row in last_runs(slow, num=5)))
        process.kill()


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()] or [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]


def test_a_run_that_takes_too_long_or_dies_has_failed(slow: Workspace) -> None:
    schedule(slow, "com.example.slow", DatasetSchedule(pull=Trigger(every=Duration(3600)), timeout=Duration(2)))
    with odf(slow, "run", "--once") as process:
        assert process.wait(PATIENCE) == 1
    schedule(slow, "com.example.slow", DatasetSchedule(pull=Trigger(every=Duration(1))))
    with odf(slow, "run") as process:
        eventually(lambda: is_running(slow))
        child = eventually(lambda: children_of(process.pid))[0]
        os.kill(child, signal.SIGKILL)
        eventually(lambda: len(ended(slow)) == 2)
        process.kill()
    killed, late = ended(slow)
    assert (late["outcome"], late["error_code"]) == ("failed", "E781")
    assert (killed["outcome"], killed["error_code"]) == ("failed", "E780")
    assert "was killed (signal 9)" in killed["error_message"]


def test_what_somebody_asks_for_is_done_by_the_scheduler_that_works_or_here(workspace: Workspace) -> None:
    put_file(workspace, 1)
    schedule(workspace, POLLED, NEVER)
    dataset = workspace.storage.get(POLLED)
    here = run_now(workspace, dataset)
    assert (here["outcome"], here["reason"]) == ("updated", "manual")
    with odf(workspace, "run"):
        eventually(lambda: works(workspace))
        there = run_now(workspace, dataset, Job.VERIFY)
        assert (there["outcome"], there["job"]) == ("up to date", "verify")
    assert {row["id"] for row in ended(workspace)} == {here["id"], there["id"]}


@pytest.mark.parametrize("works_elsewhere", [False, True])
def test_what_is_asked_of_a_dataset_that_goes_meanwhile_is_told(workspace: Workspace, works_elsewhere: bool) -> None:
    dataset = workspace.storage.get(POLLED)
    with odf(workspace, "run") if works_elsewhere else nullcontext():
        if works_elsewhere:
            eventually(lambda: works(workspace))
        shutil.rmtree(dataset.folder)
        with pytest.raises(DatasetNotFound, match="deleted before its pull began"):
            run_now(workspace, dataset, Job.PULL)
    state = SchedulerState(workspace.odf / "automation")
    assert state.requests() == {}
    state.close()


def test_a_server_has_a_scheduler_inside(workspace: Workspace) -> None:
    put_file(workspace, 1)
    schedule(workspace, POLLED, DatasetSchedule(pull=Trigger(every=Duration(3600))))
    with odf(workspace, "serve", "--run", "--port", "0") as process:
        eventually(lambda: ended(workspace))
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    (line,) = [json.loads(one) for one in log.splitlines() if '"event": "run"' in one]
    assert (line["dataset"], line["outcome"], line["rows"]) == (POLLED, "updated", 1)
    assert works(workspace) is None


def test_once_does_each_job_once_and_leaves_the_rest(workspace: Workspace) -> None:
    put_file(workspace, 1)
    schedule(workspace, POLLED, EACH_SECOND)
    with odf(workspace, "run", "--once") as process:
        out, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    assert len(out.splitlines()) == 1
    assert f"{POLLED}: pull updated (1 row" in out


def test_once_says_that_nothing_is_due_or_that_another_works(workspace: Workspace) -> None:
    schedule(workspace, POLLED, NEVER)

    def once() -> str:
        with odf(workspace, "run", "--once") as process:
            said = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0
        return "".join(said)

    assert once() == "Nothing is due; `odf schedule next` shows the next runs.\n"
    with odf(workspace, "run"):
        eventually(lambda: works(workspace))
        assert "another scheduler is active" in once()
        assert "Nothing is due" not in once()
