"""Small workspaces for tests of the coordinator; derivatives use DataFusion, so that no JVM is needed."""

from __future__ import annotations

import shutil
from pathlib import Path

from support.fixtures import KAMU

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.storage.results import PullResult
from odfpy.coordinator.workspace import Workspace

ROOT = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: NdJson
        schema:
          fields:
            - {{name: event_time, type: Timestamp}}
            - {{name: id, type: Int64}}
            - {{name: name, type: {{kind: Option, inner: String}}}}
      merge: {merge}
"""

DERIVATIVE = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{{datasetRef: {source}, alias: source}}]
      transform: {{kind: Sql, engine: {engine}, query: "{query}"}}
"""

FOLDER = """
kind: DatasetSnapshot
version: 1
content:
  name: com.example.folder
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: "in/*.csv", order: ByName}
      read: {kind: Csv, header: true, schema: {fields: [{name: id, type: Int64}]}}
      merge: {kind: Append}
"""
"""A root dataset that ingests the files of a folder `in`."""

QUERY = "select op, event_time, id, upper(name) as name from source where id > 1"

BY_DAY = (
    "select window.start as event_time, name, count(*) as n from source"
    " group by window(event_time, '1 day'), name"
)  # fmt: skip
TOTALS = "select max(event_time) as event_time, name, count(*) as n from source group by name"


def root(name: str = "root", merge: str = "{kind: Snapshot, primaryKey: [id], compareColumns: [name]}") -> str:
    """Return a manifest of a root dataset with the columns event_time, id and name."""
    return ROOT.format(name=name, merge=merge)


def derivative(name: str = "derived", source: str = "root", query: str = QUERY, engine: str = "datafusion") -> str:
    """Return a manifest of a dataset derived from one input, `source` in the query."""
    return DERIVATIVE.format(name=name, source=source, query=query, engine=engine)


def workspace_with(folder: Path, *manifests: str) -> Workspace:
    """Return a new workspace with some datasets."""
    workspace = Workspace.init(folder)
    workspace.add([snapshot for text in manifests for snapshot in load_snapshots(text, "manifest")])
    return workspace


def feed(workspace: Workspace, name: str, *rows: str, day: int = 1) -> PullResult:
    """Ingest rows given as `id name`; their event time is a day of January 2024."""
    lines = []
    for row in rows:
        key, _, value = row.partition(" ")
        text = f'"{value}"' if value else "null"
        lines.append(f'{{"event_time":"2024-01-{day:02d}T00:00:00Z","id":{key},"name":{text}}}\n')
    file = workspace.root / "input.ndjson"
    file.write_text("".join(lines), encoding="utf-8")
    (result,) = workspace.ingest(name, [file])
    return result


def rows(workspace: Workspace, name: str) -> list[str]:
    """Return all rows of a dataset as `op id name`."""
    signs = ("+A", "-R", "-C", "+C")
    table = workspace.tail(name, 1000)
    return [f"{signs[row['op']]} {row['id']} {row['name']}" for row in table.to_pylist()]


def copied(workspace: Workspace, folder: Path) -> Workspace:
    """Return a copy of a workspace that several tests begin with: to make it anew takes much longer."""
    shutil.copytree(workspace.root, folder, dirs_exist_ok=True)
    return Workspace.open(folder)


def copy_of(dataset: str, folder: Path) -> Path:
    """Return a dataset of the reference in a folder of its own, to be damaged."""
    shutil.copytree(KAMU / dataset, folder)
    return folder
