"""A stateful derivative whose pulls can be killed, repeated and compared.

The workspace stays in place, and so does its engine; the datasets are restored to their state before a pull.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from support.engine.session import MEMORY
from support.processes.tally import tally
from support.processes.zygote import Zygote

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.events import ExecuteTransform
from odfpy.coordinator.workspace import Workspace
from odfpy.data.slices.slice import read_slice
from odfpy.engine.worker.admin import engine_status, stop_engine

PATIENCE = 300.0
NEVER = 1_000_000
ROOTS = ("orders", "shipments")
IN_6_HOURS = "b.event_time >= a.event_time AND b.event_time < a.event_time + INTERVAL 6 HOURS"
NAME = "best"
WINDOWS = {"": "SELECT window.end AS event_time, k, sum(v) AS s FROM orders GROUP BY window(event_time, '6 hours'), k"}
STEPS = {
    "joined": "SELECT a.event_time, a.k, a.v, b.v AS w FROM orders AS a"
    f" LEFT JOIN shipments AS b ON a.k = b.k AND {IN_6_HOURS}",
    "daily": "SELECT window.end AS event_time, k, sum(w) AS s FROM joined GROUP BY window(event_time, '6 hours'), k",
    "": "SELECT event_time, k, place, s FROM"
    " (SELECT *, row_number() OVER (PARTITION BY k ORDER BY s DESC, event_time) AS place FROM daily) WHERE place <= 2",
}
START = datetime(2024, 1, 1, tzinfo=timezone.utc)


def manifests(queries: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the manifests of two roots and their derivatives."""
    fields = [
        {"name": "event_time", "type": "Timestamp"},
        {"name": "k", "type": "String"},
        {"name": "v", "type": "Int64"},
    ]
    for name in ROOTS:
        source = {
            "kind": "AddPushSource", "sourceName": "default", "merge": {"kind": "Append"},
            "read": {"kind": "NdJson", "schema": {"fields": fields}},
        }  # fmt: skip
        yield {"name": name, "kind": "Root", "metadata": [source]}
    steps = [{"alias": alias, "query": text} if alias else {"query": text} for alias, text in queries.items()]
    transform = {
        "kind": "SetTransform", "inputs": [{"datasetRef": one, "alias": one} for one in ROOTS],
        "transform": {"kind": "Sql", "engine": "spark", "queries": steps},
    }  # fmt: skip
    yield {"name": NAME, "kind": "Derivative", "metadata": [transform]}


def rows(pull: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield the input rows of a pull; the third one has late rows."""
    for number in range(20):
        is_late = pull == 2 and number % 5 == 0
        hour = number if is_late else pull * 12 + (number * 7 + seed) % 12
        at = START + timedelta(hours=hour, minutes=number)
        yield {"event_time": at.isoformat(), "k": "xyz"[(number * 5 + seed) % 3], "v": (number * 11 + pull) % 17}


class Story:
    """Pulls one after the other, each undisturbed once, then again and again with something that happens.

    Attributes:
        root: the workspace's folder.
        seconds: duration of each undisturbed pull.
        steps: how many changes of files it made.
        wanted: the expected state after each pull.
    """

    def __init__(self, folder: Path, pulls: int, queries: dict[str, str]) -> None:
        self.root = folder / "workspace"
        self._kept = folder / "kept"
        self.zygote = Zygote()
        self.seconds: list[float] = []
        self.steps: list[int] = []
        self.wanted: list[list[Any]] = []
        workspace = Workspace.init(self.root)
        for name, value in {"engine.memory": MEMORY, "engine.master": "local[2]"}.items():
            workspace.config.set(name, value)
        text = "\n---\n".join(
            json.dumps({"kind": "DatasetSnapshot", "version": 1, "content": one}) for one in manifests(queries)
        )
        workspace.add(load_snapshots(text, "manifests.yaml"))
        for pull in range(pulls):
            for seed, name in enumerate(ROOTS):
                file = folder / "new.ndjson"
                file.write_text("".join(json.dumps(row) + "\n" for row in rows(pull, seed)))
                list(Workspace.open(self.root).ingest(name, [file]))
            self._save(pull)
            status, seconds = self.zygote.pull(self.root, kill_at=NEVER)
            assert status == 0
            self.seconds.append(seconds)
            self.steps.append(self.zygote.steps)
            self.wanted.append(self.contents())

    def pull(self, kill_after: float | None = None, kill_at: int | None = None) -> int:
        """Pull everything, optionally in a process that is killed; return its exit status."""
        status = self.zygote.pull(self.root, kill_after, kill_at)[0]
        if status == signal.SIGKILL:
            tally("query")
        return status

    def close(self) -> None:
        """Stop the processes; the engine's last ones are gone then."""
        self.zygote.close()
        family = self.family()
        stop_engine(self.root / ".odf" / "run", force=True)
        eventually(lambda: not any(map(is_alive, family)))

    def go_back(self, pull: int) -> None:
        """Restore the state before a pull; folders to which an engine may have access stay the same."""
        for part in ("datasets", "cache"):
            folder = self.root / ".odf" / part
            for child in folder.iterdir():
                shutil.rmtree(child)
            shutil.copytree(self._kept / str(pull) / part, folder, dirs_exist_ok=True)

    def _save(self, pull: int) -> None:
        for part in ("datasets", "cache"):
            shutil.copytree(self.root / ".odf" / part, self._kept / str(pull) / part)

    # --- What there is ---

    def contents(self) -> list[Any]:
        """Intervals, rows and watermarks of the derivative: all but the times of commits, and hashes with them in."""
        dataset = Workspace.open(self.root).storage.get(NAME)
        found: list[Any] = []
        for hashed in reversed(list(dataset.chain.iter_blocks())):
            event = hashed.block.event
            found.append(type(event).__name__)
            if isinstance(event, ExecuteTransform):
                found.append([(str(one.dataset_id), one.prev_offset, one.new_offset) for one in event.query_inputs])
                found.append((str(event.new_watermark), event.new_checkpoint is not None))
            if isinstance(event, ExecuteTransform) and event.new_data is not None:
                path = dataset.layout.data.local_path(event.new_data.physical_hash)
                assert path is not None
                found.append(event.new_data.offset_interval)
                found += read_slice(path).drop_columns(["system_time"]).to_pylist()
        return found

    def findings(self, *, integrity_only: bool) -> list[Any]:
        """Return the findings of a verification."""
        reports = Workspace.open(self.root).verify(all=True, integrity_only=integrity_only)
        return [(str(report.handle), finding) for report in reports for finding in report.findings]

    def leftovers(self) -> list[str]:
        """Return unneeded files: incomplete ones, scratch files, sockets of dead processes."""
        odf = self.root / ".odf"
        holder = (engine := engine_status(odf / "run")) and engine.pid
        found = [path for path in odf.rglob("*") if path.name.startswith(".tmp-")]
        for folder in (odf / "run" / "scratch", odf / "run" / "clients"):
            found += folder.iterdir() if folder.is_dir() else ()
        if holder:  # an idle engine that was killed leaves its folder to the next one
            found += (path for path in (odf / "run").glob("engine-worker-*") if path.name != f"engine-worker-{holder}")
        return [str(path.relative_to(odf)) for path in found]

    def family(self) -> dict[str, int]:
        """Return the engine's processes by kind; empty if none is running."""
        status = engine_status(self.root / ".odf" / "run")
        if status is None:
            return {}
        found = {f"descendant {number}": pid for number, pid in enumerate(descendants(status.pid))}
        found |= {"worker": status.pid, "supervisor": found["descendant 0"]}
        if status.java_pid:
            found |= {"java": status.java_pid, "host": parent_of(status.java_pid)}
        return found


def descendants(pid: int) -> list[int]:
    """Return all processes that a process has started, and those that they have."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, IndexError):
                parents.setdefault(parent_of(int(entry.name)), []).append(int(entry.name))
    found, open_ = [], [pid]
    while open_:
        children = parents.get(open_.pop(), [])
        found += children
        open_ += children
    return found


def parent_of(pid: int) -> int:
    """Return the parent of a process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


def is_alive(pid: int) -> bool:
    """Return whether a process runs; zombies do not count."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def kill(pid: int, what: str) -> None:
    """SIGKILL, if it is still there."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
        if what != "coordinator":  # counted when its exit is noticed
            tally(f"engine: {what}")


def eventually(holds: Callable[[], object]) -> None:
    """Wait for an event in another process."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)
