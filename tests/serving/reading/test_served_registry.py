"""The datasets that a server has: of several workspaces, the first one that has a name wins, at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.chains.workspaces import root, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.storage.storage import Storage
from odfpy.coordinator.workspace import Workspace
from odfpy.dataset.names import DatasetAlias
from odfpy.serving.callers.registry import ServedRegistry

X = DatasetAlias.parse("x")


def settled(workspace: Workspace) -> None:
    """Let the last change of names be an hour ago: what has just changed is looked at again in any case."""
    folder = workspace.storage.odf / "datasets"
    if folder.exists():
        hour_ago = folder.stat().st_mtime - 3600
        os.utime(folder, (hour_ago, hour_ago))


def place(registry: ServedRegistry) -> str:
    found = registry.find(X)
    assert found is not None
    return registry.storage_of(found).root.name


@pytest.mark.parametrize("is_settled", [True, False])
def test_a_name_in_an_earlier_workspace_wins_once_it_is_there(tmp_path: Path, *, is_settled: bool) -> None:
    first, second = Workspace.init(tmp_path / "first"), workspace_with(tmp_path / "second", root("x"))
    registry = ServedRegistry([first.storage, second.storage])

    def found() -> str:
        for one in (first, second) if is_settled else ():
            settled(one)
        return place(registry)

    assert found() == "second"
    first.add(load_snapshots(root("x"), "manifest"))
    assert place(registry) == "first"
    first.datasets.rename("x", "y")
    assert found() == "second"
    first.datasets.rename("y", "x")
    assert place(registry) == "first"
    assert found() == "first"
    first.datasets.delete("x")
    assert place(registry) == "second"


def test_names_that_do_not_change_are_not_looked_through_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = workspace_with(tmp_path / "first", root("y")), workspace_with(tmp_path / "second", root("x"))
    registry = ServedRegistry([first.storage, second.storage])
    settled(first)
    assert place(registry) == "second"
    monkeypatch.setattr(Storage, "datasets", lambda _: pytest.fail("looked through"))
    assert place(registry) == "second"
