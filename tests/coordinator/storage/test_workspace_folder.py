"""The folder of a workspace: scratch folders that others may not take away, and a workspace that is only read."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with

from odfpy.coordinator.storage.approvals import Approvals
from odfpy.coordinator.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    workspace = workspace_with(tmp_path / "workspace", root(), derivative())
    feed(workspace, "root", "1 a", "2 b")
    feed(workspace, "root", "3 c")
    assert [result.error for result in workspace.pull(["derived"])] == [None]
    return workspace


def ended() -> int:
    """The id of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_scratch_of_a_process_that_is_not_seen_here_stays(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of another container: the process is none of ours, but holds a lock."""
    storage = workspace.storage
    left = storage.scratches / f"{ended()}-{secrets.token_hex(4)}"
    left.mkdir(parents=True)
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", ended)
        held = storage.scratch()
        folder = held.__enter__()
    assert not left.exists(), "of a process that has ended, without a lock"
    assert storage.abandoned() == []
    with storage.scratch():
        assert folder.exists()
    held.__exit__(None, None, None)
    assert list(storage.scratches.iterdir()) == []


def test_scratch_goes_although_somebody_writes_to_it_for_a_moment_more(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an engine does whose job has been cancelled."""
    remove, seen = shutil.rmtree, []

    def removed_and_written(folder: Path, **options: bool) -> None:
        remove(folder, **options)
        seen.append(folder)
        if len(seen) < 3:
            folder.mkdir()

    monkeypatch.setattr(shutil, "rmtree", removed_and_written)
    with workspace.storage.scratch() as folder:
        pass
    assert seen == [folder] * 3
    assert not folder.exists()


def everything_in(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.rglob("*")}


def test_a_workspace_that_is_only_read_is_left_as_it_is(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.access
    below = str(workspace.root)
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).startswith(below) and real(path, mode))
    shutil.rmtree(workspace.root / ".odf" / "cache")
    before = everything_in(workspace.root)
    seen = Workspace.open(workspace.root)
    assert all(report.ok for report in seen.verify(all=True))
    assert seen.provenance("derived", 0).row.offset == 0
    with seen.compare("root", "3", "4") as comparison:
        assert len(list(comparison)) == 3
    assert seen.sql('select count(*) as n from "derived"', engine="datafusion").to_pylist() == [{"n": 3}]
    assert everything_in(workspace.root) == before
    assert seen.storage.scratches.is_relative_to(tmp_path / "cache")
    assert seen.storage.engine_run.is_relative_to(tmp_path / "cache")


def test_a_deletion_that_is_cut_off_leaves_no_approval(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset_id = workspace.datasets.handle("derived").id
    withdrawn: list[bool] = []

    def withdraw(_: Approvals, of: object) -> bool:
        withdrawn.append(of == dataset_id and workspace.storage.dataset_folder(dataset_id).is_dir())
        return True

    monkeypatch.setattr(Approvals, "withdraw", withdraw)
    workspace.datasets.delete(["derived"])
    assert withdrawn == [True], "while the dataset is still there"
