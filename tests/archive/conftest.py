"""An archive in a workspace of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfpy.archive.local import LocalArchive, init_archive
from odfpy.coordinator.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.init(tmp_path / "workspace")


@pytest.fixture
def archive(workspace: Workspace) -> LocalArchive:
    return init_archive(workspace, "logs")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "nginx.log"
    file.write_bytes(b"GET / 200\n")
    return file
