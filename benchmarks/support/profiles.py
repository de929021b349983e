"""Where the time of commands goes: their `--profile`, the medians of several runs, and a file that keeps them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from support import ODF, Run, finished

_MIN_SECONDS = 0.0005
"""Seconds that are worth a line."""


class Profiled(NamedTuple):
    """A command that was run with `--profile`.

    Attributes:
        run: what it cost, as others see it.
        tree: its stages, those of its datasets among them.
    """

    run: Run
    tree: dict[str, Any]

    def stages(self) -> dict[tuple[str, ...], dict[str, Any]]:
        """All stages by the names that lead to them; also the end of the process, which no profile can have."""
        end = self.run.seconds - self.tree["seconds"]
        return dict([*_walk(self.tree, ()), (("process end",), {**_NOTHING, "times": 1, "seconds": max(0.0, end)})])


_NOTHING: dict[str, Any] = {"times": 0, "seconds": 0.0, "javaCalls": 0, "sparkJobs": 0, "stages": []}


def profiled(folder: Path, *arguments: str, stdin: bytes = b"") -> Profiled:
    """Run an `odf` command in a folder with `--profile`, from the start of the process to its end."""
    run, printed = finished(folder, [*ODF, *arguments, "--profile", "-o", "json"], stdin)
    return Profiled(run, json.loads(printed)[-1]["profile"])


def show_stages(label: str, profiles: Sequence[Profiled]) -> None:
    """A table of the medians of stages, each with its share; those that take no time are left out."""
    whole = statistics.median(one.run.seconds for one in profiles)
    print(f"{label}: {whole:.3f} s")
    print(f"  {'stage':44} seconds    share  calls to Java  Spark jobs")
    found = [one.stages() for one in profiles]
    for path in dict.fromkeys(path for stages in found for path in stages):
        if not path:
            continue
        middle = {
            key: statistics.median(stages.get(path, _NOTHING)[key] for stages in found)
            for key in ("seconds", "javaCalls", "sparkJobs")
        }
        if middle["seconds"] >= _MIN_SECONDS:
            name = f"{'  ' * (len(path) - 1)}{path[-1]}"
            counts = [f"{middle[key]:.0f}" if middle[key] else "" for key in ("javaCalls", "sparkJobs")]
            share = f"{100 * middle['seconds'] / whole:.1f} %"
            print(f"  {name:44} {middle['seconds']:7.3f}  {share:>7}  {counts[0]:>13}  {counts[1]:>10}".rstrip())
    print(flush=True)


def keep_stages(file: Path, label: str, profiles: Sequence[Profiled]) -> None:
    """Append profiles to a file, one JSON document a line, to be compared with those of another day."""
    with file.open("a", encoding="utf-8") as lines:
        for one in profiles:
            lines.write(json.dumps({"label": label, "seconds": one.run.seconds, "profile": one.tree}) + "\n")


def _walk(tree: dict[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    yield path, tree
    if path[-1:] == ("imports",):  # of which modules is kept, and too much for a table
        return
    for part in tree["stages"]:
        yield from _walk(part, (*path, part["stage"]))
    if tree["stages"] and tree["other"]:
        yield (*path, "other"), {**_NOTHING, "seconds": tree["other"]}
