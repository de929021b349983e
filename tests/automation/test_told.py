"""What a scheduler tells reaches those who want to know: over a real scheduler, real runs and a real receiver."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.chains.workspaces import FOLDER, derivative, feed, root, workspace_with
from support.servers.serving import PATIENCE
from support.servers.webhooks import receiving

from odfpy.automation.background import scheduling
from odfpy.automation.failing_jobs import failing_jobs
from odfpy.automation.notifications.notices import Notices
from odfpy.automation.notifications.receivers import ChannelKind
from odfpy.coordinator.schedules.keeping import keep_schedule, parse_schedule
from odfpy.coordinator.workspace import Workspace

NAME, LATE = "com.example.folder", "com.example.late"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = workspace_with(tmp_path / "workspace", FOLDER, root(LATE, "{kind: Append}"), derivative("derived", LATE))
    feed(found, LATE, "1 a")
    return found


def keep(workspace: Workspace, name: str, text: str) -> None:
    keep_schedule(workspace.storage.get(name), parse_schedule(text))


def test_a_push_that_fails_and_a_dataset_that_is_late_are_told_by_webhook(workspace: Workspace) -> None:
    keep(workspace, NAME, "schedule: {push: {every: 30d, to: nowhere/x}, retry: {attempts: 1}}")
    keep(workspace, LATE, "schedule: {maxAge: 1s}")
    with receiving() as receiver:
        Notices(workspace).receivers.add(ChannelKind.WEBHOOK, receiver.url)
        with scheduling(workspace):
            told = [json.loads(receiver.calls.get(timeout=PATIENCE)[1]) for _ in range(2)]
    kinds = {one["event"]: one for one in told}
    assert set(kinds) == {"failed", "late"}
    assert kinds["failed"]["dataset"] == NAME
    assert "push failed" in kinds["failed"]["subject"]
    assert kinds["late"]["dataset"] == LATE
    assert "promises 1s" in kinds["late"]["subject"]
    [(dataset_id, [row])] = failing_jobs(workspace).items()
    assert dataset_id == str(workspace.storage.get(NAME).handle.id)
    assert row["job"] == "push"
    assert row["error_code"] == kinds["failed"]["code"]
