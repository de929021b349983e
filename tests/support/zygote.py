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
import os, sys, traceback
import duckdb, pyarrow, pyarrow.compute, pyarrow.parquet, datafusion
import odfpy.coordinator.pull, odfpy.coordinator.remotes, odfpy.ingest.pipeline, odfpy.ingest.fetch, odfpy.ingest.read
import odfpy.engine.datafusion.engine
from odfpy.coordinator.workspace import Workspace
print("ready", flush=True)
for line in sys.stdin:
    child = os.fork()
    if child:
        print(child, flush=True)
        status = os.waitpid(child, 0)[1]
        print(status, flush=True)
        continue
    try:
        failed = [r.error for r in Workspace.open(line.strip()).pull(all=True) if r.error]
        for error in failed:
            print(error, file=sys.stderr, flush=True)
        os._exit(1 if failed else 0)
    except BaseException:
        traceback.print_exc()
        os._exit(2)
"""


class Zygote:
    """Runs `pull --all` in children that can be killed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._read() == "ready"

    def pull(self, workspace: Path, kill_after: float | None = None) -> tuple[int, float]:
        """Pull everything; with `kill_after` seconds the child gets SIGKILL then. Gives back status and duration."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{workspace}\n")
        self._process.stdin.flush()
        child = int(self._read())
        started = time.monotonic()
        if kill_after is not None:
            time.sleep(kill_after)
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        return int(self._read()), time.monotonic() - started

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
