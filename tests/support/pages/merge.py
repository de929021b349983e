"""The page about merge strategies as executable examples: manifests, files, and the resulting tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.chains.workspaces import workspace_with

from odfpy.data.timestamp import Timestamp

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: example
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: Csv, header: true, schema: {{fields: [{fields}]}}}}
      {merge}
"""
TYPES = {"op": "Int32", "event_time": "Date", "id": "Int64", "city": "String", "people": "Int64"}
SIGNS = ("+A", "-R", "-C", "+C")


@dataclass(frozen=True)
class Example:
    """A strategy with its files, and the table that the page has for them."""

    name: str
    merge: str
    files: tuple[str, ...]
    table: str


def examples(page: str) -> Iterator[Example]:
    """Yield every section that has files."""
    for section in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        files = tuple(re.findall(r"```csv\n(.*?)```", section, re.DOTALL))
        if files:
            (merge,) = re.findall(r"```yaml\n(.*?)\n```", section, re.DOTALL)
            _, _, after = section.rpartition("```\n\n")
            yield Example(section.split("\n", 1)[0], merge, files, after.partition("\n\n")[0])


def made_of(example: Example, folder: Path) -> str:
    """Return the table computed from the files."""
    header = example.files[0].split("\n", 1)[0].split(",")
    fields = ", ".join(f"{{name: {name}, type: {TYPES[name]}}}" for name in header)
    workspace = workspace_with(folder / example.name, MANIFEST.format(fields=fields, merge=example.merge))
    lines: list[str] = []
    for number, text in enumerate(example.files, 1):
        file = folder / f"{example.name}-{number}.csv"
        file.write_text(text, encoding="utf-8")
        (result,) = workspace.ingest("example", [file], event_time=_day(number))
        lines += [_line(number, row) for row in workspace.tail("example", result.num_records).to_pylist()]
    columns = ["in", "offset", "op", "event_time", "id", "city", "people"]
    return "\n".join((_cells(columns), "|" + "---|" * len(columns), *lines))


def _line(number: int, row: dict[str, Any]) -> str:
    day = str(row["event_time"])[:10]
    cells = (number, row["offset"], f"`{SIGNS[row['op']]}`", day, row["id"], row["city"], row["people"])
    return _cells(list(map(str, cells)))


def _cells(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _day(number: int) -> Timestamp:
    return Timestamp.parse(f"2024-01-0{number}")
