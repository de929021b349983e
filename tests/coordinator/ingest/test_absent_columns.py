"""Columns that are declared and that a file of Parquet does not have become null, which is told."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
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
      read: {kind: Parquet, ddlSchema: [event_time TIMESTAMP, id BIGINT, name STRING]}
      merge: {kind: Append}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = Workspace.init(tmp_path / "w")
    workspace.add(load_snapshots(SOURCE, "m.yaml"))
    return workspace


def ingested(workspace: Workspace, rows: int = 1, *columns: str) -> PullResult:
    file = workspace.root / "new.parquet"
    times = pa.array([0] * rows, pa.timestamp("ms", "UTC"))
    pq.write_table(pa.table({"event_time": times, **{column: ["1"] * rows for column in columns}}), file)
    (result,) = workspace.ingest("people", [file])
    return result


def test_nothing_is_told_of_files_that_have_all(workspace: Workspace) -> None:
    assert ingested(workspace, 1, "id", "name").warnings == ()
    assert ingested(workspace, 1, "id", "name", "more").warnings == ()


def test_absent_column_is_named_with_the_one_that_is_meant(workspace: Workspace) -> None:
    (warning,) = ingested(workspace, 2, "id", "Name").warnings
    assert (warning.kind.value, warning.count, warning.examples) == ("columns", 1, ("name",))
    assert warning.message.endswith(
        "new.parquet has no column 'name': null in each of its rows; it has 'Name', which is not taken in"
    )
    (warning,) = ingested(workspace, 2, "x").warnings
    assert warning.message.endswith("new.parquet has no columns 'id', 'name': null in each of its rows")


def test_files_without_rows_lack_nothing(workspace: Workspace) -> None:
    assert ingested(workspace, 0, "id").warnings == ()
