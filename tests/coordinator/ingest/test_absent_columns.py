"""Columns that are declared and that a file of Parquet does not have become null, which is told."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.events import AddPushSource
from odfpy.coordinator.ingest.new_columns import warnings_of_absent_columns
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
JSON = SOURCE.replace("kind: Parquet", "kind: NdJson")


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
        "new.parquet has no column 'name': null in each of its rows; it has 'Name', which is not ingested"
    )
    (warning,) = ingested(workspace, 2, "x").warnings
    assert warning.message.endswith("new.parquet has no columns 'id', 'name': null in each of its rows")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ('{"ID": 1, "name": "x"}\n', "'ID' and not 'id'"),
        ('{"id": 1}\n\n{"Id": 2, "NAME ": "x"}\n{"NA', "'NAME ' and not 'name'"),
        ('{"id": 1, "ID": 2, "more": 3}\n', None),
        ('[1]\n{"ID": 1}', "'ID' and not 'id'"),
        ('{"ID": ' + "9" * 70_000 + "}\n", None),
        ("", None),
    ],
)
def test_members_of_json_in_other_letters_are_told(lines: str, told: str | None, tmp_path: Path) -> None:
    (source,) = (event for event in load_snapshots(JSON, "m.yaml")[0].metadata if isinstance(event, AddPushSource))
    (tmp_path / "new.ndjson").write_text(lines)
    warnings = warnings_of_absent_columns(source, tmp_path / "new.ndjson", "new.ndjson", "event_time")
    ending = ": names are case-sensitive, so these values are not ingested"
    assert [one.message for one in warnings] == ([] if told is None else [f"records of new.ndjson have {told}{ending}"])


def test_an_ingest_tells_of_members_in_other_letters(tmp_path: Path) -> None:
    workspace = Workspace.init(tmp_path / "w")
    workspace.add(load_snapshots(JSON, "m.yaml"))
    (tmp_path / "new.ndjson").write_text('{"event_time": "2024-01-01T00:00:00Z", "id": 1, "Name": "x"}\n')
    (result,) = workspace.ingest("people", [tmp_path / "new.ndjson"])
    (warning,) = result.warnings
    assert warning.message.partition(" have ")[2].startswith("'Name' and not 'name'")
    assert workspace.tail("people", 1).column("name").to_pylist() == [None]


def test_files_without_rows_lack_nothing(workspace: Workspace) -> None:
    assert ingested(workspace, 0, "id").warnings == ()
