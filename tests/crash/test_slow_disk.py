"""A disk that takes its time over every write: meanwhile the last commit is there for all, and nobody else can write."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.chains.workspaces import derivative, feed, root, rows, workspace_with

from odfpy.coordinator.workspace import Workspace
from odfpy.errors import DatasetLocked
from odfpy.repository import objects

Work = Callable[[Workspace], object]

WORKS: dict[str, tuple[str, Work]] = {
    "ingest": ("root", lambda workspace: feed(workspace, "root", "3 c", day=3)),
    "transform": ("derived", lambda workspace: list(workspace.pull(["derived"]))),
    "compact": ("root", lambda workspace: workspace.maintenance.compact("root")),
    "push": ("", lambda workspace: list(workspace.push(["root"], to=str(workspace.root / "there")))),
    "pull": ("copied", lambda workspace: list(workspace.pull(["copied"]))),
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared") / "workspace"
    workspace = workspace_with(folder, root(merge="{kind: Append}"), derivative())
    other = workspace_with(folder.parent / "other", root("copied", merge="{kind: Append}"))
    for day in (1, 2):
        feed(workspace, "root", f"{day} a", f"{day + 1} b", day=day)
        feed(other, "copied", f"{day} x", day=day)
        if day == 1:
            assert [
                one.error for one in workspace.pull([str(other.storage.get("copied").folder)], as_name="copied")
            ] == [None]
            assert [one.error for one in workspace.pull(["derived"])] == [None]
    return folder


@pytest.mark.parametrize("what", WORKS)
def test_while_a_write_is_stuck_the_last_commit_is_there_and_no_other_writer_gets_in(
    what: str, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "MAX_PARALLEL", 1)
    name, work = WORKS[what]
    folder = shutil.copytree(prepared, tmp_path / "workspace")
    looks = 0
    before = {known: rows(Workspace.open(folder), known) for known in ("root", "derived", "copied")}
    heads = {known: Workspace.open(folder).datasets.state(known).head for known in before}
    flush, is_looking = os.fsync, False

    def slow(file: int) -> None:
        """As long as it takes, others look and try."""
        nonlocal looks, is_looking
        if not is_looking:
            is_looking = True
            try:
                looks += 1
                others(Workspace.open(folder))
            finally:
                is_looking = False
        flush(file)

    def others(workspace: Workspace) -> None:
        for known, content in before.items():
            if workspace.datasets.state(known).head == heads[known]:
                assert rows(workspace, known) == content
            else:
                assert known == name, "it has been committed"
        assert [one.findings for one in workspace.verify(all=True, integrity_only=True)] == [()] * len(before)
        if name:
            with pytest.raises(DatasetLocked), workspace.storage.get(name).writing():
                raise AssertionError("two writers at once")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", slow)
        work(Workspace.open(folder))
    assert looks > 3
    found = [finding for one in Workspace.open(folder).verify(all=True) for finding in one.findings]
    assert {finding.check for finding in found} <= {"lineage"}, "a warning of an input that was compacted"
    if name:
        assert Workspace.open(folder).datasets.state(name).head != heads[name]
