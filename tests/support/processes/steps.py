"""Commands in children that die before any change of files.

As `Zygote`, for commands that are not pulls: a command is an expression over `workspace`.
"""

from __future__ import annotations

import json
from pathlib import Path

from support.processes.forking import ForkingProcess

_PROGRAM = """
import json
import odfpy.coordinator.maintenance.gc, odfpy.coordinator.maintenance.compact, odfpy.coordinator.maintenance.reset, odfpy.coordinator.maintenance.repair
import odfpy.coordinator.transform.rebuild, odfpy.coordinator.pull, odfpy.coordinator.maintenance.verify, odfpy.coordinator.maintenance.fsck
import odfpy.data.slices.slice, odfpy.data.slices.writer, odfpy.engine.datafusion.engine, odfpy.coordinator.storage.signing
from odfpy.coordinator.workspace import Workspace

def run(line):
    root, command, last = json.loads(line)
    steps = die_at(last, ["shutil.rmtree"])
    eval(command, {"workspace": Workspace.open(root)})
    return steps, 0
"""

NEVER = 1_000_000


class Steps(ForkingProcess):
    """Runs commands in children that are killed at a change of files."""

    def __init__(self) -> None:
        super().__init__(_PROGRAM)

    def count(self, workspace: Path, command: str) -> int:
        """Run a command to its end; return the number of its changes."""
        status, steps = self._run(workspace, command, NEVER)
        assert status == 0
        return steps

    def kill(self, workspace: Path, command: str, at: int) -> None:
        """Run a command that gets SIGKILL before one of its changes, the first being 1."""
        assert self.strike(workspace, command, at), "it was killed"

    def strike(self, workspace: Path, command: str, at: int) -> bool:
        """Like `kill`, for a command with threads, which may make fewer changes this time; return whether it hit."""
        status, _ = self._run(workspace, command, at)
        assert status in (0, 9)
        return status == 9

    def _run(self, workspace: Path, command: str, at: int) -> tuple[int, int]:
        self._start(json.dumps([str(workspace), command, at]))
        return self._outcome()
