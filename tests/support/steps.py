"""A process that has everything imported and forks a child for each command, which dies before any change of files.

As `Zygote`, for commands that are no pulls: a command is an expression over `workspace`.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PROGRAM = """
import json, os, signal, sys, traceback
import duckdb, pyarrow, pyarrow.compute, pyarrow.parquet, datafusion
import odfpy.coordinator.gc, odfpy.coordinator.compact, odfpy.coordinator.reset, odfpy.coordinator.repair
import odfpy.coordinator.anew, odfpy.coordinator.pull, odfpy.coordinator.verify, odfpy.coordinator.fsck
import odfpy.data.slice, odfpy.data.slice_writer, odfpy.engine.datafusion.engine, odfpy.coordinator.signing
from odfpy.coordinator.workspace import Workspace

CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree")

def die_at(last):
    def count(event, arguments):
        if event == "open":
            changes = isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        else:
            changes = event in CHANGES
        if changes:
            steps.append(event)
            if len(steps) == last:
                os.kill(os.getpid(), signal.SIGKILL)
    steps = []
    sys.addaudithook(count)
    return steps

print("ready", flush=True)
for line in sys.stdin:
    root, command, last = json.loads(line)
    told, telling = os.pipe()
    child = os.fork()
    if child:
        os.close(telling)
        status = os.waitpid(child, 0)[1]
        print(status, os.read(told, 100).decode() or 0, flush=True)
        os.close(told)
        continue
    try:
        steps = die_at(last)
        eval(command, {"workspace": Workspace.open(root)})
        os.write(telling, str(len(steps)).encode())
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(2)
"""

NEVER = 1_000_000


class Steps:
    """Runs commands in children that are killed at a change of files."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._read() == "ready"

    def count(self, workspace: Path, command: str) -> int:
        """Run a command to its end; gives the number of its changes."""
        status, steps = self._run(workspace, command, NEVER)
        assert status == 0
        return steps

    def kill(self, workspace: Path, command: str, at: int) -> None:
        """Run a command that gets SIGKILL before one of its changes, the first being 1."""
        status, _ = self._run(workspace, command, at)
        assert status == 9, "it was killed"

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _run(self, workspace: Path, command: str, at: int) -> tuple[int, int]:
        import json

        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([str(workspace), command, at]) + "\n")
        self._process.stdin.flush()
        status, steps = self._read().split()
        return int(status), int(steps)

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()
