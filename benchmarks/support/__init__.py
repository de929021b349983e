"""What benchmarks share: manifests of root datasets, commands and what they cost, lines of results.

Importing it makes the odfpy of this repository the one that is imported.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))
# Commands find their modules compiled, as those of users do; to compile them takes a third of a short command.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Settings, keys and revocations of whoever measures would be read by each command.
_CONFIGURATION = tempfile.TemporaryDirectory()
os.environ["XDG_CONFIG_HOME"] = _CONFIGURATION.name

ODF = (sys.executable, "-m", "odfpy")
PUSH = "AddPushSource\n      sourceName: default"
NARROW = {"event_time": "Timestamp", "id": "Int64"}

_ROOT = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: {source}
      read: {{kind: {read}, schema: {{fields: [{fields}]}}}}
      merge: {{kind: {merge}{key}}}
"""


def root(name: str, merge: str, fields: Mapping[str, str], *, read: str = "NdJson", source: str = PUSH) -> str:
    """A manifest of a root dataset.

    Args:
        name: of the dataset.
        merge: name of the strategy; the primary key, where there is one, is `id`.
        fields: names and types of the columns.
        read: name of the reader, with its options.
        source: kind of the source, with what it needs.
    """
    columns = ", ".join(f"{{name: {column}, type: {type_}}}" for column, type_ in fields.items())
    key = "" if merge == "Append" else ", primaryKey: [id]"
    return _ROOT.format(name=name, source=source, read=read, fields=columns, merge=merge, key=key)


def ten_rows(first: int, **more: int) -> bytes:
    """Ten rows of NDJSON, with ids from a number on, and the same values of more columns."""
    values = "".join(f',"{name}":{value}' for name, value in more.items())
    lines = (f'{{"event_time":"2024-01-01T00:00:00Z","id":{first + number}{values}}}\n' for number in range(10))
    return "".join(lines).encode()


class Run(NamedTuple):
    """Wall and processor seconds."""

    seconds: float
    processor: float


def timed(folder: Path, command: Sequence[str], stdin: bytes = b"") -> Run:
    """Run a command in a folder, from the start of the process to its end."""
    return finished(folder, command, stdin)[0]


def finished(folder: Path, command: Sequence[str], stdin: bytes = b"") -> tuple[Run, bytes]:
    """Run a command as `timed` does; also what it has printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    done = subprocess.run(command, cwd=folder, input=stdin, capture_output=True, check=False)
    wall = time.perf_counter() - started
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr.decode()}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Run(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime), done.stdout


def odf(folder: Path, *arguments: str, stdin: bytes = b"") -> Run:
    """Run an `odf` command in a folder."""
    return timed(folder, [*ODF, *arguments], stdin)


def engine_status(folder: Path) -> dict[str, Any]:
    """What the engine of the workspace in a folder says of itself."""
    command = [*ODF, "engine", "status", "-o", "json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return json.loads(done.stdout)


def show(label: str, goal: float | None, runs: Sequence[Run], remark: str = "") -> None:
    """A line of results; the goal is in seconds."""
    walls = [run.seconds for run in runs]
    wanted = f"(to reach {goal:.2f})" if goal else ""
    print(
        f"{label:62} median {statistics.median(walls):6.3f} s   least {min(walls):6.3f}   most {max(walls):6.3f}   "
        f"processor {statistics.median(run.processor for run in runs):6.3f}   {wanted} {remark}".rstrip(),
        flush=True,
    )


def print_machine(*packages: str) -> None:
    """What it was measured on: the machine, and versions of Python and of packages."""
    kind = f"{platform.machine()}, {platform.system()} {platform.release()}"
    print(f"{kind}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(", ".join((f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in packages))))


def processor_of(pid: int) -> float:
    """Processor seconds of a process and of all that it has started, which other load on the machine changes little."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            fields = stat.read_text().rsplit(")", 1)[1].split()
            parents[int(stat.parent.name)] = int(fields[1])
            ticks[int(stat.parent.name)] = sum(map(int, fields[11:15]))
    family = [pid]
    for one in family:
        family += [child for child, parent in parents.items() if parent == one]
    return sum(ticks.get(one, 0) for one in family) / os.sysconf("SC_CLK_TCK")
