"""Times that are finer than a millisecond are cut, and that is told, above all where rows are known by them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.chains.csv_sources import csv_source
from support.chains.workspaces import workspace_with

from odfpy.coordinator.storage.results import PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.data.data_warning import DataWarning, WarningKind
from odfpy.data.schemas.arrow import to_arrow

FIELDS = "{name: event_time, type: Timestamp}, {name: id, type: Int64}"
PARQUET = """
kind: DatasetSnapshot
version: 1
content:
  name: times
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: Parquet}
      merge: {kind: Append}
"""
KEYED = "{kind: Ledger, primaryKey: [event_time]}"


def made(folder: Path, merge: str) -> Workspace:
    return workspace_with(folder, csv_source("times", FIELDS, merge=merge))


def take_in(workspace: Workspace, *times: str) -> PullResult:
    file = workspace.root / "rows.csv"
    file.write_text("event_time,id\n" + "".join(f"2024-01-01T00:00:{time}Z,{at}\n" for at, time in enumerate(times)))
    (result,) = workspace.ingest("times", [file])
    return result


def told(result: PullResult) -> list[DataWarning]:
    return [warning for warning in result.warnings if warning.kind is WarningKind.CUT_TIMES]


# With an engine of its own, `lanes/test_lanes_agree.py` has the same, over the Spark of all tests.
@pytest.mark.parametrize(
    "lane", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.processes, pytest.mark.slow])]
)
def test_keys_that_become_the_same_are_told(tmp_path: Path, lane: str) -> None:
    workspace = made(tmp_path, KEYED)
    workspace.config.set("ingest.lane", lane)
    (first,) = told(take_in(workspace, "00.123456", "01", "02.001"))
    assert (first.count, first.examples) == (1, ("event_time",))
    assert "rows whose keys differ only there get the same key" in first.message
    again = take_in(workspace, "00.123999")
    assert (again.num_records, told(again)[0].count) == (0, 1)


def test_the_schema_and_whole_times_are_as_ever(tmp_path: Path) -> None:
    workspace = made(tmp_path, KEYED)
    assert told(take_in(workspace, "00.123", "01")) == []
    schema = workspace.datasets.state("times").schema
    assert schema is not None
    assert to_arrow(schema).field("event_time").type == pa.timestamp("ms", "UTC")


def test_columns_of_files_with_finer_times_are_named(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, PARQUET)
    times = pa.array([999, 5_000_000_000, None], pa.timestamp("us", "UTC"))
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"event_time": times, "seen": times}), file)
    (result,) = workspace.ingest("times", [file])
    (warning,) = told(result)
    assert warning.message == "2 times in event_time, seen are finer than a millisecond, and truncated"
