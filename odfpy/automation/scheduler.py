"""The scheduler: a loop between the planner, which decides what to start, and the workspace, files and processes.

1. wait for the lock: only one scheduler of a workspace is active
2. take over from the last scheduler: running processes, and rows that are missing in the log of runs
3. twice a second: check schedules, heads and requests; start due runs; record completed ones
4. to stop: start no more runs, wait for running ones, and terminate those that take too long
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odfpy.automation.due import JobHistory, JobKey
from odfpy.automation.errors import StateUnusable
from odfpy.automation.freshness import FreshnessChecks
from odfpy.automation.job_planner import JobPlanner, Outcome, Planned, Start
from odfpy.automation.listener import Listener
from odfpy.automation.lock import SchedulerLock
from odfpy.automation.notifications.notice import NoticeKind
from odfpy.automation.runner import ProcessRunner, Runner
from odfpy.automation.runs import RUNS, Run, RunResult
from odfpy.automation.state import SchedulerState
from odfpy.automation.watch import Watched, WorkspaceWatcher
from odfpy.automation.work import Work, failed
from odfpy.coordinator.record_log import RecordLog
from odfpy.coordinator.schedules.schedule import DatasetSchedule, Job
from odfpy.dataset.identity import DID_ODF_PREFIX
from odfpy.errors import DatasetNotFound, OdfError
from odfpy.settings.sections import AutomationSection

if TYPE_CHECKING:
    import threading

    from odfpy.coordinator.storage.storage import StoredDataset
    from odfpy.coordinator.workspace import Workspace

BEAT: Final = 0.5
"""Seconds between two iterations of the loop."""

_RETRY_AFTER: Final = 5.0
"""Seconds until a failed write is retried, for example after the disk was full."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """The clocks of a scheduler; tests replace them.

    Attributes:
        wall: wall clock in seconds since the epoch, which may jump.
        monotonic: monotonic clock in seconds.
    """

    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic


@dataclass
class _Ended:
    """A completed run that has not been recorded."""

    run: Run
    result: RunResult
    past: JobHistory
    row: dict[str, Any] = field(default_factory=dict)


class Scheduler:
    """Executes the schedules of a workspace. All methods but `skip_grace_period` must be called in one thread."""

    def __init__(
        self,
        workspace: Workspace,
        listener: Listener | None = None,
        *,
        runner: Runner | None = None,
        clocks: Clocks | None = None,
    ) -> None:
        """
        Args:
            workspace: the workspace.
            listener: listener for events.
            runner: executes runs; in processes by default.
            clocks: the clocks.
        """
        section = workspace.config.section(AutomationSection)
        self._workspace = workspace
        self._folder: Path = workspace.storage.odf / "automation"
        self._listener = listener or Listener()
        self._clocks = clocks or Clocks()
        self._timeout = section.timeout
        self._lock = SchedulerLock(self._folder)
        self._runner = runner or ProcessRunner(workspace.root, self._folder / "running")
        self._planner = JobPlanner(section.parallel)
        self._watcher = WorkspaceWatcher(
            workspace.storage, lambda key: self._planner.history_of(key).seen_rows, self._remark
        )
        self._freshness = FreshnessChecks()
        self._log = RecordLog(workspace, RUNS, section.record_interval)
        self._state: SchedulerState | None = None
        self._ended: list[_Ended] = []
        self._not_before = 0.0
        self._is_once = self._only_requests = False
        self._has_run: set[JobKey] = set()
        self._is_hurried = False
        self._requests_stamp: object = None

    # --- The loop ---

    def work(
        self, stop: threading.Event, *, grace: float = 30.0, once: bool = False, only_requests: bool = False
    ) -> bool:
        """Run until stopped; wait while another scheduler of the workspace is active.

        Args:
            stop: event that stops the scheduler.
            grace: seconds to wait for running jobs on stop.
            once: whether to run only what is due now, and to do nothing if another scheduler is active.
            only_requests: whether to run only manual requests.

        Returns:
            True if this scheduler was active.

        Raises:
            OdfError: the scheduler cannot start.
        """
        self._is_once, self._only_requests = once, only_requests
        if not self._await_lock(stop, once=once):
            return False
        try:
            self.begin()
            while not stop.is_set():
                self.beat()
                if once and self._planner.is_idle and not self._ended:
                    break
                stop.wait(BEAT)
            self._wind_down(grace)
        finally:
            self.close()
        return True

    def skip_grace_period(self) -> None:
        """Terminate running jobs immediately on stop, without the grace period; may be called from any thread."""
        self._is_hurried = True

    def beat(self) -> None:
        """Run one iteration of the loop."""
        now = self._clocks.wall()
        self._poll(now)
        self._collect(now)
        self._notify_lateness(now)
        if self._clocks.monotonic() >= self._not_before:
            self._start(now)

    # --- Start and end ---

    def _await_lock(self, stop: threading.Event, *, once: bool) -> bool:
        is_told = False
        tries = 3  # a status check holds the lock for a moment
        while not self._lock.take():
            tries -= 1
            if once and tries == 0:
                self._remark(f"another scheduler is active: {self._lock.holder}")
                return False
            if not once and not is_told and (holder := self._lock.holder) is not None:
                is_told = True
                self._remark(f"waits: another scheduler is active: {holder}")
            if stop.wait(BEAT):
                return False
        return True

    def begin(self) -> None:
        """Open the state, and take over the work of the last scheduler; requires the lock."""
        self._state = state = SchedulerState(self._folder)
        self._planner.remember(state.pasts())
        self._freshness.remember(state.late())
        for row in state.unlogged():
            self._log.record(row)
        self._confirm_logged(state)
        for run in state.unfinished():
            self._planner.adopt_running(run.start)
            self._runner.adopt(run)

    def _wind_down(self, grace: float) -> None:
        deadline = self._clocks.monotonic() + grace
        while not self._planner.is_idle:
            if self._is_hurried or self._clocks.monotonic() >= deadline:
                self._runner.end_all()
            self._collect(self._clocks.wall())
            time.sleep(BEAT / 5)
        if self._ended:
            self._record_ended()

    def close(self) -> None:
        """Write all rows to the log of runs, and release the lock."""
        self._log.stop()
        if self._state is not None:
            self._state.close()
        self._lock.free()

    # --- Polling ---

    def _poll(self, now: float) -> None:
        for watched in self._watcher.schedules(self._clocks.monotonic()):
            self._update_schedule(watched, now)
        for watched in list(self._watcher.moved(self._clocks.monotonic())):
            self._update_changes(watched, now)
        self._enqueue_requests(now)

    def _update_schedule(self, watched: Watched, now: float) -> None:
        if watched.planned is None:
            self._planner.drop(watched.id)
            self._freshness.drop(watched.id)
            return
        self._planner.put(watched.id, watched.planned, now)
        self._update_changes(watched, now)

    def _update_changes(self, watched: Watched, now: float) -> None:
        """Pass the changes of a dataset to the planner, and the time of its last rows to the freshness checks."""
        for key, changes in self._watcher.news(watched, now):
            self._planner.set_changes(key, changes)
        if watched.planned is not None:
            self._freshness.put(watched.id, watched.planned, watched.last_data)

    def _enqueue_requests(self, now: float) -> None:
        """Pass requests for runs to the planner, unless nothing has been written since the last call."""
        stamp = (self._watcher.stamps, self._watcher.swept)
        if self._state is None or stamp == self._requests_stamp:
            return
        try:
            for request, key in self._state.requests().items():
                self._planner.ask(request, key, now)
        except StateUnusable as error:
            self._remark(error.message)
        else:
            self._requests_stamp = stamp

    # --- Starting ---

    def _start(self, now: float) -> None:
        assert self._state is not None  # noqa: S101  set before the first beat
        for start, before, past in self._planner.start_next(now, self._is_wanted):
            key, error = start.key, None
            try:
                name = str(self._dataset(key).handle)
            except DatasetNotFound:  # deleted in the meantime: the next check removes its schedule
                self._planner.cancel(start, before)
                if start.request is not None:
                    self._state.withdraw(start.request)
                continue
            except OdfError as damage:
                name, error = key.dataset, damage
            watched = self._watcher.watched.get(key.dataset)
            run_id, records = start.request or str(uuid.uuid4()), watched.records if watched else None
            run = Run(run_id, start, name, _dataset_id(key), now, records)
            self._begin_run(run, before, past, error)

    def _is_wanted(self, start: Start) -> bool:
        """Return whether a run may start; with `once`, each job runs only once, so that the loop ends."""
        if self._only_requests:
            return start.request is not None
        return not (self._is_once and start.key in self._has_run)

    def _begin_run(self, run: Run, before: JobHistory, past: JobHistory, error: OdfError | None) -> None:
        assert self._state is not None  # noqa: S101
        try:
            if not self._state.begin(run, past):
                self._planner.cancel(run.start, before)
                return
        except StateUnusable as unusable:  # an unrecorded run must not start, or it could start twice
            self._planner.withdraw(run.start, before)
            self._not_before = self._clocks.monotonic() + _RETRY_AFTER
            self._remark(unusable.message)
            return
        self._has_run.add(run.start.key)
        self._listener.on_run(run.row(None, run.started))
        if error is None:
            try:
                self._runner.start(run, self._work_of(run.start.key), self._timeout_of(run.start.key))
            except OdfError as why:
                error = why
        if error is not None:
            self._end(run, failed(error), run.started)
            self._record_ended()

    def _dataset(self, key: JobKey) -> StoredDataset:
        from odfpy.coordinator.storage.stored_dataset import StoredDataset

        folder = self._workspace.storage.odf / "datasets" / key.dataset
        if not folder.is_dir():
            raise DatasetNotFound(f"No dataset {_dataset_id(key)}")
        return StoredDataset.load(folder, self._workspace.storage)

    def _planned(self, key: JobKey) -> Planned | None:
        watched = self._watcher.watched.get(key.dataset)
        return None if watched is None else watched.planned

    def _work_of(self, key: JobKey) -> Work:
        planned = self._planned(key)
        schedule = planned.schedule if planned is not None else DatasetSchedule()
        return Work(
            key.job,
            _dataset_id(key),
            bool(schedule.verify and schedule.verify.integrity_only),
            schedule.push.to if schedule.push else None,
        )

    def _timeout_of(self, key: JobKey) -> float | None:
        planned = self._planned(key)
        if planned is not None and planned.schedule.timeout is not None:
            return float(planned.schedule.timeout.seconds)
        return None if self._timeout is None else float(self._timeout)

    # --- Ending ---

    def _collect(self, now: float) -> None:
        for run, result in self._runner.ended():
            self._end(run, result, now)
        if self._ended:
            self._record_ended()

    def _end(self, run: Run, result: RunResult, now: float) -> None:
        outcome = Outcome(result.outcome)
        failures = self._planner.history_of(run.start.key).failures
        past = self._planner.ended(run.start, outcome, now, run.seen_rows)
        row = run.row(result, now)
        self._ended.append(_Ended(run, result, past, row))
        self._listener.on_run(row)
        self._notice_end(row, outcome, failures, past)
        watched = self._watcher.watched.get(run.start.key.dataset)
        if watched is not None:
            self._update_changes(watched, now)

    def _record_ended(self) -> None:
        """Record completed runs: first in the state, then in the log of runs, and then mark them as logged."""
        assert self._state is not None  # noqa: S101
        try:
            while self._ended:
                ended = self._ended[0]
                self._state.end(ended.run, ended.past, ended.row)
                self._ended.pop(0)
                self._log.record(ended.row)
                self._runner.forget(ended.run)
            self._confirm_logged(self._state)
        except StateUnusable as error:
            self._not_before = self._clocks.monotonic() + _RETRY_AFTER
            self._remark(error.message)

    def _confirm_logged(self, state: SchedulerState) -> None:
        ids = [row["id"] for row in state.unlogged()]
        if not ids:
            return
        try:
            self._log.sync()
        except OSError as error:
            self._remark(f"the log of runs cannot be written: {error.strerror}")
        else:
            state.logged(ids)

    # --- Notifications ---

    def _notice_end(self, row: Mapping[str, Any], outcome: Outcome, failures: int, past: JobHistory) -> None:
        name, job = row["dataset"], row["job"]
        if outcome is Outcome.FAILED and (past.failures == 1 or past.retry_at is None):
            again = "" if past.retry_at is None else "; it will be retried"
            text = f"{name}: {job} failed: {row['error_message']} ({row['error_code']}){again}"
            self._listener.on_notice(NoticeKind.FAILED, name, text, row)
        elif outcome.has_succeeded and failures:
            times = f"{failures} failure{'' if failures == 1 else 's'}"
            self._listener.on_notice(NoticeKind.RECOVERED, name, f"{name}: {job} succeeded after {times}", row)

    def _notify_lateness(self, now: float) -> None:
        """Send notices for datasets that have become late, or are on time again."""
        for dataset, is_late, text in self._freshness.changes(now):
            name = self._name(dataset)
            kind = NoticeKind.LATE if is_late else NoticeKind.ON_TIME
            # Notify before recording: a crash in between repeats the notice, instead of losing it.
            self._listener.on_notice(kind, name, f"{name}: {text}", None)
            try:
                assert self._state is not None  # noqa: S101
                self._state.set_late(dataset, is_late=is_late)
            except StateUnusable as error:
                self._remark(error.message)

    def _name(self, dataset: str) -> str:
        try:
            return str(self._dataset(JobKey(dataset, Job.PULL)).handle)
        except OdfError:
            return dataset

    def _remark(self, text: str) -> None:
        self._listener.on_remark(text)


def _dataset_id(key: JobKey) -> str:
    return DID_ODF_PREFIX + key.dataset
