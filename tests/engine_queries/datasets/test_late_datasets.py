"""Late rows in a workspace: a dataset that ignores them, another one that has them, replays, changed hints, the words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.engine.spark_here import in_place

from odfpy.chain.encoding import load_snapshots
from odfpy.cli.app import run
from odfpy.coordinator.storage.results import PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import InvalidQuery

pytestmark = pytest.mark.spark

BY_DAY = "window.start as event_time, count(*) as n from source group by window(event_time, '1 day')"


@pytest.fixture
def workspace(spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    in_place(monkeypatch, spark)
    monkeypatch.setenv("HOME", str(tmp_path))
    return workspace_with(tmp_path / "w", root(merge="{kind: Append}"))


def derive(workspace: Workspace, name: str, query: str) -> tuple[str, ...]:
    text = derivative(name, query=query, engine="spark")
    (result,) = workspace.add(load_snapshots(text, "manifest"), replace=True)
    return result.notes


def pull(workspace: Workspace, name: str) -> PullResult:
    (result,) = workspace.pull([name])
    assert result.error is None, result.error
    return result


def rows(workspace: Workspace, name: str, column: str) -> list[str]:
    signs = ("+A", "-R", "-C", "+C")
    table = workspace.tail(name, 1000).to_pylist()
    return [f"{signs[row['op']]} {row['event_time'].day} {row[column]}" for row in table]


def test_late_rows_are_ignored_here_and_found_there_however_often_either_is_pulled(workspace: Workspace) -> None:
    (note,) = derive(workspace, "daily", f"select /*+ LATE(ignored) */ {BY_DAY}")
    assert note.startswith("Late rows of `source` are ignored")
    derive(workspace, "late", "select /*+ LATE(only) */ event_time, id from source")
    feed(workspace, "root", "1 a", "2 b", day=1)
    feed(workspace, "root", "3 c", day=3)
    assert pull(workspace, "daily").counts == {"read": 3, "late": 0, "ignored": 0}
    feed(workspace, "root", "4 d", "5 e", day=2)  # late
    assert pull(workspace, "daily").counts == {"read": 2, "late": 2, "ignored": 2}
    feed(workspace, "root", "6 f", day=5)
    feed(workspace, "root", "7 g", day=3)  # late
    feed(workspace, "root", "8 h", day=6)
    assert pull(workspace, "daily").counts == {"read": 3, "late": 1, "ignored": 1}
    assert rows(workspace, "daily", "n") == ["+A 1 2", "+A 3 1", "+A 5 1"]
    assert pull(workspace, "late").counts == {"read": 8, "late": 3, "ignored": 0}
    assert rows(workspace, "late", "id") == ["+A 2 4", "+A 2 5", "+A 3 7"]
    for file in (workspace.storage.get("daily").folder / "checkpoints").iterdir():
        file.unlink()
    reports = [*workspace.verify(["late"]), *workspace.verify(["daily"], from_start=True)]
    assert [report.transforms_replayed for report in reports] == [1, 3]
    findings = [finding for report in reports for finding in report.findings if finding.check != "checkpoint"]
    assert not findings

    assert derive(workspace, "daily", f"select {BY_DAY}")[-1].startswith("the query has changed")
    pull(workspace, "daily")
    assert rows(workspace, "daily", "n")[3:] == ["+A 2 2", "-C 3 1", "+C 3 2"]


def test_what_is_said_of_late_rows(
    workspace: Workspace, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace.root)
    with pytest.raises(InvalidQuery, match="Late rows cannot be `dropped`"):
        derive(workspace, "daily", f"select /*+ LATE(dropped) */ {BY_DAY}")
    assert run(["list", "-o", "json"]) == 0
    assert [item["name"] for item in json.loads(capsys.readouterr().out)] == ["root"]
    derive(workspace, "daily", f"select /*+ CORRECTABLE('36h') */ {BY_DAY}")
    feed(workspace, "root", "1 a", day=1)
    feed(workspace, "root", "2 b", day=4)
    feed(workspace, "root", "3 c", "4 d", day=1)  # closed two days ago
    feed(workspace, "root", "5 e", day=3)  # closed just now
    assert run(["pull", "daily"]) == 0
    assert "(5 rows read: 3 late, 2 ignored; " in capsys.readouterr().err
    assert rows(workspace, "daily", "n") == ["+A 1 1", "+A 3 1"]
    assert run(["inspect", "query", "daily"]) == 0
    said = "late rows  corrected; windows are correctable until the watermark is 1d12h past their end\n"
    assert said in capsys.readouterr().out
    feed(workspace, "root", "6 f", day=9)
    feed(workspace, "root", "7 g", day=4)
    assert run(["pull", "daily", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["rows"] == {"read": 2, "late": 1, "ignored": 1}
    assert rows(workspace, "daily", "n")[2:] == ["+A 4 1"]
    (report,) = workspace.verify(["daily"], from_start=True)
    assert report.ok, report.findings
