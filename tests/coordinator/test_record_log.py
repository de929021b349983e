"""A log of records goes on whatever happens to it: what was handed in later is not lost."""

from __future__ import annotations

import fcntl
import logging
from pathlib import Path
from typing import BinaryIO

import pytest
from support.chains.workspaces import feed, root, workspace_with

from odfpy.coordinator import record_log
from odfpy.coordinator.record_log import RecordedDataset, RecordLog
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import AlreadyExists

COLUMNS = {"id": "STRING", "at": "TIMESTAMP", "what": "STRING"}
SEEN = RecordedDataset(folder="seen", name="seen", columns=COLUMNS, description="What was seen")


def test_an_error_that_nobody_foresaw_costs_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    workspace = Workspace.init(tmp_path)
    failures = iter([RuntimeError("first"), RuntimeError("second")])
    take_in = RecordedDataset.ingest

    def failing(dataset: RecordedDataset, workspace: Workspace) -> int:
        for failure in failures:
            raise failure
        return take_in(dataset, workspace)

    monkeypatch.setattr(RecordedDataset, "ingest", failing)
    log = RecordLog(workspace, SEEN, interval=0.0)
    with caplog.at_level(logging.ERROR, "odfpy"):
        for what in ("one", "two"):
            log.record({"what": what})
            log.bring_in()
        log.record({"what": "three"})
        log.stop()
    found = {record["what"] for record in SEEN.records(workspace, num=9)}
    assert found == {"one", "two", "three"}
    assert [record.message for record in caplog.records if record.exc_info] == ["seen log not ingested"] * 2


def found(workspace: Workspace) -> set[str]:
    return {record["what"] for record in SEEN.records(workspace, num=99)}


def test_a_file_that_another_process_takes_in_before_it_is_locked_gets_no_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    workspace = Workspace.init(tmp_path)
    flock = fcntl.flock

    def late(file: BinaryIO, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        SEEN.ingest(workspace)
        flock(file, how)

    log = RecordLog(workspace, SEEN, interval=0.0)
    monkeypatch.setattr(fcntl, "flock", late)
    log.record({"what": "one"})
    log.sync()
    log.stop()
    assert found(workspace) == {"one"}


def test_after_a_long_time_files_are_taken_in_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    workspace = Workspace.init(tmp_path)
    folder = workspace.odf / "seen"
    folder.mkdir()
    for what in "abcde":
        (folder / f"{what}.ndjson").write_bytes(SEEN.line_of({"what": what}))
    monkeypatch.setattr(record_log, "_PORTION", 2 * (folder / "a.ndjson").stat().st_size)
    assert SEEN.ingest(workspace) == 5
    assert (found(workspace), list(folder.iterdir())) == (set("abcde"), [])
    assert len(list((workspace.storage.get("seen").folder / "data").iterdir())) == 3


def test_records_for_which_there_is_no_room_anywhere_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    workspace = Workspace.init(tmp_path)
    log = RecordLog(workspace, SEEN, interval=0.0)
    monkeypatch.setattr(record_log, "_SYNC", 60.0)
    monkeypatch.setattr(record_log, "_MAX_WAITING", 3 * len(SEEN.line_of({"what": "0"})))
    for number in range(9):
        log.record({"what": str(number)})
    log.bring_in()
    log.record({"what": "9"})
    log.stop()
    assert found(workspace) == {"0", "1", "2", "9"}
    assert [record.message for record in caplog.records] == ["seen log: 6 records are lost, since the disk was full"]


@pytest.mark.parametrize("rows", [0, 1])
def test_another_dataset_of_its_name_gets_no_records(tmp_path: Path, rows: int):
    workspace = workspace_with(tmp_path, root("seen"))
    if rows:
        feed(workspace, "seen", "1 a")
    head = workspace.storage.get("seen").state.head
    log = RecordLog(workspace, SEEN, interval=0.0)
    log.record({"what": "one"})
    log.stop()
    for use in (lambda: SEEN.ingest(workspace), lambda: found(workspace)):
        with pytest.raises(AlreadyExists, match="another dataset") as caught:
            use()
        assert "odf rename seen NAME" in str(caught.value.hint)
    assert workspace.storage.get("seen").state.head == head
    workspace.datasets.rename("seen", "other")
    SEEN.ingest(workspace)
    assert found(workspace) == {"one"}
