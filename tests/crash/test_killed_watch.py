"""A watch that is killed at any moment forgets no file, and takes none in twice."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from support.chains.workspaces import root, workspace_with

from odfpy.coordinator.workspace import Workspace

KILLS, FILES = 12, 3

# Everything is imported once. Each child is killed by its own timer, unless it has taken in everything before.
PROGRAM = """
import os, signal, sys
import duckdb, pyarrow, pyarrow.compute, pyarrow.parquet
import odfpy.coordinator.ingest.watch, odfpy.ingest.pipeline, odfpy.ingest.read, odfpy.ingest.preprocess
from odfpy.coordinator.workspace import Workspace

def take_in(root, seconds):
    def pause():
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt
    left = [3]
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    list(Workspace.open(root).watch("append", f"{root}/inbox", settle=0, pause=pause))

for line in sys.stdin:
    root, seconds = line.rsplit(" ", 1)
    child = os.fork()
    if not child:
        take_in(root, float(seconds))
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""


def test_every_file_is_taken_in_exactly_once(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path / "workspace", root("append", "{kind: Append}"))
    inbox = workspace.root / "inbox"
    inbox.mkdir()
    moments = random.Random(7)
    statuses, keys = [], 0
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def watched(seconds: float) -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{workspace.root} {seconds}\n")
            process.stdin.flush()
            statuses.append(int(process.stdout.readline()))

        for _ in range(KILLS):
            for _ in range(FILES):
                keys += 1
                (inbox / f"{keys:03}.ndjson").write_text(
                    f'{{"event_time":"2024-01-01T00:00:00Z","id":{keys},"name":"x"}}\n'
                )
            watched(moments.uniform(0.01, 0.3))
        watched(300)
    assert statuses[-1] == 0
    assert any(statuses), "some were killed"
    found = Workspace.open(workspace.root)
    assert found.tail("append", 1000).column("id").to_pylist() == list(range(1, keys + 1))
    assert all(report.ok for report in found.verify(all=True))
