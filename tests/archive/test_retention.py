"""What keeps the bytes of files in an archive: no correction takes a file out of a hold or of its retention."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfpy.archive import FileRecord
from odfpy.archive.expiry import expire, expired_files
from odfpy.archive.local import LocalArchive
from odfpy.archive.retention.policy import LegalHold, RetentionRule
from odfpy.archive.retention.releasing import released_objects
from odfpy.archive.rows import archive_source, table_of
from odfpy.coordinator.ingest.row_ingest import commit_rows
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import OperationType

WORDS = {"what": "nginx", "where": "web1", "start": "2024-03-01", "end": "2024-03-02"}
WHY = {"who": "ann", "why": "a test"}
SINCE = Timestamp.parse("2024-03-01T00:00:00Z")


@pytest.fixture
def file(archive: LocalArchive, log: Path) -> FileRecord:
    (pushed,) = archive.push([log], **WORDS)
    assert pushed.record is not None
    return pushed.record


def hold(archive: LocalArchive, **about: object) -> None:
    new = LegalHold(name="case", who="ann", why="court", since=SINCE, **about)
    archive.change_policy(lambda policy: policy.with_hold(new))


def retain(archive: LocalArchive, keep: str, **about: str) -> None:
    rule = RetentionRule(keep=keep, who="ann", why="law", since=SINCE, **about)
    archive.change_policy(lambda policy: policy.with_rule(rule))


def is_kept(workspace: Workspace, file: FileRecord) -> bool:
    assert not any(report.error for report in workspace.maintenance.gc(may_remove=released_objects))
    return file.object in workspace.storage.get("logs").layout.data


def test_a_correction_takes_no_file_out_of_a_hold(
    workspace: Workspace, archive: LocalArchive, file: FileRecord
) -> None:
    hold(archive, where=("web1",))
    archive.change([file.id], where="web2", **WHY)
    archive.withdraw([file.id], **WHY)
    assert is_kept(workspace, file)
    archive.change([file.id], what="other", start=0, end=1, **WHY)
    assert is_kept(workspace, file)
    archive.change_policy(lambda policy: policy.without_hold("case"))
    assert not is_kept(workspace, file)


def test_a_hold_of_later_keeps_what_was_said_of_a_file_before(
    workspace: Workspace, archive: LocalArchive, file: FileRecord
) -> None:
    archive.change([file.id], where="web2", **WHY)
    hold(archive, where=("web1",))
    archive.withdraw([file.id], **WHY)
    assert is_kept(workspace, file)


def test_a_correction_takes_no_file_out_of_its_retention(
    workspace: Workspace, archive: LocalArchive, file: FileRecord
) -> None:
    retain(archive, "1d")
    retain(archive, "forever", where="web1")
    archive.change([file.id], where="web2", **WHY)
    assert list(expired_files(archive, Timestamp.now().millis)) == []
    archive.withdraw([file.id], **WHY)
    assert is_kept(workspace, file)
    archive.change_policy(lambda policy: policy.without_rule(None, "web1"))
    assert not is_kept(workspace, file)


def test_a_file_expires_when_no_rule_keeps_it_any_more(
    workspace: Workspace, archive: LocalArchive, file: FileRecord
) -> None:
    retain(archive, "1d")
    archive.change([file.id], where="web2", **WHY)
    (expired,) = expire(archive, who="me", now=Timestamp.now().millis)
    assert (expired.record.where, expired.rule.keep) == ("web2", "1d")
    assert not is_kept(workspace, file)


def test_a_file_that_shares_its_bytes_with_one_that_is_held_stays(
    workspace: Workspace, archive: LocalArchive, file: FileRecord, log: Path
) -> None:
    (other,) = archive.push([log], **{**WORDS, "where": "web9"})
    assert other.record is not None
    hold(archive, where=("web9",))
    archive.change([other.record.id], where="web1", **WHY)
    archive.withdraw([file.id, other.record.id], **WHY)
    assert is_kept(workspace, file)


def test_a_record_that_another_program_takes_back_was_not_let_go(
    workspace: Workspace, archive: LocalArchive, file: FileRecord, log: Path, tmp_path: Path
) -> None:
    (other,) = archive.push([log], **{**WORDS, "where": "web9"})
    assert other.record is not None
    hold(archive, where=("web9",))
    archive.withdraw([file.id], **WHY)
    with archive.dataset.writing() as dataset:
        rows = table_of([other.record], [OperationType.RETRACT])
        commit_rows(dataset, archive_source(dataset.state), rows, tmp_path, schema=dataset.state.schema)
    assert is_kept(workspace, file)
