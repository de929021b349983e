"""Other users of the machine, and whoever is shown a diagnosis, learn no secrets."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chains.workspaces import feed, root, workspace_with

from odfpy.coordinator.diagnosis import diagnose
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import MalformedManifest

NODES = "1=https://eth.example.com/v3/s3cret,5=https://s3cret.example.com/"


@pytest.fixture(autouse=True)
def careless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A user whose files everybody may read and write, unless something is done about it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    before = os.umask(0)
    yield
    os.umask(before)


def others_get_to(folder: Path) -> set[str]:
    """What others can read below a folder, as the modes say."""
    if not stat.S_IMODE(folder.stat().st_mode) & 0o011:
        return set()
    found = set()
    for path in folder.iterdir():
        if path.is_dir():
            found |= others_get_to(path)
        elif stat.S_IMODE(path.stat().st_mode) & 0o044:
            found.add(str(path))
    return found


def test_nothing_of_a_workspace_is_for_others(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path / "workspace", root())
    feed(workspace, "root", "1 a")
    workspace.config.set("ethereum.nodes", NODES)
    workspace.config.set("ethereum.nodes", NODES, for_user=True)
    assert stat.S_IMODE(workspace.odf.stat().st_mode) == 0o700
    assert others_get_to(workspace.odf) == set()
    assert [path for path in others_get_to(tmp_path / "config") if "config.yaml" in path or "key" in path] == []


def test_settings_are_closed_when_they_are_written_again(tmp_path: Path) -> None:
    workspace = Workspace.init(tmp_path / "workspace")
    file = workspace.odf / "config.yaml"
    file.chmod(0o644)
    workspace.config.set("ethereum.nodes", NODES)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_diagnosis_shows_no_keys_and_says_who_gets_in(tmp_path: Path) -> None:
    workspace = Workspace.init(tmp_path / "workspace")
    workspace.config.set("ethereum.nodes", NODES)
    workspace.config.set("fetch.retries", "5")
    found = {one.name: one for one in diagnose(workspace.root, engines=False)}
    assert "s3cret" not in "".join(f"{one.detail}{one.hint}" for one in found.values())
    assert found["settings"].detail == "fetch.retries=5, ethereum.nodes=(set)"
    assert found["privacy"].detail == "other users of this machine cannot read it"
    workspace.odf.chmod(0o755)
    found = {one.name: one for one in diagnose(workspace.root, engines=False)}
    assert "chmod 700" in found["privacy"].detail


def test_a_damaged_setting_is_told_without_its_value(tmp_path: Path) -> None:
    workspace = Workspace.init(tmp_path / "workspace")
    (workspace.odf / "config.yaml").write_text("ethereum: {nodes: https://eth.example.com/v3/s3cret}\n")
    with pytest.raises(MalformedManifest) as caught:
        Workspace.open(workspace.root).config.get("ethereum.nodes")
    assert "ethereum.nodes" in caught.value.message
    assert "s3cret" not in caught.value.message
