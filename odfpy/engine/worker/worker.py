"""The worker: a process with one warm Spark, which serves the commands of one workspace.

    python -m odfpy.engine.worker.worker RUN_FOLDER FINGERPRINT SETTINGS

It ends when it has been idle for long, when it is asked to, when its Java process dies, and when its folder is removed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from odfpy.codec.tree import from_tree
from odfpy.engine.cancellation import Stage
from odfpy.engine.contract import TransformResponseInternalError
from odfpy.engine.settings import EngineSettings
from odfpy.engine.spark.process.java import find_java
from odfpy.engine.spark.process.version import installed_engine_version
from odfpy.engine.worker.confined_host import ConfinedHost
from odfpy.engine.worker.job_profile import JobProfile
from odfpy.engine.worker.leftovers import remove_output
from odfpy.engine.worker.messages import Breakdown, Job, Refusal, Result, Status, Welcome
from odfpy.engine.worker.run_folder import RunFolder
from odfpy.engine.worker.server import PendingJob, Server
from odfpy.errors import EngineUnavailable, OdfError
from odfpy.stages import StageTime, profiling

_LOOK_SECONDS: Final = 1.0
_TRAINING_AFTER_SECONDS: Final = 5.0
_CANCEL_SECONDS: Final = 20.0
_SETTLE_SECONDS: Final = 3.0
_TOLD_SECONDS: Final = 5.0
_ENDING: Final = Refusal("The engine is stopping", retry=True)


class _Ended(BaseException):
    """Raised in the main thread by a signal."""


class Worker:
    """The worker: does jobs one by one in the main thread; all other methods are called from other threads.

    Attributes:
        host: Spark.
    """

    def __init__(self, host: ConfinedHost, settings: EngineSettings, run: RunFolder, lock: int) -> None:
        self.host = host
        self._settings = settings
        self._run = run
        self._lock = lock
        self._begin = time.monotonic()
        self._last_work = self._begin
        self._start_millis: int | None = None
        self._ready = 0.0
        self._jobs_done = 0
        self._queue: deque[PendingJob] = deque()
        self._current: PendingJob | None = None
        self._ending: Refusal | Breakdown | None = None
        self._changed = threading.Condition()
        self._cancelling = threading.Lock()

    # --- The main thread ---

    def main(self) -> None:
        """Start Spark and do jobs until the end.

        Raises:
            EngineUnavailable: Spark does not start; waiting clients have been notified.
        """
        try:
            self.host.start()
            self._start_millis, self._ready = self._uptime_millis(), time.perf_counter()
            with self._changed:
                for waiting in self._queue:
                    waiting.stage = Stage.QUEUED
            self._log(f"ready after {self._start_millis} ms: {_parts(self.host.timings)}; sandbox: {self.host.sandbox}")
            while (job := self._next()) is not None:
                self._do(job)
        except OdfError as error:
            with self._changed:  # the client that started this worker may not have connected yet
                self._changed.wait_for(lambda: self._queue, _TOLD_SECONDS)
            self._end(Breakdown.of(error))
            raise
        except _Ended:
            self._log("ends: it was told to")
        finally:
            self._end(_ENDING)

    def _next(self) -> PendingJob | None:
        """Return the next job, or None when it is time to end."""
        self._last_work = time.monotonic()
        with self._changed:
            while self._ending is None:
                if reason := self._reason_to_stop():
                    self._log(f"ends: {reason}")
                    return None
                if self._queue:
                    job = self._queue.popleft()
                    job.stage = Stage.RUNNING
                    self._current = job
                    return job
                self._train_if_idle()
                self._changed.wait(_LOOK_SECONDS)
        return None

    def _reason_to_stop(self) -> str | None:
        if death := self.host.death():
            return death
        if self._run.has_lost_lock(self._lock):
            return "its folder is gone"
        idle = time.monotonic() - self._last_work
        if idle >= self._settings.idle_seconds and not self._queue:
            return f"it was idle for {idle:.0f} s"
        return None

    def _do(self, job: PendingJob) -> None:
        if self.host.is_out_of_reach(job.request):
            job.answer(_ENDING)
            self._end(_ENDING)
            return
        was_stopped = False
        began = time.perf_counter()
        measured = StageTime("job")
        try:
            with profiling("job") as measured:
                answer = self._serve(job.request)
            # Send a good answer at once: the host is tidying up, and would answer questions only afterwards.
            is_bad = isinstance(answer, (TransformResponseInternalError, Breakdown))
            if is_bad and (death := self.host.death(suspected=not isinstance(answer, Breakdown))):
                answer = answer if isinstance(answer, Breakdown) else Breakdown(f"The engine crashed: {death}")
                if self.host.cache is not None and self.host.uses_cache and death.endswith(("SIGSEGV", "SIGABRT")):
                    self.host.cache.discard()
        except _Ended:
            answer = Breakdown("The engine was stopped in the middle of the job")
            was_stopped = True
            self.host.cancel()
            raise
        finally:
            # Before the answer: once it has that, the client may write to the same names again.
            if job.is_abandoned or isinstance(answer, Breakdown):
                remove_output(job.request)
            if (job.is_abandoned or was_stopped) and not self.host.settles(_SETTLE_SECONDS):
                # A loop in generated code ignores cancellation, and would occupy a processor for ever.
                self._log("the tasks of a job that was cancelled do not end")
                self.host.kill()
            with self._cancelling:  # a cancellation in progress must not hit the next job
                self._current = None
            self._jobs_done += 1
            job.answer(answer, JobProfile.of(*self._waiting_stages(job, began), measured))

    def _waiting_stages(self, job: PendingJob, began: float) -> Iterator[StageTime]:
        """Yield the stages before a job began: waiting for the start of the engine, and for other jobs."""
        for name, since, until in (("start", job.came, self._ready), ("queue", max(job.came, self._ready), began)):
            if until > since:
                waited = StageTime(name)
                waited.add(until - since)
                yield waited

    def _serve(self, request: Job) -> Result | Breakdown:
        try:
            return self.host.serve(request)
        except EngineUnavailable as error:
            return Breakdown.of(error)
        except Exception as error:  # noqa: BLE001  a bug in an operation must not end the engine
            return TransformResponseInternalError(f"{type(error).__name__}: {error}", traceback.format_exc())

    def _train_if_idle(self) -> None:
        if self._jobs_done and time.monotonic() - self._last_work > _TRAINING_AFTER_SECONDS:
            self.train()

    def train(self) -> None:
        """Begin to make the start-up cache if there is none."""
        cache = self.host.cache
        if cache is not None and cache.is_wanted:
            self._log(f"makes the start-up cache {cache.path}")
            self.host.cache = None
            with suppress(OSError):
                cache.start_training(self._settings.memory)

    def _end(self, answer: Refusal | Breakdown) -> None:
        """Take no more jobs; waiting clients get an answer."""
        with self._changed:
            self._ending = self._ending or answer
            waiting = [*self._queue]
            self._queue.clear()
        for job in waiting:
            job.answer(answer)

    def _uptime_millis(self) -> int:
        return int((time.monotonic() - self._begin) * 1000)

    def _log(self, text: str) -> None:
        print(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} engine {os.getpid()}: {text}", flush=True)  # noqa: T201

    # --- Other threads ---

    def submit(self, job: PendingJob) -> bool:
        """Queue a job; return False when no more jobs are taken."""
        with self._changed:
            if isinstance(self._ending, Breakdown):
                job.answer(self._ending)
                return True
            if self._ending is not None:
                return False
            job.stage = Stage.STARTING if self._start_millis is None else Stage.QUEUED
            self._queue.append(job)
            self._changed.notify_all()
            return True

    def tasks(self) -> tuple[int, int]:
        """Return how many tasks of the running job are done, and how many it has."""
        try:
            return self.host.tasks()
        except Exception:  # noqa: BLE001  only for show, and Spark may be dying
            return 0, 0

    def cancel(self, job: PendingJob) -> None:
        """Stop a job that nobody waits for any longer; an engine that cannot be stopped is ended."""
        with self._changed:
            if job in self._queue:
                self._queue.remove(job)
                return
        # Spark is called from a separate thread, since it may be too busy to answer.
        threading.Thread(target=self._ask_to_cancel, args=(job,), daemon=True).start()
        if not job.finished.wait(_CANCEL_SECONDS):
            self.host.kill()
            if not job.finished.wait(_CANCEL_SECONDS):
                os._exit(1)

    def _ask_to_cancel(self, job: PendingJob) -> None:
        while not job.finished.wait(0.1):
            with self._cancelling, suppress(Exception):  # Spark may be dying
                if self._current is job:
                    self.host.cancel()

    def status(self) -> Status:
        """Return the status of the worker."""
        return Status(
            pid=os.getpid(),
            java_pid=self.host.java_pid,
            ready=self._start_millis is not None,
            busy=self._current is not None,
            uptime_millis=self._uptime_millis(),
            start_millis=self._start_millis,
            jobs_done=self._jobs_done,
            memory_bytes=self.host.memory_bytes,
            engine_version=installed_engine_version(self.host.java),
            java=f"{self.host.java.version} ({self.host.java.source})",
            startup_cache=self.host.uses_cache,
            sandbox=self.host.sandbox,
        )

    def stop(self, *, force: bool) -> None:
        """Stop the worker, after the running job or at once."""
        if force:
            os.kill(os.getpid(), signal.SIGTERM)
        self._end(_ENDING)
        with self._changed:
            self._changed.notify_all()


def _parts(timings: Mapping[str, float]) -> str:
    return ", ".join(f"{part} {seconds:.2f} s" for part, seconds in timings.items())


def _end_on_signals() -> None:
    def end(_number: int, _frame: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: the end must not be interrupted
        raise _Ended

    signal.signal(signal.SIGTERM, end)
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)


def main(arguments: list[str]) -> int:
    """Run the worker; without effect when the folder has a worker already."""
    folder, fingerprint, settings_text = arguments
    run = RunFolder(Path(folder))
    lock = run.hold()
    if lock is None:
        return 0
    _end_on_signals()
    settings: EngineSettings = from_tree(EngineSettings, json.loads(settings_text))
    scratch = run.make_scratch()
    os.environ["TMPDIR"] = str(scratch)
    os.chdir("/")  # away from folders where confined processes can put files
    host = ConfinedHost(settings, find_java(), run, scratch)
    # Before the listener has threads: a fork copies only the thread that forks, and locks held by others stay locked.
    host.launch()
    worker = Worker(host, settings, run, lock)
    listener = _listen(run, Welcome(fingerprint, host.weakness), worker)
    try:
        worker.main()
    except OdfError as error:
        print(f"engine {os.getpid()}: {error}", flush=True)  # noqa: T201
        return 1
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        run.hang_up(lock)
        listener.close()
        host.end()
        worker.train()
        run.release(lock)
    return 0


def _listen(run: RunFolder, welcome: Welcome, worker: Worker) -> socket.socket:
    # The secret comes first: a client that reaches the socket reads it at once.
    secret = run.make_secret()
    listener = run.listen()
    Server(listener, secret, welcome, worker).start()
    return listener


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
