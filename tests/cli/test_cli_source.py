"""`odf inspect source`: where data comes from, how far that is taken in, and what came of it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.workspaces import FOLDER, feed

from odfpy.codec.yaml import load_documents
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from cli.conftest import Odf


@pytest.fixture
def folder(workspace: Path, odf: Odf) -> Path:
    """The folder of a polling source, of which two files have been taken in."""
    (workspace / "folder.yaml").write_text(FOLDER.lstrip())
    files = workspace / "in"
    files.mkdir()
    (files / "a.csv").write_text("id\n1\n2\n")
    (files / "b.csv").write_text("id\n3\n")
    assert odf("add", "folder.yaml").code == odf("pull", "com.example.folder").code == 0
    return files


def test_a_polling_source_with_its_state_and_what_came_of_each_file(odf: Odf, folder: Path) -> None:
    shown = odf("inspect", "source", "com.example.folder", "-o", "json").json
    assert shown["name"] == "com.example.folder"
    assert shown["pollingSource"]["fetch"] == {"kind": "FilesGlob", "path": "in/*.csv", "order": "ByName"}
    assert shown["pushSources"] == []
    assert shown["states"] == [{"sourceName": "default", "kind": "odf/etag", "value": "b.csv"}]
    assert [(commit["records"], commit["state"]) for commit in shown["commits"]] == [(1, "b.csv"), (2, "a.csv")]
    newest = odf("log", "com.example.folder", "-n", "1", "-o", "json").json[0]
    assert shown["commits"][0]["block"] == newest["blockHash"]
    assert shown["commits"][0]["systemTime"] == newest["content"]["systemTime"]


def test_for_people_it_is_the_yaml_of_the_source_and_a_table(odf: Odf, folder: Path) -> None:
    shown = odf("inspect", "source", "com.example.folder").out
    source, _, rest = shown.removeprefix("Pulled from\n").partition("\nState\n")
    assert load_documents(source, "shown")[0].tree["read"]["kind"] == "Csv"
    _, _, table = rest.partition("\nLast commits\n")
    assert [line.split()[1:3] for line in table.splitlines()] == [["Rows", "Taken"], ["1", "b.csv"], ["2", "a.csv"]]


def test_push_sources_and_a_chosen_number_of_commits(odf: Odf, workspace: Path) -> None:
    feed(Workspace.open(workspace), "com.example.rates", "8 x", "9 y", day=3)
    shown = odf("inspect", "source", "com.example.rates", "-n", "1", "-o", "json").json
    assert shown["pollingSource"] is None
    assert [item["sourceName"] for item in shown["pushSources"]] == ["default"]
    assert [commit["records"] for commit in shown["commits"]] == [2]
    assert shown["commits"][0]["watermark"] == "2024-01-03T00:00:00Z"


def test_commits_as_csv(odf: Odf, folder: Path) -> None:
    found = list(csv.DictReader(io.StringIO(odf("inspect", "source", "com.example.folder", "-o", "csv").out)))
    assert [row["records"] for row in found] == ["1", "2"]


def test_a_dataset_without_data(odf: Odf, workspace: Path) -> None:
    assert odf("inspect", "source", "com.example.empty").out.endswith("\nNo data yet.\n")


def test_a_copy_says_where_it_is_from(odf: Odf, workspace: Path) -> None:
    assert odf("inspect", "source", "com.example.rates", "-o", "json").json["copiedFrom"] is None
    origin = odf("inspect", "source", "trades", "-o", "json").json["copiedFrom"]
    assert origin.endswith("/trades")
    assert odf("inspect", "source", "trades").out.startswith(f"A copy, pulled from {origin}; ")


def test_derivatives_have_inputs_instead(odf: Odf, workspace: Path) -> None:
    refused = odf("inspect", "source", "com.example.upper")
    assert refused.code == 2
    assert "odf inspect lineage com.example.upper" in refused.says
    with pytest.raises(UsageError):
        Workspace.open(workspace).source("com.example.upper")
