"""An ingest of more rows than a slice has: several blocks, one move of the head, all or nothing."""

from __future__ import annotations

import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv
from support.chains.workspaces import workspace_with
from support.processes.terminal import start

from odfpy.chain.block import MetadataBlock
from odfpy.chain.events import AddData
from odfpy.chain.state import new_data_of
from odfpy.coordinator.workspace import Workspace
from odfpy.data.slices.cut import SLICE_ROWS

ROWS = 2 * SLICE_ROWS + 10
MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: large
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: in/*.csv}
      read: {kind: Csv, schema: {fields: [{name: event_time, type: Date}, {name: id, type: Int32}]}}
      merge: {kind: Append}
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A workspace with a dataset that has not been pulled yet, whose rows come latest first."""
    workspace = workspace_with(tmp_path / "workspace", MANIFEST)
    days = pa.array(range(ROWS, 0, -1), pa.int32())
    table = pa.table({"event_time": pa.compute.divide(days, 200).cast(pa.int32()).cast(pa.date32()), "id": days})
    (workspace.root / "in").mkdir()
    csv.write_csv(table, workspace.root / "in" / "1.csv", csv.WriteOptions(include_header=False))
    return workspace


def blocks(workspace: Workspace) -> list[MetadataBlock]:
    return [hashed.block for hashed in workspace.storage.get("large").chain.in_order()]


def is_whole(workspace: Workspace) -> bool:
    (report,) = workspace.verify(["large"])
    return report.ok and workspace.datasets.state("large").num_records == ROWS


def test_a_large_result_is_several_blocks_in_one_commit(workspace: Workspace, tmp_path: Path) -> None:
    (result,) = workspace.pull(["large"])
    assert result.error is None
    data = [block.event for block in blocks(workspace) if isinstance(block.event, AddData)]
    intervals = [(new.offset_interval.start, new.offset_interval.end) for new in map(new_data_of, data) if new]
    assert intervals == [(0, SLICE_ROWS - 1), (SLICE_ROWS, 2 * SLICE_ROWS - 1), (2 * SLICE_ROWS, ROWS - 1)]
    assert [event.prev_offset for event in data] == [None, SLICE_ROWS - 1, 2 * SLICE_ROWS - 1]
    assert [event.new_source_state is not None for event in data] == [False, False, True]
    assert [event.new_watermark is not None for event in data] == [False, False, True], "until then rows still come"
    assert len({block.system_time for block in blocks(workspace) if isinstance(block.event, AddData)}) == 1
    assert is_whole(workspace)
    assert workspace.tail("large", 2).column("id").to_pylist() == [ROWS // 200 * 200 + 1, ROWS // 200 * 200]

    (pushed,) = workspace.push(["large"], to=str(tmp_path / "elsewhere"))
    assert pushed.num_blocks == len(blocks(workspace))
    other = Workspace.init(tmp_path / "other")
    (copied,) = other.pull([str(tmp_path / "elsewhere")], as_name="large")
    assert copied.new_head == workspace.datasets.state("large").head
    assert is_whole(other)
    (again,) = workspace.pull(["large"])
    assert (again.num_blocks, again.num_records) == (0, 0)


def test_a_large_ingest_that_is_killed_in_the_middle_leaves_nothing(workspace: Workspace) -> None:
    before = workspace.datasets.state("large").head
    (dataset,) = (workspace.root / ".odf" / "datasets").iterdir()
    process = start("pull", "large", cwd=workspace.root)
    try:
        while process.poll() is None and not any((dataset / "data").glob("*")):
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.002)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    reopened = Workspace.open(workspace.root)
    (report,) = reopened.verify(["large"])
    assert report.findings == ()
    assert reopened.datasets.state("large").head == before or is_whole(reopened), "all or nothing"
    assert [result.error for result in reopened.pull(["large"])] == [None]
    assert is_whole(reopened)
