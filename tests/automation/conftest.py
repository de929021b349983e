"""Workspaces with schedules, and schedulers whose clock and whose runs a test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import FOLDER, copied, derivative, feed, root, workspace_with

from odfpy.automation.listener import Listener
from odfpy.automation.runs import Run, RunResult
from odfpy.automation.scheduler import Clocks, Scheduler
from odfpy.automation.work import Work
from odfpy.coordinator.schedules.file import notify_changed, save_schedule
from odfpy.coordinator.schedules.schedule import DatasetSchedule
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import OdfError

LEDGER = "{kind: Ledger, primaryKey: [id]}"
POLLED, PUSHED, DERIVED = "com.example.folder", "com.example.rates", "com.example.upper"


@pytest.fixture(scope="package")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A root that polls, a root that is pushed to, and what is derived from that."""
    workspace = workspace_with(
        tmp_path_factory.mktemp("prepared"), FOLDER, root(PUSHED, LEDGER), derivative(DERIVED, PUSHED)
    )
    feed(workspace, PUSHED, "1 a", "2 b")
    return workspace


@pytest.fixture
def workspace(prepared: Workspace, tmp_path: Path) -> Workspace:
    """A copy of it."""
    return copied(prepared, tmp_path / "workspace")


def schedule(workspace: Workspace, name: str, wanted: DatasetSchedule) -> None:
    """Give a dataset a schedule, as `odf schedule set` does."""
    save_schedule(workspace.storage.get(name).folder, wanted)
    notify_changed(workspace.storage)


@dataclass
class FakeRunner:
    """Runs that end when a test says so."""

    running: dict[str, tuple[Run, Work]] = field(default_factory=dict)
    adopted: list[Run] = field(default_factory=list)
    refuses: OdfError | None = None
    timeouts: list[float | None] = field(default_factory=list)
    _ended: list[tuple[Run, RunResult]] = field(default_factory=list)

    def start(self, run: Run, work: Work, timeout: float | None) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.timeouts.append(timeout)
        self.running[run.id] = (run, work)

    def adopt(self, run: Run) -> None:
        self.adopted.append(run)
        self._ended.append((run, RunResult.interrupted("killed")))

    def ended(self) -> Iterator[tuple[Run, RunResult]]:
        while self._ended:
            yield self._ended.pop(0)

    def end_all(self) -> None:
        for run, _ in list(self.running.values()):
            self.end(run.id, RunResult.interrupted("ended"))

    def forget(self, run: Run) -> None:
        self.running.pop(run.id, None)

    def end(self, run_id: str, result: RunResult) -> None:
        self._ended.append((self.running.pop(run_id)[0], result))


@dataclass
class Bench:
    """A scheduler in the hand of a test.

    Attributes:
        now: the wall clock.
        runner: its runs.
        rows: rows of runs that have ended.
        notices: kinds and texts that a person would hear.
        remarks: what is wrong with it.
    """

    workspace: Workspace
    now: float
    runner: FakeRunner = field(default_factory=FakeRunner)
    rows: list[Mapping[str, Any]] = field(default_factory=list)
    notices: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    steady: float = 0.0

    def __post_init__(self) -> None:
        listener = Listener(
            self._run, lambda kind, _, text, __: self.notices.append((kind.value, text)), self.remarks.append
        )
        clocks = Clocks(lambda: self.now, lambda: self.steady)
        self.scheduler = Scheduler(self.workspace, listener, runner=self.runner, clocks=clocks)
        self.scheduler.begin()

    def _run(self, row: Mapping[str, Any]) -> None:
        if row["outcome"] != "running":
            self.rows.append(row)

    def beat(self, seconds: float = 1.0) -> list[tuple[str, str]]:
        """Let time pass, and return the jobs that run then."""
        self.now += seconds
        self.steady += max(seconds, 1.0)
        self.scheduler.beat()
        return [(run.name, work.job.value) for run, work in self.runner.running.values()]

    def end(self, outcome: str = "updated", **more: Any) -> None:
        """End the run that was started first, and let the scheduler see it."""
        self.runner.end(next(iter(self.runner.running)), RunResult(outcome=outcome, **more))
        self.beat(0.0)


@pytest.fixture
def bench(workspace: Workspace) -> Iterator[Callable[..., Bench]]:
    """Makes schedulers of the workspace, which are closed at the end; the clock begins now."""
    import time

    made: list[Bench] = []

    def make(now: float | None = None) -> Bench:
        made.append(Bench(workspace, time.time() if now is None else now))
        return made[-1]

    yield make
    for one in made:
        one.scheduler.close()
