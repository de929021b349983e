"""A process that has everything imported and forks a child for each pull: real processes, without the start-up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

_PROGRAM = """
import os, signal, sys, traceback
import duckdb, pyarrow, pyarrow.compute, pyarrow.parquet, datafusion
import odfpy.coordinator.pull, odfpy.coordinator.remotes, odfpy.ingest.pipeline, odfpy.ingest.fetch, odfpy.ingest.read
import odfpy.engine.datafusion.engine
from odfpy.coordinator.workspace import Workspace

def die_at(last):
    def count(event, arguments):
        if event == "open":
            changes = isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        else:
            changes = event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "socket.connect")
        if changes:
            steps.append(event)
            if len(steps) == last:
                os.kill(os.getpid(), signal.SIGKILL)
    steps = []
    sys.addaudithook(count)
    return steps

print("ready", flush=True)
for line in sys.stdin:
    root, step = line[:-1].rsplit(" ", 1)
    told, telling = os.pipe()
    child = os.fork()
    if child:
        os.close(telling)
        print(child, flush=True)
        status = os.waitpid(child, 0)[1]
        print(status, os.read(told, 100).decode() or 0, flush=True)
        os.close(told)
        continue
    try:
        steps = die_at(int(step)) if step else []
        failed = [r.error for r in Workspace.open(root).pull(all=True) if r.error]
        for error in failed:
            print(error, file=sys.stderr, flush=True)
        os.write(telling, str(len(steps)).encode())
        os._exit(1 if failed else 0)
    except BaseException:
        traceback.print_exc()
        os._exit(2)
"""


class Zygote:
    """Runs `pull --all` in children that can be killed.

    Attributes:
        child: the process of the last pull.
        steps: how many changes of files the last pull made that was asked to die at one and came to its end.
    """

    def __init__(self) -> None:
        self.child = self.steps = 0
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._read() == "ready"

    def pull(self, workspace: Path, kill_after: float | None = None, kill_at: int | None = None) -> tuple[int, float]:
        """Pull everything; gives back status and duration.

        Args:
            workspace: its folder.
            kill_after: seconds after which the child gets SIGKILL.
            kill_at: before which change of files it gets it, from 1 on; a connection to the engine counts as one.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(f"{workspace} {kill_at or ''}\n")
        self._process.stdin.flush()
        self.child = int(self._read())
        started = time.monotonic()
        if kill_after is not None:
            time.sleep(kill_after)
            with suppress(ProcessLookupError):
                os.kill(self.child, signal.SIGKILL)
        status, self.steps = map(int, self._read().split())
        return status, time.monotonic() - started

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()
