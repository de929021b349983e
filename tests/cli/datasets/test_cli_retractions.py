"""Snapshots that would end most rows, on the screen and for programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cli.conftest import Odf

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: com.example.state
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: Url, url: "file:state.csv"}
      read: {kind: Csv, header: true, schema: {fields: [{name: id, type: Int64}]}}
      merge: {kind: Snapshot, primaryKey: [id]}
"""


@pytest.fixture
def state(odf: Odf, workspace: Path) -> Path:
    """The file of a polled state, of which twelve rows have been taken in."""
    (workspace / "state.yaml").write_text(MANIFEST.lstrip())
    file = workspace / "state.csv"
    file.write_text("id\n" + "".join(f"{number}\n" for number in range(12)))
    assert odf("add", "state.yaml").code == odf("pull", "com.example.state").code == 0
    return file


def test_what_would_go_is_said_with_numbers_and_keys(odf: Odf, state: Path) -> None:
    state.write_text("id\n5\n")
    told = odf("pull", "com.example.state")
    assert told.code == 1
    assert "would retract 11 of 12 rows of the current state, such as id = 0; id = 1; id = 2" in told.says
    assert "(E407)" in told.says
    (tree,) = odf("pull", "com.example.state", "-o", "json").json
    assert (tree["outcome"], tree["code"], tree["records"]) == ("failed", "E407", 0)


def test_what_is_allowed_is_warned_of(odf: Odf, state: Path) -> None:
    state.write_text("id\n5\n")
    (tree,) = odf("pull", "com.example.state", "--allow-retractions", "-o", "json").json
    assert tree["rows"]["retracted"] == 11
    (warning,) = tree["warnings"]
    assert (warning["kind"], warning["count"], len(warning["examples"])) == ("retractions", 11, 10)
    state.write_text("id\n")
    told = odf("pull", "com.example.state", "-v")
    assert "  warning: retracted 1 of 1 row of the current state, such as id = 5: the new state has no rows" in told.err
    assert "    id = 5\n" in told.err


def test_a_dry_run_sees_a_file_without_a_header(odf: Odf, state: Path) -> None:
    state.write_text("")
    told = odf("pull", "com.example.state", "--dry-run")
    assert (told.code, told.out) == (1, "com.example.state: would fail\n")
    assert "is empty, without even a header (E408)" in told.says


def test_a_dry_run_sees_a_file_without_anything_in_it(odf: Odf, workspace: Path) -> None:
    (workspace / "state.yaml").write_text(MANIFEST.lstrip().replace("Csv, header: true", "NdJson"))
    file = workspace / "state.csv"
    file.write_text("".join(f'{{"id":{number}}}\n' for number in range(12)))
    assert odf("add", "state.yaml").code == odf("pull", "com.example.state").code == 0
    file.write_text("")
    assert "  warning: file:state.csv is empty: as a state, this retracts all current rows\n" in (
        odf("pull", "com.example.state", "--dry-run").out
    )
    (tree,) = odf("pull", "com.example.state", "--dry-run", "-o", "json").json
    assert tree["warnings"][0]["examples"] == ["file:state.csv"]


def test_standard_input_that_ends_at_once_is_no_state(odf: Odf, workspace: Path) -> None:
    rows = "".join(f'{{"event_time":"2024-01-01","id":{number},"name":"a"}}\n' for number in range(20, 40))
    assert odf("ingest", "com.example.cities", "--stdin", stdin=rows.encode()).code == 0
    told = odf("ingest", "com.example.cities", "--stdin")
    assert told.code == 1
    assert "standard input: The new state has no rows, and would retract all 20 rows" in told.says
    assert odf("ingest", "com.example.cities", "--stdin", "--allow-retractions").code == 0


def test_the_share_is_a_setting_of_the_dataset(odf: Odf, state: Path) -> None:
    assert odf("config", "set", "--dataset", "com.example.state", "retractions.share", "100%").code == 0
    state.write_text("id\n")
    assert odf("pull", "com.example.state").code == 0
