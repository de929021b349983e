"""A log of records goes on whatever happens to it: what was handed in later is not lost."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from odfpy.coordinator.record_log import RecordedDataset, RecordLog
from odfpy.coordinator.workspace import Workspace

COLUMNS = {"id": "STRING", "at": "TIMESTAMP", "what": "STRING"}
SEEN = RecordedDataset(folder="seen", name="seen", columns=COLUMNS, description="What was seen")


def test_an_error_that_nobody_foresaw_costs_no_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    workspace = Workspace.init(tmp_path)
    failures = iter([RuntimeError("first"), RuntimeError("second")])
    take_in = RecordedDataset.take_in

    def failing(dataset: RecordedDataset, workspace: Workspace) -> int:
        for failure in failures:
            raise failure
        return take_in(dataset, workspace)

    monkeypatch.setattr(RecordedDataset, "take_in", failing)
    log = RecordLog(workspace, SEEN, interval=0.0)
    with caplog.at_level(logging.ERROR, "odfpy"):
        for what in ("one", "two"):
            log.record({"what": what})
            log.bring_in()
        log.record({"what": "three"})
        log.stop()
    found = {record["what"] for record in SEEN.records(workspace, num=9)}
    assert found == {"one", "two", "three"}
    assert [record.message for record in caplog.records if record.exc_info] == ["seen log not taken in"] * 2
