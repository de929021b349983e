"""Spark in a sandbox, as seen by the worker: start, jobs, questions, end. See the decision record "Sandbox"."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from fcntl import F_GETFL, fcntl
from pathlib import Path
from typing import Final

from odfpy.engine.contract import TransformResponseInternalError
from odfpy.engine.settings import EngineSettings, SandboxMode
from odfpy.engine.spark.process.java import JavaRuntime
from odfpy.engine.spark.process.jvm import spark_home
from odfpy.engine.spark.process.startup_cache import StartupCache
from odfpy.engine.worker.files import RequestFiles, check_answer, files_of, peculiar_files
from odfpy.engine.worker.job_profile import JobProfile
from odfpy.engine.worker.messages import (
    Channel,
    HostMessage,
    HostQuery,
    HostQueryKind,
    HostReply,
    Job,
    Result,
    Start,
    Started,
)
from odfpy.engine.worker.run_folder import RunFolder
from odfpy.engine.worker.sandboxed_host import serve
from odfpy.engine.worker.spark_host import SparkHost
from odfpy.errors import EngineError, EngineUnavailable, MalformedData
from odfpy.sandbox.limits import ProcessLimits, excess, family_of, most_memory
from odfpy.sandbox.supervisor import Sandbox, SandboxError, run_confined, run_restricted, run_unconfined
from odfpy.sandbox.view import View, is_in, view_of_python
from odfpy.stages import stage

_LOG: Final = 2
_MAX_LOG_LENGTH: Final = 64 << 20
_MIN_PROCESSES: Final = 4096
_WATCH_SECONDS: Final = 1.0
_END_SECONDS: Final = 15.0
_DEATH_SECONDS: Final = 1.0
_ANSWER_SECONDS: Final = 30.0  # the machine may be very busy; a client waits for 60 s
_HINT: Final = (
    "`odf system diagnose` says what is missing; `odf config set engine.sandbox best-effort` starts without it."
)
# Also visible where only files can be confined, and the engine sees the system as it is.
_SEEN_BY_ALL: Final = ("/proc", "/sys", "/dev", "/etc/hosts", "/etc/nsswitch.conf", "/etc/resolv.conf")
_PARTS_WITH_INPUTS: Final = ("datasets", "cache", "run/scratch", "run/clients")


class ConfinedHost:
    """Spark in sandboxed processes of its own, controlled by the worker. It does one job at a time.

    Attributes:
        java: the Java runtime it runs on.
        cache: the start-up cache, or None when it cannot have one.
        uses_cache: whether Java uses the cache.
        timings: seconds from the beginning of the start to the end of each of its phases.
        sandbox: how it is confined, in words.
        weakness: what a full sandbox has and this one lacks; None for nothing, or when no sandbox is wanted.
    """

    def __init__(self, settings: EngineSettings, java: JavaRuntime, run: RunFolder, scratch: Path) -> None:
        self.java = java
        self.cache: StartupCache | None = None
        if settings.startup_cache:
            self.cache = StartupCache.of(java, spark_home(), os.environ, settings.memory)
        self.uses_cache = False
        self.timings: dict[str, float] = {}
        self.sandbox = "off"
        self.weakness: str | None = None
        self._settings = settings
        self._run = run
        self._scratch = scratch
        self._limits = ProcessLimits(
            memory=settings.most_memory or most_memory(),
            disk=settings.most_disk,
            # Each Python process of a task has as many threads as there are processors.
            processes=max(_MIN_PROCESSES, 256 * (os.cpu_count() or 1)),
        )
        self._reachable: tuple[str, ...] | None = None  # the folders within reach, if only Landlock confines
        self._writable: tuple[str, ...] = ()
        self._more: tuple[tuple[str, ...], tuple[str, ...]] = (), ()  # further folders to read, and to write to
        self._sandbox: Sandbox | None = None
        self._java_pid: int | None = None
        self._folders: tuple[str, ...] = (str(scratch),)
        self._excess: str | None = None
        self._refusal: str | None = None
        self._asking = threading.Lock()

    # --- Starting ---

    def launch(self) -> None:
        """Start the processes, while this process has a single thread. `start` reports what goes wrong."""
        own_end, child_end = socket.socketpair()
        self._questions, questions = socket.socketpair()
        self._jobs = Channel(own_end)
        options = self.cache.options if self.cache else ()
        self._had_cache = bool(options)
        scratch, settings, java = self._scratch, self._settings, self.java

        def work() -> int:
            os.chdir(scratch)
            os.environ["HOME"] = str(scratch)
            return serve(SparkHost(settings, java, scratch, _LOG, options), child_end, questions)

        self._sandbox = self._confine(work, (child_end.fileno(), questions.fileno()))
        child_end.close()
        questions.close()
        self._questions.settimeout(_ANSWER_SECONDS)

    def _confine(self, work: Callable[[], int], keep: tuple[int, ...]) -> Sandbox | None:
        mode = self._settings.sandbox
        if self._settings.is_cluster:
            self.sandbox = "off: on a cluster, its operator has to confine the executors"
            if mode is SandboxMode.REQUIRED:
                self._refusal = (
                    "engine.sandbox is `required`, and the executors of a cluster are out of its reach. "
                    "Set it to `off` if the cluster confines them."
                )
                return None
            if mode is SandboxMode.BEST_EFFORT:
                self.weakness = (
                    "on a cluster, its queries run with the rights of the executors there and of your account here"
                )
        if mode is SandboxMode.OFF or self._settings.is_cluster:
            return run_unconfined(work, keep)
        view = self._view()
        try:
            sandbox = run_confined(work, view, self._limits, keep)
        except SandboxError as error:
            if mode is SandboxMode.REQUIRED:
                self._refusal = (
                    f"engine.sandbox is `required`, and the system does not let us build one: {error}. {_HINT}"
                )
                return None
            return self._confine_files(work, view, keep, str(error))
        self.sandbox = "namespaces and Landlock"
        return sandbox

    def _confine_files(self, work: Callable[[], int], view: View, keep: tuple[int, ...], why: str) -> Sandbox:
        workspace = self._run.path.absolute().parent
        parts = tuple(str(workspace / part) for part in _PARTS_WITH_INPUTS)
        for part in parts:
            Path(part).mkdir(parents=True, exist_ok=True)
        self._more = self._run.take_more_folders()
        reads = (*view.reads, *_SEEN_BY_ALL, *parts[:2], *self._more[0])
        folders = (view.folder, *parts[2:], *self._more[1], "/dev/null")
        try:
            sandbox = run_restricted(work, reads, folders, self._limits, keep)
        except SandboxError as error:
            self.sandbox = "off: the system refuses"
            self.weakness = f"its queries run with the rights of your account: {why}; {error}"
            return run_unconfined(work, keep)
        self._reachable, self._writable = (*reads, *folders), folders
        self.sandbox = "Landlock only"
        self.weakness = f"its queries have network access, and see other processes and all datasets: {why}"
        return sandbox

    def _view(self) -> View:
        more = [self.java.home, spark_home(), *Path("/etc").glob("java*")]
        if self.cache is not None:
            more.append(self.cache.path)
        # Hide the workspace, even if it is inside of a visible folder.
        return view_of_python(*more, folder=self._scratch, hidden=self._run.path.absolute().parent)

    def start(self) -> None:
        """Wait until Spark has started.

        Raises:
            EngineUnavailable: it does not start, or has to be sandboxed and cannot be.
        """
        if self._sandbox is None:
            raise EngineUnavailable(self._refusal or "The engine has not been launched")
        threading.Thread(target=self._watch, name="watch", daemon=True).start()
        try:
            started = self._jobs.receive(Start)
        except (OSError, MalformedData) as error:
            raise EngineUnavailable(f"The engine crashed at its start: {error}") from error
        if not isinstance(started, Started):
            if started is not None:
                raise started.raised()
            raise EngineUnavailable(f"The engine crashed at its start: {self._end()}")
        self.timings = {part.name: part.millis / 1000 for part in started.parts}
        self.uses_cache = started.uses_cache
        if self.cache is not None and self._had_cache and not self.uses_cache:
            self.cache.discard()  # Java could not run with it
        # Java reports its process id within its own namespace, which differs from the one outside.
        inner = {member.inner_pid: member.pid for member in family_of(self._sandbox.pid)}
        self._java_pid = inner.get(started.java_pid)

    # --- At work ---

    @property
    def java_pid(self) -> int | None:
        """Return the process id of the Java process while it runs."""
        return self._java_pid

    @property
    def memory_bytes(self) -> int:
        """Return how much memory its processes hold."""
        return sum(member.memory for member in family_of(self._sandbox.pid)) if self._sandbox else 0

    def is_out_of_reach(self, job: Job) -> bool:
        """Return whether the engine has to be restarted to reach the files of a job; they are noted for the restart."""
        if self._reachable is None:
            return False
        files = files_of(job)
        parents = {str(Path(path).parent) for path in files.reads}
        reads = {path for path in parents if not any(is_in(path, shown) for shown in self._reachable)}
        writes = {path for path in files.folders if not any(is_in(path, shown) for shown in self._writable)}
        if reads or writes:
            self._run.note_more_folders(reads.union(self._more[0]), writes.union(self._more[1]))
        return bool(reads or writes)

    def serve(self, job: Job) -> Result:
        """Run a job; it sees the files that it names, and nothing else of the workspace.

        Raises:
            EngineUnavailable: the engine broke down, or was not to be trusted and has been ended.
        """
        if self._sandbox is None:
            raise EngineUnavailable("The engine has not been launched")
        files = files_of(job)
        peculiar = peculiar_files(files.folders)
        try:
            with stage("sandbox"):
                self._sandbox.grant(files.reads, files.folders)
        except SandboxError as error:
            return TransformResponseInternalError(f"The engine cannot be shown the files of the request: {error}")
        self._folders = (str(self._scratch), *files.folders)
        try:
            return self._answer(job, files, peculiar)
        except (OSError, MalformedData, EngineError) as error:
            self.kill()
            raise EngineUnavailable(str(error)) from error
        finally:
            self._folders = (str(self._scratch),)
            with stage("sandbox", again=True):
                self._sandbox.revoke()

    def _answer(self, job: Job, files: RequestFiles, peculiar: set[str]) -> Result:
        self._jobs.send(job)
        answer: Result | JobProfile | None = self._jobs.receive(Result | JobProfile)
        if isinstance(answer, JobProfile):
            answer.add_to_current()
            answer = self._jobs.receive(Result)
        if answer is None:
            raise EngineUnavailable(f"The engine crashed: {self._end()}")
        with stage("sandbox", again=True):
            check_answer(files, peculiar, answer)
        return answer

    def cancel(self) -> None:
        """Cancel the current work of Spark; called from another thread than the one that serves."""
        self._ask(HostQueryKind.CANCEL)

    def settles(self, seconds: float) -> bool:
        """Return whether all tasks end within some seconds; True if Spark has died."""
        reply = self._ask(HostQueryKind.SETTLES, seconds)
        return reply is None or reply.numbers != (0,)

    def tasks(self) -> tuple[int, int]:
        """Return how many tasks of Spark's current stages are done, and how many there are; from any thread."""
        match self._ask(HostQueryKind.TASKS):
            case HostReply((done, tasks)):
                return done, tasks
        return 0, 0

    def death(self, *, suspected: bool = False) -> str | None:
        """Return in words how it ended, or None while it lives; a suspected death is awaited."""
        if self._sandbox is None:
            return "it has not been launched"
        reply = self._ask(HostQueryKind.DEATH, _DEATH_SECONDS if suspected else 0)
        if reply is not None and reply.text is not None:
            return f"its Java process {reply.text}"
        code = self._sandbox.exit_code(_DEATH_SECONDS if suspected and reply is None else 0)
        if code is None:
            return None
        return self._excess or f"its process ended with code {code}"

    def _end(self) -> str:
        """Return in words how it ended. It has closed its connection, which is visible before the process ends."""
        return self.death(suspected=True) or "it has closed its connection"

    def _ask(self, what: HostQueryKind, seconds: float = 0) -> HostReply | None:
        with self._asking, suppress(OSError, MalformedData):
            channel = Channel(self._questions)
            channel.send(HostQuery(what, int(seconds * 1000)))
            reply = channel.receive(HostMessage)
            return reply if isinstance(reply, HostReply) else None
        self._questions.close()  # a late answer must not be taken for that of another question
        return None

    # --- Ending ---

    def end(self, wait_seconds: float = _END_SECONDS) -> None:
        """Stop Spark gracefully, or by force if that takes too long."""
        if self._sandbox is None:
            return
        with suppress(OSError):
            self._jobs.socket.shutdown(socket.SHUT_RDWR)
        self._sandbox.exit_code(wait_seconds)
        self._sandbox.kill()

    def kill(self) -> None:
        """Kill Spark at once, whatever it is doing."""
        if self._sandbox is not None:
            self._sandbox.kill()

    def _watch(self) -> None:
        """Kill the engine when it exceeds its limits."""
        while self._sandbox is not None and self._sandbox.exit_code() is None:
            _keep_short(_LOG)
            if self._settings.sandbox is not SandboxMode.OFF and (words := self._too_much()):
                self._excess = f"{words}, and was stopped"
                self._sandbox.kill()
                return
            time.sleep(_WATCH_SECONDS)

    def _too_much(self) -> str | None:
        if self._sandbox is None:
            return None
        return excess(self._sandbox.pid, self._folders, self._limits)


def _keep_short(log: int) -> None:
    """Truncate a log that has become long: a query that fails can write its values and its whole plan into it."""
    with suppress(OSError):
        if os.fstat(log).st_size > _MAX_LOG_LENGTH and fcntl(log, F_GETFL) & os.O_APPEND:
            os.ftruncate(log, 0)
            os.write(log, b"(The log had become too long, and begins anew.)\n")
