"""A query that has changed row by row holds for rows to come; once a pull has run it, nothing is behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chains.workspaces import QUERY, derivative, feed, root, rows, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.status import Condition
from odfpy.coordinator.storage.results import PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.engine.datafusion.engine import DataFusionEngine


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = workspace_with(tmp_path, root(), derivative())
    feed(workspace, "root", "1 a", "2 b")
    list(workspace.pull(["derived"]))
    changed = derivative(query=QUERY.replace("upper", "lower"))
    workspace.add(load_snapshots(changed, "manifest"), replace=True)
    return workspace


def conditions(workspace: Workspace) -> set[Condition]:
    (found,) = workspace.updates.status("derived")
    return {remark.condition for remark in found.remarks}


def test_one_pull_is_enough(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    assert Condition.BEHIND in conditions(workspace)
    assert [one.outcome for one in workspace.pull(["derived"])] == [PullOutcome.UP_TO_DATE]
    assert Condition.BEHIND not in conditions(workspace)
    with monkeypatch.context() as patch:
        patch.setattr(DataFusionEngine, "transform", lambda *_: pytest.fail("there is nothing to do"))
        assert [one.outcome for one in workspace.pull(["derived"])] == [PullOutcome.UP_TO_DATE]
    feed(workspace, "root", "1 a", "2 b", "3 C")
    assert Condition.BEHIND in conditions(workspace)
    list(workspace.pull(["derived"]))
    assert rows(workspace, "derived") == ["+A 2 B", "+A 3 c"]
    assert Condition.BEHIND not in conditions(workspace)


def test_without_the_note_it_is_run_once_more(workspace: Workspace):
    list(workspace.pull(["derived"]))
    list(workspace.maintenance.gc(caches=True))
    assert Condition.BEHIND in conditions(workspace)
    assert [one.outcome for one in workspace.pull(["derived"])] == [PullOutcome.UP_TO_DATE]
    assert Condition.BEHIND not in conditions(workspace)
