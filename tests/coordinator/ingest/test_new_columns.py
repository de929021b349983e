"""Columns that come with a file stay for ever, so they are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.storage.results import PullResult
from odfpy.coordinator.workspace import Workspace

SOURCE = """
kind: DatasetSnapshot
version: 1
content:
  name: people
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: Csv, header: true, {columns}}}
      merge: {{kind: Append}}
"""
INFERRED = "inferSchema: true"
DECLARED = "ddlSchema: [event_time DATE, id BIGINT, ID BIGINT]"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.init(tmp_path / "w")


def ingested(workspace: Workspace, header: str, row: str) -> PullResult:
    file = workspace.root / "new.csv"
    file.write_text(f"{header}\n{row}\n")
    (result,) = workspace.ingest("people", [file])
    return result


def added(workspace: Workspace, columns: str) -> None:
    (workspace.root / "m.yaml").write_text(SOURCE.format(columns=columns))
    workspace.add(load_snapshots((workspace.root / "m.yaml").read_text(), "m.yaml"))


def told(result: PullResult) -> list[tuple[str, tuple[str, ...]]]:
    return [(warning.kind.value, warning.examples) for warning in result.warnings]


def test_new_columns_are_named(workspace: Workspace) -> None:
    added(workspace, INFERRED)
    assert ingested(workspace, "event_time,id", "2024-01-01,1").notes == ()
    assert ingested(workspace, "event_time,id", "2024-01-01,2").notes == ()
    assert ingested(workspace, "event_time,id,name", "2024-01-01,3,a").notes == ("new column 'name'",)
    result = ingested(workspace, "event_time,id,name,x,y", "2024-01-01,3,a,1,2")
    assert (result.notes, result.warnings) == (("new columns 'x', 'y'",), ())
    assert ingested(workspace, "event_time,id", "2024-01-01,4").notes == ()


@pytest.mark.parametrize("name", ["ID", "Id", "id ", " iD"])
def test_a_name_that_is_spelt_in_another_way_is_warned_of(workspace: Workspace, name: str) -> None:
    added(workspace, INFERRED)
    ingested(workspace, "event_time,id", "2024-01-01,1")
    result = ingested(workspace, f"event_time,{name}", "2024-01-01,2")
    assert (told(result), result.notes) == ([("columns", (name,))], (f"new column {name!r}",))
    assert f"{name!r} differs from 'id' in case or spaces only" in result.warnings[0].message
    assert told(ingested(workspace, f"event_time,{name}", "2024-01-01,3")) == []


def test_nobody_is_warned_of_columns_that_were_declared(workspace: Workspace) -> None:
    added(workspace, "ddlSchema: [event_time DATE, id BIGINT]")
    ingested(workspace, "event_time,id", "2024-01-01,1")
    (workspace.root / "m.yaml").write_text(SOURCE.format(columns=DECLARED))
    workspace.add(load_snapshots((workspace.root / "m.yaml").read_text(), "m.yaml"), replace=True)
    result = ingested(workspace, "event_time,id,ID", "2024-01-01,1,2")
    assert (told(result), result.notes) == ([], ("new column 'ID'",))
