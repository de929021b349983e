"""The engine's page as executable examples: queries, inputs, and outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timezone
from itertools import groupby, zip_longest
from typing import Any

import yaml

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.storage.results import PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp

HEAD = "| pull | comes in | goes out |\n|---|---|---|\n"
WATERMARK = "watermark "
SIGNS = ("+A", "-R", "-C", "+C")
COLUMNS = {
    "readings": {"station": "String", "degrees": "Int64"},
    "accounts": {"account": "String", "amount": "Int64"},
    "orders": {"id": "Int64", "item": "String"},
    "shipments": {"id": "Int64", "carrier": "String"},
    "payments": {"id": "Int64", "currency": "String", "amount": "Int64"},
    "rates": {"currency": "String", "rate": "Int64"},
}
"""Columns of the page's inputs, besides their event time."""


@dataclass(frozen=True)
class QueryExample:
    """A transform, and the table that the page has for it."""

    name: str
    transform: dict[str, Any]
    table: str

    @property
    def inputs(self) -> list[str]:
        """The datasets that it reads."""
        text = json.dumps(self.transform)
        return [name for name in COLUMNS if re.search(rf"\b{name}\b", text)]


def query_examples(page: str) -> Iterator[QueryExample]:
    """Yield every section that has a table of that form, below a query or a transform."""
    for section in re.split(r"^###? ", page, flags=re.MULTILINE)[1:]:
        before, found, after = section.partition(HEAD)
        if not found:
            continue
        (kind, text) = re.findall(r"```(sql|yaml)\n(.*?)\n```", before, re.DOTALL)[-1]
        transform = yaml.safe_load(text) if kind == "yaml" else {"query": text}
        yield QueryExample(section.split("\n", 1)[0], transform, after.partition("\n\n")[0].strip())


def changes_of(example: QueryExample, workspace: Workspace, number: int) -> str:
    """Recompute the table in a workspace, pull by pull."""
    names = {alias: f"{alias}-{number}" for alias in example.inputs}
    inputs = [{"datasetRef": name, "alias": alias} for alias, name in names.items()]
    transform = {"kind": "Sql", "engine": "spark", **example.transform}
    metadata = [{"kind": "SetTransform", "inputs": inputs, "transform": transform}]
    manifests = [*(_root(alias, name) for alias, name in names.items())]
    manifests.append(_manifest(f"result-{number}", "Derivative", metadata))
    workspace.add([snapshot for text in manifests for snapshot in load_snapshots(text, "manifest")])
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in example.table.splitlines()]
    lines = []
    for pull, rows in groupby(cells, key=lambda row: row[0]):
        taken = _take_in(workspace, names, [row[1] for row in rows if row[1]])
        (result,) = workspace.pull([f"result-{number}"])
        assert result.error is None, result.error
        given = [_row_cell(row) for row in _new_rows(workspace, result)]
        given += [WATERMARK + _time(result.watermark.to_datetime())] if result.watermark else []
        lines += [f"| {pull} | {one} | {other} |" for one, other in zip_longest(taken, given, fillvalue="")]
    return "\n".join(re.sub(r"\|  +\|", "| |", line) for line in lines)


def _take_in(workspace: Workspace, names: dict[str, str], cells: list[str]) -> list[str]:
    """Ingest the rows of a pull and move watermarks; return the expected cells."""
    said = []
    for alias, name in names.items():
        prefix = f"{alias} " if len(names) > 1 else ""
        mine = [cell for cell in cells if cell.startswith(prefix)]
        rows = [cell for cell in mine if not cell.startswith(prefix + WATERMARK)]
        moves = [cell.removeprefix(prefix + WATERMARK) for cell in mine if cell not in rows]
        watermark = None
        if rows:
            file = workspace.root / "rows.ndjson"
            file.write_text("".join(json.dumps(_row(alias, cell.removeprefix(prefix))) + "\n" for cell in rows))
            (taken,) = workspace.ingest(name, [file])
            assert taken.error is None, taken.error
            watermark = taken.watermark
        elif moves:
            watermark = Timestamp.parse(f"2024-{moves[0].replace(' ', 'T')}:00Z")
            workspace.set_watermark(name, watermark)
        said += rows
        if watermark is not None:
            said.append(prefix + WATERMARK + _time(watermark.to_datetime()))
    return said


def _row(alias: str, cell: str) -> dict[str, Any]:
    sign, day, clock, *values = cell.replace("`", "").split()
    columns = zip(COLUMNS[alias].items(), values, strict=True)
    row: dict[str, Any] = {"op": SIGNS.index(sign), "event_time": f"2024-{day}T{clock}:00Z"}
    return row | {name: int(value) if kind == "Int64" else value for (name, kind), value in columns}


def _new_rows(workspace: Workspace, result: PullResult) -> list[dict[str, Any]]:
    if not result.num_records:
        return []
    rows: list[dict[str, Any]] = workspace.tail(result.name, result.num_records).to_pylist()
    return rows


def _row_cell(row: dict[str, Any]) -> str:
    values = [_value(value) for name, value in row.items() if name not in ("offset", "op", "system_time")]
    return " ".join([f"`{SIGNS[row['op']]}`", *values])


def _value(value: Any) -> str:
    if isinstance(value, datetime):
        return _time(value)
    if isinstance(value, date):
        return f"{value:%m-%d}"
    return "none" if value is None else str(value)


def _time(value: datetime) -> str:
    value = value.astimezone(timezone.utc)
    text = f"{value:%m-%d %H:%M}"
    if value.second or value.microsecond:
        text += f":{value:%S}"
    return text + (f".{value.microsecond // 1000:03}" if value.microsecond else "")


def _root(alias: str, name: str) -> str:
    types = {"op": "Int32", "event_time": "Timestamp", **COLUMNS[alias]}
    fields = [{"name": column, "type": kind} for column, kind in types.items()]
    source = {
        "kind": "AddPushSource",
        "sourceName": "default",
        "read": {"kind": "NdJson", "schema": {"fields": fields}},
        "merge": {"kind": "ChangelogStream", "primaryKey": [next(iter(COLUMNS[alias]))]},
    }
    return _manifest(name, "Root", [source])


def _manifest(name: str, kind: str, metadata: list[dict[str, Any]]) -> str:
    content = {"name": name, "kind": kind, "metadata": metadata}
    return yaml.safe_dump({"kind": "DatasetSnapshot", "version": 1, "content": content})
