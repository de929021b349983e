"""An archive in a workspace of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from odfpy.archive.local import LocalArchive, init_archive
from odfpy.coordinator.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.init(tmp_path / "workspace")


@pytest.fixture(scope="session")
def empty_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a workspace with an empty archive."""
    workspace = Workspace.init(tmp_path_factory.mktemp("empty") / "workspace")
    init_archive(workspace, "logs")
    return workspace.root


@pytest.fixture
def archive(workspace: Workspace, empty_archive: Path) -> LocalArchive:
    """A copy of it: making one takes longer than most tests."""
    shutil.copytree(empty_archive, workspace.root, dirs_exist_ok=True)
    return LocalArchive(workspace, workspace.storage.get("logs"))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "nginx.log"
    file.write_bytes(b"GET / 200\n")
    return file
