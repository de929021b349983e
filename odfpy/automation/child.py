"""The process of a run: reads a request as JSON from standard input, and writes the result as JSON to the run's folder.

It ends with the scheduler that started it. While it runs, it holds a lock, by which later schedulers detect it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odfpy.automation.job_planner import Outcome
from odfpy.automation.runs import RunResult
from odfpy.automation.work import Work, do, failed
from odfpy.coordinator.schedules.schedule import Job
from odfpy.errors import InternalError, OdfError
from odfpy.files import replace_file
from odfpy.sandbox.syscalls import die_with_parent

if TYPE_CHECKING:
    from types import FrameType

    from odfpy.coordinator.workspace import Workspace
    from odfpy.engine.worker.messages import Status

RESULT: Final = "result.json"
"""File with the result in the folder of a completed run."""


def main() -> None:
    """Execute the request on standard input."""
    request = json.loads(sys.stdin.buffer.readline())
    os.set_inheritable(request["lock"], False)  # otherwise an engine started here would hold the lock
    with suppress(OSError):
        die_with_parent(signal.SIGKILL)
    if os.getppid() != request["scheduler"]:  # the scheduler has already exited
        return
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C must only reach the scheduler
    result = run(request)
    replace_file(Path(request["folder"]) / RESULT, json.dumps(result.bounded()).encode())


def run(request: dict[str, Any]) -> RunResult:
    """Run a job, and return its result with duration and memory.

    Args:
        request: `root`, the folder of the workspace, and the fields of `Work`.
    """
    from odfpy.coordinator.workspace import Workspace

    began = time.monotonic()
    work = Work(Job(request["job"]), request["dataset_id"], request["integrity_only"], request["to"])
    engine = None
    try:
        os.chdir(request["root"])
        workspace = Workspace.open(request["root"])
        before = _engine(workspace)
        result = do(workspace, work)
        after = _engine(workspace)
        if after is not None and after.jobs_done > (before.jobs_done if before and before.pid == after.pid else 0):
            engine = after.memory_bytes
    except KeyboardInterrupt:
        result = RunResult.interrupted("the scheduler has stopped it")
    except (OdfError, OSError, MemoryError) as error:
        result = failed(error if isinstance(error, OdfError) else OdfError(str(error) or type(error).__name__))
    except Exception as error:  # noqa: BLE001  bugs are also recorded in the log of runs
        result = failed(InternalError(f"internal error: {type(error).__name__}: {error}"))
    seconds = round(time.monotonic() - began, 3)
    return replace(result, seconds=seconds, peak_memory=peak_memory("self"), engine_memory=engine)


def peak_memory(process: int | str) -> int | None:
    """Return the peak memory of a process in bytes, None if unknown.

    Args:
        process: process id, or `self`.
    """
    # Not `getrusage`, which includes the memory of the scheduler that forked this process.
    try:
        for line in Path(f"/proc/{process}/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


def _engine(workspace: Workspace) -> Status | None:
    try:
        return workspace.engines.status()
    except OdfError:
        return None


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def result_in(folder: Path) -> RunResult | None:
    """Return the result in the folder of a run, None if there is none.

    Args:
        folder: folder of the run.
    """
    try:
        found = RunResult.of(json.loads((folder / RESULT).read_bytes()))
    except (OSError, ValueError):
        return None
    return found if found is not None and found.outcome in {one.value for one in Outcome} else None


if __name__ == "__main__":
    main()
