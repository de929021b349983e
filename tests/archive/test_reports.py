"""Reports: each push is a row of a dataset, with how it has gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odfpy.archive.local import LocalArchive
from odfpy.archive.pushing import NewFile, Pushed
from odfpy.archive.reports import (
    DATASET,
    MAX_RECORDS,
    Pusher,
    PushReport,
    ReportStatus,
    record_report,
    recorded_push,
    reports,
)
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import DatasetNotFound, OdfError, TransferError


def pushed(archive: LocalArchive, file: Path, *whats: str, start: int = 1) -> list[Pushed]:
    return archive.push_all([NewFile(file=file, what=what, where="web1", start=start) for what in whats])


def report(results: list[Pushed], *, start: int = 1000, error: OdfError | None = None) -> PushReport:
    return PushReport(archive="logs", by=Pusher.COMMAND, start=start, duration=0.7383834, results=results, error=error)


def test_a_push_is_a_row_with_its_records(workspace: Workspace, archive: LocalArchive, log: Path) -> None:
    (result,) = results = pushed(archive, log, "nginx")
    record_report(workspace, report(results))
    (row,) = reports(workspace, num=10)
    assert result.record is not None
    assert {name: row[name] for name in row if name not in {"id", "at"}} == {
        "version": 0,
        "status": "success",
        "start": 1000,
        "duration": 0.738383,
        "archive": "logs",
        "by": "command",
        "files": 1,
        "known": 0,
        "refused": 0,
        "bytes": result.record.size,
        "records": [
            {
                "url": result.url,
                "size": result.record.size,
                "create_time": result.record.create_time,
                "metadata": result.record.metadata(),
            }
        ],
        "message": None,
    }


@pytest.mark.parametrize(
    ("whats", "status", "files", "refused"),
    [
        (("a", "b"), "success", 2, 0),
        (("a", "B"), "warning", 1, 1),
        (("A", "B"), "error", 0, 2),
        ((), "success", 0, 0),
    ],
)
def test_the_status_says_whether_files_were_refused(
    workspace: Workspace,
    archive: LocalArchive,
    log: Path,
    whats: tuple[str, ...],
    status: str,
    files: int,
    refused: int,
) -> None:
    record_report(workspace, report(pushed(archive, log, *whats)))
    (row,) = reports(workspace, num=10)
    assert (row["status"], row["files"], row["refused"]) == (status, files, refused)
    assert (row["message"] is None) == (refused == 0)


def test_a_push_that_fails_as_a_whole_is_an_error(workspace: Workspace) -> None:
    record_report(workspace, report([], error=TransferError("nobody is there")))
    (row,) = reports(workspace, num=10)
    assert (row["status"], row["message"], row["records"]) == ("error", "nobody is there", [])


def test_files_that_were_there_already_are_counted(workspace: Workspace, archive: LocalArchive, log: Path) -> None:
    pushed(archive, log, "nginx")
    record_report(workspace, report(pushed(archive, log, "nginx", "new")))
    (row,) = reports(workspace, num=10)
    assert (row["files"], row["known"]) == (2, 1)


def test_reports_are_found_by_status_and_time_the_newest_first(workspace: Workspace) -> None:
    for start in (1000, 2000, 3000):
        record_report(workspace, report([], start=start, error=TransferError("x") if start == 2000 else None))
    assert [row["start"] for row in reports(workspace, num=10, since=2000)] == [3000, 2000]
    assert [row["start"] for row in reports(workspace, num=10, status=ReportStatus.ERROR)] == [2000]
    assert [row["start"] for row in reports(workspace, num=2)] == [3000, 2000]


def test_a_report_shows_some_records_and_counts_all(workspace: Workspace, archive: LocalArchive, log: Path) -> None:
    new = [NewFile(file=log, what="nginx", where="web1", start=start) for start in range(MAX_RECORDS + 3)]
    record_report(workspace, report(archive.push_all(new)))
    (row,) = reports(workspace, num=1)
    assert (len(row["records"]), row["files"]) == (MAX_RECORDS, MAX_RECORDS + 3)


def test_a_report_commits_nothing_before_somebody_looks_or_there_are_many(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from odfpy.archive import reports as module

    record_report(workspace, report([]))
    with pytest.raises(DatasetNotFound):
        workspace.storage.get(DATASET)
    monkeypatch.setattr(module, "_MANY", 3)
    record_report(workspace, report([]))
    record_report(workspace, report([]))
    assert workspace.storage.get(DATASET).state.num_records == 3


def test_a_report_that_cannot_be_written_is_told(workspace: Workspace) -> None:
    (workspace.storage.odf / "archive").write_bytes(b"")
    with pytest.raises(OdfError):
        record_report(workspace, report([]))


def test_without_reports_there_are_none(workspace: Workspace) -> None:
    assert list(reports(workspace, num=10)) == []


def test_a_row_is_json_whatever_the_message(workspace: Workspace) -> None:
    row = report([], error=OdfError("\udcff\n" * 3000)).row()
    assert len(row["message"]) == 2000
    record_report(workspace, report([], error=OdfError("\udcff")))
    assert json.dumps(list(reports(workspace, num=1)))


def test_a_push_for_somebody_else_is_recorded_however_it_goes(
    workspace: Workspace, archive: LocalArchive, log: Path
) -> None:
    results = recorded_push(archive, Pusher.SERVER, lambda: pushed(archive, log, "nginx"))
    assert len(results) == 1

    def broken() -> list[Pushed]:
        raise TransferError("nobody is there")

    with pytest.raises(TransferError):
        recorded_push(archive, Pusher.SERVER, broken)
    assert [(row["by"], row["status"]) for row in reports(workspace, num=9)] == [
        ("server", "error"),
        ("server", "success"),
    ]
