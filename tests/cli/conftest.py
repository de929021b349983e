"""The command line in this process, on copies of a workspace that is made once."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.fixtures import KAMU

from odfpy.cli.app import run

LEDGER = "{kind: Ledger, primaryKey: [id]}"
UPSERT = "{kind: UpsertStream, primaryKey: [id]}"


@dataclass(frozen=True)
class Outcome:
    """What a command gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def says(self) -> str:
        """The one error message, of a command that gives no other; a hint may follow."""
        first, *rest = self.err.splitlines()
        assert first.startswith("error: "), self.err
        quoted = [line for line in rest if not line.startswith("hint: ")]
        assert all(line.startswith("    ") for line in quoted), self.err
        assert len(rest) - len(quoted) <= 1, self.err
        return self.err


Odf = Callable[..., Outcome]


@pytest.fixture
def odf(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Odf:
    """Runs a command; `stdin` is what it reads."""

    def call(*arguments: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfd.readouterr()
        code = run([str(argument) for argument in arguments])
        printed = capfd.readouterr()
        return Outcome(code, printed.out, printed.err)

    return call


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A user without settings, in a terminal without wishes."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    for name in ("NO_COLOR", "COLUMNS", "_ODF_COMPLETE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with roots, a derivative, a copy from elsewhere, and one without data."""
    folder = tmp_path_factory.mktemp("prepared") / "workspace"
    workspace = workspace_with(
        folder,
        root("com.example.rates", LEDGER),
        root("com.example.cities"),
        root("com.example.stock", UPSERT),
        root("com.example.empty"),
        derivative("com.example.upper", "com.example.rates"),
    )
    feed(workspace, "com.example.rates", "1 a", "2 b", "3 c")
    feed(workspace, "com.example.cities", "1 a", "2 b")
    feed(workspace, "com.example.cities", "2 B", "3 c", day=2)
    feed(workspace, "com.example.stock", "1 a", "1 b", "2 c")
    assert [result.error for result in workspace.pull(["com.example.upper", str(KAMU / "trades")])] == [None, None]
    return folder


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the workspace, which is the current folder."""
    folder = tmp_path / "workspace"
    shutil.copytree(prepared, folder)
    monkeypatch.chdir(folder)
    return folder


def dataset_folder(workspace: Path, name: str) -> Path:
    """Where a dataset of a workspace is."""
    (found,) = (
        path.parents[1] for path in workspace.glob(".odf/datasets/*/info/alias") if path.read_text() == f"{name}\n"
    )
    return found
