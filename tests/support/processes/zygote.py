"""Pulls in children that can be killed, by the clock or before any change of files."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from support.processes.forking import ForkingProcess

_PROGRAM = """
import odfpy.coordinator.pull, odfpy.coordinator.transfer.transfers, odfpy.ingest.pipeline, odfpy.ingest.fetch, odfpy.ingest.read
import odfpy.coordinator.transform.engines, odfpy.coordinator.storage.signing, odfpy.data.schemas.ddl, odfpy.ingest.prepare.pipe
import odfpy.engine.datafusion.engine, odfpy.ingest.preprocess, odfpy.state.indexed, odfpy.state.run_file
from odfpy.coordinator.workspace import Workspace

def run(line):
    root, step = line.rsplit(" ", 1)
    steps = die_at(int(step), ["socket.connect"]) if step else []
    failed = [r.error for r in Workspace.open(root).pull(all=True) if r.error]
    for error in failed:
        print(error, file=sys.stderr, flush=True)
    return steps, bool(failed)
"""


class Zygote(ForkingProcess):
    """Runs `pull --all` in children that can be killed.

    Attributes:
        child: the process of the last pull.
        steps: number of file changes of the last pull that was to die at one and completed.
    """

    def __init__(self) -> None:
        self.child = self.steps = 0
        super().__init__(_PROGRAM)

    def pull(self, workspace: Path, kill_after: float | None = None, kill_at: int | None = None) -> tuple[int, float]:
        """Pull everything; return status and duration.

        Args:
            workspace: folder of the workspace.
            kill_after: seconds after which the child gets SIGKILL.
            kill_at: before which change of files it gets it, from 1 on; a connection to the engine counts as one.
        """
        self.child = self._start(f"{workspace} {kill_at or ''}")
        started = time.monotonic()
        if kill_after is not None:
            time.sleep(kill_after)
            with suppress(ProcessLookupError):
                os.kill(self.child, signal.SIGKILL)
        status, self.steps = self._outcome()
        return status, time.monotonic() - started
