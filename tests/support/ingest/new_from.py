"""Calls of `odf new --from`, and the check that every one of them has to pass."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.conftest import Odf


def first_rows(odf: Odf, name: str) -> list[dict[str, object]]:
    """Return the first ten rows of a dataset, without the time of their commit."""
    count = odf("list", name, "-o", "json").json[0]["records"]
    rows = odf("tail", name, "-n", "10", "--skip", str(max(0, count - 10)), "-o", "json").json
    gone = "odf_system_time" if rows and "odf_system_time" in rows[0] else "system_time"
    return [{key: value for key, value in row.items() if key != gone} for row in rows]


@pytest.fixture
def folder(odf: Odf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace, where commands are called."""
    monkeypatch.chdir(tmp_path)
    assert odf("init").code == 0
    return tmp_path


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def comes_as_shown(odf: Odf, place: str) -> dict[str, object]:
    """Check that the manifest for a place works, and gives the previewed rows; return the findings."""
    found = odf("new", "x", "--from", place, "-o", "json")
    assert found.code == 0, found.err
    added = odf("add", "x.yaml")
    assert added.code == 0, added.err + found.json["manifest"]
    pulled = odf("pull", "x")
    assert pulled.code == 0, pulled.err + found.json["manifest"]
    assert first_rows(odf, "x") == found.json["firstRows"]
    result: dict[str, object] = found.json
    return result
