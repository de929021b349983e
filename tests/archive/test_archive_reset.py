"""`odf reset` of an archive: who takes its history back learns what it had said since."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfpy.archive.local import LocalArchive, init_archive
from odfpy.archive.retention.policy import LegalHold
from odfpy.archive.retention.releasing import released_objects
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp

WHY = {"who": "me", "why": "a test"}
KEPT = "2 linked files withdrawn or expired since then count as kept again"
REMOVED = "the bytes of 1 linked file of these were removed and are not restored: `odf verify` reports them"
HOLDS = "attachments are reset, including retention rules and holds: archive/policy.yaml"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.init(tmp_path / "workspace")


@pytest.fixture
def archive(workspace: Workspace, tmp_path: Path) -> LocalArchive:
    archive = init_archive(workspace, "logs")
    for name in ("gone", "withdrawn", "kept"):
        (tmp_path / name).write_text(name)
        archive.push([tmp_path / name], what=name, where="here", start="2024-01-01")
    return archive


def the(archive: LocalArchive, what: str) -> str:
    (record,) = archive.list(what, start="2023-01-01", end="2025-01-01")
    return record.id


def notes(workspace: Workspace, block: int) -> tuple[str, ...]:
    return workspace.maintenance.plan_reset("logs", str(block)).notes


def test_files_that_were_let_go_would_be_kept_again(workspace: Workspace, archive: LocalArchive) -> None:
    before = archive.dataset.state.sequence_number
    archive.withdraw([the(archive, "gone")], **WHY)
    assert not any(report.error for report in workspace.maintenance.gc(may_remove=released_objects))
    archive.withdraw([the(archive, "withdrawn")], **WHY)
    archive.change([the(archive, "kept")], where="there", **WHY)
    assert notes(workspace, before) == (KEPT, REMOVED)
    assert notes(workspace, before + 1) == (KEPT.replace("2 linked files", "1 linked file").replace("count", "counts"),)
    assert notes(workspace, before + 2) == ()
    assert notes(workspace, 5) == (KEPT.replace("2 linked files", "1 linked file").replace("count", "counts"), REMOVED)
    workspace.maintenance.reset("logs", str(before))
    (report,) = workspace.verify(["logs"])
    assert [finding.code for finding in report.findings] == ["E115"]
    archive.withdraw([the(archive, "gone")], **WHY)
    (report,) = workspace.verify(["logs"])
    assert report.ok


def test_holds_that_came_later_are_told(workspace: Workspace, archive: LocalArchive) -> None:
    before = archive.dataset.state.sequence_number
    hold = LegalHold(name="case", since=Timestamp.now().floor_millis(), **WHY)
    archive.change_policy(lambda policy: policy.with_hold(hold))
    assert notes(workspace, before) == (HOLDS,)
    assert notes(workspace, before + 1) == ()


def test_a_damaged_slice_stops_no_reset(workspace: Workspace, archive: LocalArchive) -> None:
    dataset = archive.dataset
    before = dataset.state.sequence_number
    archive.withdraw([the(archive, "kept")], **WHY)
    data = archive.dataset.chain.in_order()[-1].block.event.new_data
    path = dataset.layout.data.local_path(data.physical_hash)
    path.chmod(0o600)
    path.write_bytes(b"damaged")
    (note,) = notes(workspace, before)
    assert note.startswith("cannot determine which linked files would be kept again: ")
    assert workspace.maintenance.reset("logs", str(before)).sequence_number == before
