"""`odf pull --dry-run` on the screen and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.chains.workspaces import FOLDER

if TYPE_CHECKING:
    from cli.conftest import Odf


@pytest.fixture
def folder(odf: Odf, workspace: Path) -> Path:
    (workspace / "folder.yaml").write_text(FOLDER.lstrip())
    (workspace / "in").mkdir()
    assert odf("add", "folder.yaml").code == 0
    return workspace / "in"


def test_what_would_be_fetched(odf: Odf, folder: Path) -> None:
    for number in range(12):
        (folder / f"{number:02}.csv").write_text("id\n1\n")
    shown = odf("pull", "com.example.folder", "com.example.upper", "--dry-run")
    assert (shown.code, shown.err) == (0, "")
    lines = shown.out.splitlines()
    assert lines[:2] == ["com.example.folder: would be updated from 12 inputs, 60 B", "  00.csv  5 B"]
    assert lines[-2:] == ["  and 2 more; -v shows all", "com.example.upper: up to date"]
    assert "  11.csv  5 B\n" in odf("pull", "com.example.folder", "--dry-run", "-v").out
    assert odf("log", "com.example.folder", "-o", "json").json[0]["content"]["event"]["kind"] == "SetPollingSource"


def test_what_would_fail_is_an_error(odf: Odf, folder: Path) -> None:
    told = odf("pull", "com.example.folder", "--dry-run")
    assert told.code == 1
    assert told.out == "com.example.folder: would fail\n"
    assert "No file matches" in told.says
    assert odf("pull", "com.example.folder").code == 1


@pytest.mark.parametrize("form", ["json", "ndjson"])
def test_for_programs(form: str, odf: Odf, folder: Path) -> None:
    (folder / "a.csv").write_text("id\n1\n")
    told = odf("pull", "com.example.folder", "--dry-run", "-o", form)
    assert told.code == 0
    plan = told.json[0] if form == "json" else told.json
    assert plan["expectation"] == "new"
    assert plan["inputs"] == [{"name": "a.csv", "bytes": 5, "records": None, "keptBytes": 0}]
    assert plan["error"] is None


def test_a_watermark_is_not_tried(odf: Odf, workspace: Path) -> None:
    assert odf("pull", "com.example.rates", "--set-watermark", "2030-01-01", "--dry-run").code == 2
