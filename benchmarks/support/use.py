"""What pulls in this process use of it and of the warm engine: processor time, files opened, bytes given, memory."""

from __future__ import annotations

import os
import re
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from odfpy.engine.contract import TransformRequest, TransformResponse
from odfpy.engine.worker.client import SparkEngine

_TICK = os.sysconf("SC_CLK_TCK")


class Use(NamedTuple):
    """What has been used.

    Attributes:
        coordinator: seconds of processor time of this process.
        worker: seconds of processor time of the engine's Python.
        java: seconds of processor time of the engine's Java.
        files: files that this process has opened.
        given: bytes of the files that the engine was given: slices and the checkpoint.
    """

    coordinator: float
    worker: float
    java: float
    files: int
    given: int


class Meter:
    """Tells what pulls use. There is one in a process, since what it listens to is never let go."""

    def __init__(self, pid: int, java_pid: int) -> None:
        """Listen.

        Args:
            pid: the engine's Python.
            java_pid: the engine's Java.
        """
        self._processes = (os.getpid(), pid, java_pid)
        self._files = self._given = 0
        sys.addaudithook(self._heard)
        transform = SparkEngine.transform

        def measured(engine: SparkEngine, request: TransformRequest) -> TransformResponse:
            self._given += sum(Path(path).stat().st_size for path in _paths(request))
            return transform(engine, request)

        SparkEngine.transform = measured

    def so_far(self) -> Use:
        """What has been used."""
        return Use(*map(_processor, self._processes), self._files, self._given)

    def since(self, before: Use) -> Use:
        """What has been used since then."""
        return Use(*(now - then for now, then in zip(self.so_far(), before, strict=True)))

    def memory(self) -> str:
        """What the processes hold in memory, in words."""
        sizes = [_megabytes(pid) for pid in self._processes]
        return "memory: coordinator {:.0f} MB, engine {:.0f} + {:.0f} MB".format(*sizes)

    def _heard(self, event: str, _: object) -> None:
        self._files += event == "open"


def show_use(label: str, uses: Sequence[Use]) -> None:
    """A line with the medians of what several pulls have used."""
    middle = Use(*(statistics.median(values) for values in zip(*uses, strict=True)))
    seconds = f"coordinator {middle.coordinator:.3f} s, engine {middle.worker:.3f} + {middle.java:.3f} s"
    files = f"coordinator opens {middle.files:.0f} files; engine is given {middle.given:,.0f} bytes"
    print(f"{label:48} processor: {seconds}; {files}", flush=True)


def _paths(request: TransformRequest) -> list[str]:
    found = [path for source in request.query_inputs for path in (*source.data_paths, *(source.history_paths or ()))]
    return found if request.prev_checkpoint_path is None else [*found, request.prev_checkpoint_path]


def _processor(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _megabytes(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0
