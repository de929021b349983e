"""The page about watermarks as something that can be run: settings, and the tables that come of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from support.chains.workspaces import root, workspace_with

from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp

HEAD = "| system time | what comes | watermark | late |\n|---|---|---|---|\n"
ROWS, NOTHING = "rows of ", "nothing"


@dataclass(frozen=True)
class PolicyExample:
    """Settings of a dataset, and the table that the page has for them."""

    name: str
    settings: tuple[tuple[str, str], ...]
    table: str


def policy_examples(page: str) -> Iterator[PolicyExample]:
    """Every section that has a table of that form."""
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        _, found, after = section.partition(HEAD)
        if found:
            settings = re.findall(r"odf config set --dataset \S+ (\S+) (\S+)", section)
            yield PolicyExample(section.split("\n", 1)[0], tuple(settings), after.partition("\n\n")[0])


def table_of(example: PolicyExample, folder: Path, set_clock: Callable[[Timestamp], object]) -> str:
    """The table, recomputed: at each time what comes is taken in, or a pull looks for it."""
    set_clock(Timestamp.parse("2024-01-01"))
    workspace = workspace_with(folder / "example", root("example", "{kind: Append}"))
    for key, value in example.settings:
        workspace.settings_of("example").set(key, value)
    return "\n".join(_line(workspace, line, set_clock) for line in example.table.splitlines())


def _line(workspace: Workspace, line: str, set_clock: Callable[[Timestamp], object]) -> str:
    time, what, *_ = (cell.strip() for cell in line.strip("|").split("|"))
    set_clock(_instant(time))
    if what == NOTHING:
        (result,) = workspace.pull(["example"])
        late = ""
    else:
        times = map(_instant, what.removeprefix(ROWS).split(", "))
        file = workspace.root / "rows.ndjson"
        file.write_text("".join(f'{{"event_time":"{time}","id":1,"name":"x"}}\n' for time in times))
        (result,) = workspace.ingest("example", [file])
        late = f" {result.counts['late']}"
    assert result.error is None
    return f"| {time} | {what} | {str(result.watermark)[:16].replace('T', ' ')} |{late} |"


def _instant(text: str) -> Timestamp:
    return Timestamp.parse(f"{text.replace(' ', 'T')}:00Z")
