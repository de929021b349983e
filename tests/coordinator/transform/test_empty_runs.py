"""Inputs that a pull has read in vain: nothing is committed, and yet nothing is behind any more."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chains.workspaces import derivative, feed, root, rows, workspace_with

from odfpy.automation.watch import WorkspaceWatcher
from odfpy.coordinator.dry_run import Expectation
from odfpy.coordinator.schedules.keeping import keep_schedule
from odfpy.coordinator.schedules.schedule import DatasetSchedule, Trigger
from odfpy.coordinator.status import Condition
from odfpy.coordinator.storage.results import PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.data.duration import Duration
from odfpy.engine.datafusion.engine import DataFusionEngine


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A derivative that is pulled, of a root without rows and watermark: there is nothing that a block could say."""
    workspace = workspace_with(tmp_path, root(), derivative())
    feed(workspace, "root")
    assert [one.num_records for one in workspace.pull(["derived"])] == [0]
    return workspace


def is_behind(workspace: Workspace) -> bool:
    """Whether the status, the dry run and a scheduler say that the dataset is out of date, which they agree on."""
    (found,) = workspace.updates.status("derived")
    (plan,) = workspace.plan_pull(["derived"])
    dataset = workspace.storage.get("derived")
    keep_schedule(dataset, DatasetSchedule(pull=Trigger(every=Duration(3600))))
    watcher = WorkspaceWatcher(workspace.storage, lambda _: 0, pytest.fail)
    watched = watcher.look_at(dataset.folder)
    assert watched is not None
    ((_, news),) = watcher.news(watched, 0.0)
    said = {
        Condition.BEHIND in {remark.condition for remark in found.remarks},
        plan.expectation is Expectation.NEW,
        news.any,
    }
    (answer,) = said
    return answer


def test_one_pull_is_enough(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    assert not is_behind(workspace)
    with monkeypatch.context() as patch:
        patch.setattr(DataFusionEngine, "transform", lambda *_: pytest.fail("there is nothing to do"))
        assert [one.outcome for one in workspace.pull(["derived"])] == [PullOutcome.UP_TO_DATE]
    feed(workspace, "root", "1 a", "2 b")
    assert is_behind(workspace)
    list(workspace.pull(["derived"]))
    assert rows(workspace, "derived") == ["+A 2 B"]
    assert not is_behind(workspace)


def test_before_the_first_data_of_an_input_nothing_can_be_done(tmp_path: Path):
    workspace = workspace_with(tmp_path, root(), derivative())
    assert not is_behind(workspace)
    (pulled,) = workspace.pull(["derived"])
    assert pulled.notes == ("waiting for the first data of root",)
    feed(workspace, "root", "2 b")
    assert is_behind(workspace)


def test_without_the_note_they_are_read_once_more(workspace: Workspace):
    list(workspace.maintenance.gc(caches=True))
    assert is_behind(workspace)
    assert [one.outcome for one in workspace.pull(["derived"])] == [PullOutcome.UP_TO_DATE]
    assert not is_behind(workspace)
