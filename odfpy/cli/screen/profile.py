"""The profile of a command: the durations of its stages since the start of its process, as tables or trees."""

from __future__ import annotations

import builtins
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from odfpy.cli.screen.terminal import paint, put
from odfpy.escaping import escape_controls
from odfpy.stages import StageTime, profiling, stage

_IMPORTS: Final = "imports"
_MIN_SECONDS: Final = 0.0005
"""Minimum seconds for a line of its own; shorter stages are counted as other."""

_MAX_START: Final = 600.0
"""Maximum plausible seconds for the start of a process; a larger value means an unreliable clock."""


class CommandProfile:
    """The profile of a running command.

    Attributes:
        whole: the root stage.
    """

    def __init__(self, whole: StageTime, began: float | None) -> None:
        """Begin with the time before the command was known.

        Args:
            whole: the current stage.
            began: `time.perf_counter` at the program's first line; None if it has no process of its own.
        """
        now = time.perf_counter()
        self.whole = whole
        self._zero = now
        if began is not None:
            self._zero = began
            if (start := seconds_to_start(now - began)) is not None:
                self._zero -= start
                whole.part("process start").add(start)
            whole.part(_IMPORTS).add(now - began)

    def stop(self) -> None:
        """Set the total to the time elapsed so far."""
        self.whole.seconds, self.whole.times = time.perf_counter() - self._zero, 1

    def print_times(self) -> None:
        """Print the times for people: a single dataset as part of its command, several datasets as separate tables."""
        self.stop()
        subjects = [part for part in self.whole.parts.values() if part.is_subject]
        if len(subjects) > 1:
            for subject in subjects:
                _print(subject, deeper=True)
        _print(self.whole, deeper=len(subjects) <= 1)

    def record(self) -> dict[str, Any]:
        """Return the profile for programs, including the profiles of all datasets."""
        self.stop()
        return {"command": self.whole.name, "profile": tree_of(self.whole)}


def measure(context: Any, began: float | None) -> CommandProfile:
    """Start the profile of a command. It ends with the command's context.

    Args:
        context: the context of the command.
        began: `time.perf_counter` at the start of the process; None if unknown.
    """
    profile = CommandProfile(context.with_resource(profiling(context.command_path)), began)
    context.with_resource(_timed_imports())
    return profile


def seconds_to_start(since: float) -> float | None:
    """Return the seconds from the start of this process to its first line; None if the system does not report them.

    Args:
        since: seconds since the program's first line.
    """
    try:
        fields = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(") ")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - started - since
    except (OSError, ValueError, IndexError, AttributeError):
        return None
    return max(0.0, seconds) if seconds < _MAX_START else None


@contextmanager
def _timed_imports() -> Iterator[None]:
    """Measure imports as parts of the stages that make them: most imports of odfpy happen on first use."""
    original = builtins.__import__
    depth = 0

    def timed(name: str, *given: Any, **named: Any) -> Any:
        nonlocal depth
        fromlist = (given[2] if len(given) > 2 else named.get("fromlist")) or ()
        level = given[3] if len(given) > 3 else named.get("level", 0)
        module = sys.modules.get(name) if level == 0 else None
        if depth or (module is not None and all(hasattr(module, part) for part in fromlist)):
            return original(name, *given, **named)
        depth += 1
        try:
            with stage(_IMPORTS), stage(name):
                return original(name, *given, **named)
        finally:
            depth -= 1

    builtins.__import__ = timed
    try:
        yield
    finally:
        builtins.__import__ = original


# --- For programs ----------------------------------------------------------------------------------------------------


def tree_of(whole: StageTime) -> dict[str, Any]:
    """Return a stage and its parts as a tree."""
    return {
        "stage": whole.name,
        "times": whole.times,
        "seconds": round(whole.seconds, 6),
        "other": round(whole.other, 6) if whole.parts else None,
        "javaCalls": whole.all_calls,
        "sparkJobs": whole.all_jobs,
        "stages": [tree_of(part) for part in whole.parts.values()],
    }


# --- For people ------------------------------------------------------------------------------------------------------


def _print(whole: StageTime, *, deeper: bool) -> None:
    from odfpy.data.rows.text_table import lines_of

    columns, rows = table_of(whole, deeper=deeper)
    put(sys.stderr, f"\nProfile of {escape_controls(whole.name)}\n")
    for line in lines_of(
        columns, rows, right=range(1, len(columns)), heading=lambda text: paint(text, "bold", sys.stderr)
    ):
        put(sys.stderr, f"{line}\n")


def table_of(whole: StageTime, *, deeper: bool = True) -> tuple[list[str], list[list[str]]]:
    """Return the columns and rows of a table: stages, nested ones indented, and the total at the end.

    Args:
        whole: the stage to show.
        deeper: whether to show the stages of work on datasets.
    """
    columns = ["stage", "times", "seconds", "share"]
    with_java = whole.all_calls > 0
    if with_java:
        columns += ["calls to Java", "Spark jobs"]

    def row(name: str, times: int | None, seconds: float, calls: int, jobs: int) -> list[str]:
        share = f"{100 * seconds / whole.seconds:.1f} %" if whole.seconds else ""
        cells = [name, "" if times is None else str(times), f"{seconds:.3f}", share]
        return [*cells, *(str(count) if count else "" for count in (calls, jobs))] if with_java else cells

    def below(above: StageTime, indent: str) -> Iterator[list[str]]:
        shown = [part for part in above.parts.values() if part.is_subject or part.seconds >= _MIN_SECONDS]
        for part in shown:
            yield row(f"{indent}{part.name}", part.times, part.seconds, part.all_calls, part.all_jobs)
            if part.name != _IMPORTS and (deeper or not part.is_subject):
                yield from below(part, f"{indent}  ")
        rest = max(0.0, above.seconds - sum(part.seconds for part in shown))
        if shown and rest >= _MIN_SECONDS:
            calls = above.all_calls - sum(part.all_calls for part in shown)
            jobs = above.all_jobs - sum(part.all_jobs for part in shown)
            yield row(f"{indent}other", None, rest, calls, jobs)

    total = row("total", None, whole.seconds, whole.all_calls, whole.all_jobs)
    imports = sum(part.seconds for _, part in whole.walk() if part.name == _IMPORTS)
    return columns, [*below(whole, ""), total, *([row("of it imports", None, imports, 0, 0)] if imports else [])]
