"""Runs as processes: start, monitor, terminate, and adopt those of an earlier scheduler.

.odf/automation/running/<id>/lock           held by the process while it is alive
.odf/automation/running/<id>/result.json    its result
.odf/automation/running/<id>/output         its output
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from odfpy.automation.child import peak_memory, result_in
from odfpy.automation.errors import RunDied, RunTimeout
from odfpy.automation.runs import Run, RunResult
from odfpy.automation.work import Work, failed
from odfpy.errors import OdfError
from odfpy.files import make_folder, try_lock
from odfpy.sandbox.python import python_command, python_environment

_PATIENCE: Final = 10.0
"""Seconds between the request to exit and killing a run."""

_LAST_WORDS: Final = 500


class Runner(Protocol):
    """The interface by which a scheduler executes runs; tests replace it."""

    def start(self, run: Run, work: Work, timeout: float | None) -> None:
        """Start a run.

        Args:
            run: the run.
            work: its work.
            timeout: time limit in seconds; None for no limit.

        Raises:
            OdfError: the run cannot be started.
        """

    def adopt(self, run: Run) -> None:
        """Adopt a run that another scheduler has started.

        Args:
            run: the run.
        """

    def ended(self) -> Iterator[tuple[Run, RunResult]]:
        """Yield the completed runs, each once, with their results."""

    def end_all(self) -> None:
        """Terminate all runs soon, in any state."""

    def forget(self, run: Run) -> None:
        """Remove the files of a run; its result must have been recorded.

        Args:
            run: the run.
        """


@dataclass
class _Child:
    """A run in progress."""

    run: Run
    folder: Path
    process: subprocess.Popen[bytes] | None
    deadline: float | None = None
    asked_to_end: float | None = None
    is_late: bool = False
    peak: int | None = None
    began: float = field(default_factory=time.monotonic)


class ProcessRunner:
    """Runs as child processes."""

    def __init__(self, root: Path, folder: Path) -> None:
        """
        Args:
            root: folder of the workspace.
            folder: folder of the runs in progress.
        """
        self._root = root
        self._folder = folder
        self._children: dict[str, _Child] = {}

    def start(self, run: Run, work: Work, timeout: float | None) -> None:
        """Start a run as a child process; see `Runner`."""
        folder = self._folder / run.id
        try:
            make_folder(folder)
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise OdfError(f"Cannot start a run in {folder}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            process = self._spawn(folder, lock)
        except OSError as error:
            raise OdfError(f"Cannot start a run: {error.strerror}") from error
        finally:
            os.close(lock)  # the child process has inherited it
        deadline = None if timeout is None else time.monotonic() + timeout
        self._children[run.id] = _Child(run, folder, process, deadline)
        request = {
            "root": str(self._root),
            "folder": str(folder),
            "lock": lock,
            "scheduler": os.getpid(),
            "job": work.job.value,
            "dataset_id": work.dataset_id,
            "integrity_only": work.integrity_only,
            "to": work.to,
        }
        with suppress(OSError), process.stdin as pipe:  # type: ignore[union-attr]  # `ended` reports it
            pipe.write(json.dumps(request).encode() + b"\n")

    def _spawn(self, folder: Path, lock: int) -> subprocess.Popen[bytes]:
        with (folder / "output").open("wb") as output:
            return subprocess.Popen(
                python_command("odfpy.automation.child"),
                env=python_environment(os.environ),
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=[lock],
                start_new_session=True,  # Ctrl-C must only reach the scheduler
            )

    def adopt(self, run: Run) -> None:
        """Take over a run of another scheduler; see `Runner`."""
        self._children[run.id] = _Child(run, self._folder / run.id, None)

    def ended(self) -> Iterator[tuple[Run, RunResult]]:
        """Yield the completed runs; see `Runner`."""
        for child in list(self._children.values()):
            result = self._look(child)
            if result is not None:
                del self._children[child.run.id]
                yield child.run, result

    def end_all(self) -> None:
        """Terminate all runs soon; see `Runner`."""
        for child in self._children.values():
            _ask_to_end(child)

    def forget(self, run: Run) -> None:
        """Remove the files of a run; see `Runner`."""
        shutil.rmtree(self._folder / run.id, ignore_errors=True)

    # --- Helpers ---

    def _look(self, child: _Child) -> RunResult | None:
        """Return the result of a child process, None while it is running."""
        now = time.monotonic()
        if child.process is None:
            if _is_locked(child.folder / "lock"):
                return None
            return result_in(child.folder) or RunResult.interrupted("its scheduler was stopped, and the run with it")
        code = child.process.poll()
        if code is None:
            child.peak = peak_memory(child.process.pid) or child.peak
            if child.deadline is not None and now >= child.deadline:
                child.is_late = True
                _ask_to_end(child)
            if child.asked_to_end is not None and now - child.asked_to_end >= _PATIENCE:
                child.process.kill()
            return None
        return self._result(child, code)

    def _result(self, child: _Child, code: int) -> RunResult:
        seconds = round(time.monotonic() - child.began, 3)
        found = result_in(child.folder)
        if child.is_late and (found is None or found.outcome == "interrupted"):
            error = RunTimeout(f"It was stopped after {seconds:.0f} seconds", hint="Set a longer `timeout`.")
            return _with(failed(error), seconds, child.peak)
        if found is not None:
            return found
        if child.asked_to_end is not None:
            return _with(RunResult.interrupted("the scheduler has stopped it"), seconds, child.peak)
        return _with(failed(RunDied(f"Its process {_how(code)}{_last_words(child.folder)}")), seconds, child.peak)


def _with(result: RunResult, seconds: float, peak: int | None) -> RunResult:
    from dataclasses import replace

    return replace(result, seconds=seconds, peak_memory=peak)


def _ask_to_end(child: _Child) -> None:
    if child.asked_to_end is None and child.process is not None:
        child.asked_to_end = time.monotonic()
        child.process.terminate()


def _is_locked(lock: Path) -> bool:
    """Return whether the process of a run is alive."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not try_lock(descriptor, shared=True)
    finally:
        os.close(descriptor)


def _how(code: int) -> str:
    if code == -signal.SIGKILL:
        return "was killed (signal 9), possibly because memory ran out"
    return f"was terminated by signal {-code}" if code < 0 else f"exited with code {code} and without a result"


def _last_words(folder: Path) -> str:
    try:
        with (folder / "output").open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _LAST_WORDS))
            text = file.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""
    return f": {text}" if text else ""
