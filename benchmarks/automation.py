"""What a scheduler costs that has nothing to do, how soon it starts what is due, and how `odf runs` lists a million.

python benchmarks/automation.py [--schedules 1000] [--runs 1000000] [--seconds 20] [--only idle|latency|runs]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from support import PUSH, odf, print_machine, show
from support.runs import many_runs

from odfpy import Workspace
from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.schedules.file import notify_changed, save_schedule
from odfpy.coordinator.schedules.schedule import DatasetSchedule, Trigger, VerifyTrigger
from odfpy.data.duration import Duration

PATIENCE = 120.0
ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: {source}
      read: {{kind: NdJson, ddlSchema: [event_time TIMESTAMP, id BIGINT]}}
      merge: {{kind: Append}}
"""
POLLS = "SetPollingSource\n      fetch: {kind: FilesGlob, path: 'in/*.ndjson', order: ByName}"
DERIVED = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: pushed, alias: pushed}}]
      transform: {{kind: Sql, engine: datafusion, query: "select event_time, id from pushed"}}
"""
NEVER = "0 0 1 1 *"


def main() -> None:
    """Run all of it, or one part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--only", choices=["idle", "latency", "runs"])
    arguments = parser.parse_args()
    print_machine()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "workspace"
        if arguments.only != "runs":
            workspace = made(folder, arguments.schedules)
            with scheduler(folder) as process:
                if arguments.only != "latency":
                    idle(process, arguments.seconds, arguments.schedules)
                if arguments.only != "idle":
                    latency(workspace)
        if arguments.only in (None, "runs"):
            runs(Path(name) / "many", arguments.runs)


def made(folder: Path, count: int) -> Workspace:
    """A workspace with schedules: by cron, and for new rows of an input that all of these share."""
    workspace = Workspace.init(folder)
    polls, derived = count - count // 4, count // 4
    texts = [ROOT.format(name="pushed", source=PUSH)]
    texts += [ROOT.format(name=f"poll.n{number}", source=POLLS) for number in range(polls)]
    workspace.add(load_snapshots("---\n".join(texts), "manifests"))
    put_rows(workspace, 1)
    workspace.add(load_snapshots("---\n".join(DERIVED.format(name=f"der.n{n}") for n in range(derived)), "manifests"))
    for dataset in workspace.storage.datasets():
        name = str(dataset.handle)
        if name.startswith("poll"):
            save_schedule(dataset.folder, DatasetSchedule(pull=Trigger(cron=NEVER, timezone="Europe/Berlin")))
        elif name.startswith("der"):
            trigger = Trigger(rows=1_000_000_000)
            save_schedule(dataset.folder, DatasetSchedule(pull=trigger, max_age=Duration(86_400)))
    notify_changed(workspace.storage)
    return workspace


def put_rows(workspace: Workspace, number: int) -> None:
    """One more row of the input."""
    file = workspace.root / "rows.ndjson"
    file.write_text(json.dumps({"event_time": "2026-01-01T00:00:00Z", "id": number}) + "\n")
    list(workspace.ingest("pushed", [file]))


@contextmanager
def scheduler(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A scheduler that works, from when it has read all schedules."""
    with subprocess.Popen(
        [sys.executable, "-m", "odfpy", "-w", str(folder), "run"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        time.sleep(3)
        eventually(lambda: cpu_seconds(process.pid, over=1.0) < 0.1)
        yield process
        process.send_signal(signal.SIGTERM)


def cpu_seconds(pid: int, over: float) -> float:
    """Seconds of a processor that a process takes within some time."""
    before = _cpu(pid)
    time.sleep(over)
    return _cpu(pid) - before


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def idle(process: subprocess.Popen[bytes], seconds: float, count: int) -> None:
    """The share of a core that it takes when nothing is due."""
    share = cpu_seconds(process.pid, seconds) / seconds
    print(f"idle with {count} schedules: {share:.2%} of a core over {seconds:.0f} s (target: 1 %)")


def latency(workspace: Workspace) -> None:
    """The time from when a run is due until it is started: by time, and by rows that another process commits."""
    dataset = workspace.storage.get("poll.n0")
    save_schedule(dataset.folder, DatasetSchedule(pull=Trigger(every=Duration(2))))
    notify_changed(workspace.storage)
    eventually(lambda: len(rows_of(workspace, "poll.n0")) >= 8)
    save_schedule(dataset.folder, DatasetSchedule(pull=Trigger(cron=NEVER)))
    late = [seconds(row["started_at"]) - seconds(row["due_at"]) for row in rows_of(workspace, "poll.n0")[1:]]
    print(f"by time: started after {statistics.median(late):.2f} s, at most {max(late):.2f} s (target: 1 s)")
    pushed = workspace.storage.get("pushed")
    save_schedule(pushed.folder, DatasetSchedule(verify=VerifyTrigger(rows=1, integrity_only=True)))
    notify_changed(workspace.storage)
    waits = []
    for number in range(8):
        eventually(lambda n=number: len(rows_of(workspace, "pushed")) > n)  # type: ignore[misc]
        put_rows(workspace, number)
        committed = time.time()
        eventually(lambda n=number: len(rows_of(workspace, "pushed")) > n + 1)  # type: ignore[misc]
        waits.append(seconds(rows_of(workspace, "pushed")[-1]["started_at"]) - committed)
    print(f"by rows: started after {statistics.median(waits):.2f} s, at most {max(waits):.2f} s (target: 2 s)")


def rows_of(workspace: Workspace, name: str) -> list[dict[str, str]]:
    """The runs for a dataset that have ended, as the scheduler remembers them."""
    path = workspace.storage.odf / "automation" / "state.db"
    with closing(sqlite3.connect(path)) as database:
        text = "SELECT row FROM runs WHERE name = ? AND row IS NOT NULL ORDER BY number"
        return [json.loads(row) for (row,) in database.execute(text, (name,))]


def seconds(text: str) -> float:
    """Seconds since 1970 of a time in a row."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def eventually(holds: Callable[[], object]) -> None:
    """Wait for what another process does."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit("it did not happen")
        time.sleep(0.1)


def runs(folder: Path, count: int) -> None:
    """`odf runs` with many runs in their dataset."""
    many_runs(Workspace.init(folder), count)
    for words in (["runs"], ["runs", "--failed"], ["runs", "n7", "-n", "100"], ["runs", "--since", "2026-01-12"]):
        show(f"odf {' '.join(words)}, of {count} runs", 1.0, [odf(folder, *words) for _ in range(3)])


if __name__ == "__main__":
    main()
