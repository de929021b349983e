"""Clients of others, unmodified, in an environment of their own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from serving.sharing.conftest import STATES, Shared
from serving.sharing.test_delta_sharing import LOG

from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp

_PROGRAM = """
import json, os, sys
import delta_sharing
asked = json.loads(sys.stdin.read())
url = asked["profile"] + "#" + asked.get("share", "fx") + ".main." + asked.get("table", "rates")
if asked["what"] == "list":
    found = [[t.share, t.schema, t.name] for t in delta_sharing.SharingClient(asked["profile"]).list_all_tables()]
elif asked["what"] == "version":
    found = delta_sharing.get_table_version(url, **asked.get("options", {}))
elif asked["what"] == "metadata":
    found = json.loads(delta_sharing.get_table_metadata(url).schema_string)["fields"][0]["name"]
else:
    load = delta_sharing.load_as_pandas if asked["what"] == "rows" else delta_sharing.load_table_changes_as_pandas
    found = json.loads(load(url, **asked.get("options", {})).to_json(orient="records"))
print("RESULT" + json.dumps(found), flush=True)
os._exit(0)  # at the end of the process, a thread of its native library calls std::terminate now and then
"""


def client(python: Path, **asked: Any) -> Any:
    """Ask with the client of PyPI."""
    done = subprocess.run(
        [python, "-c", _PROGRAM], input=json.dumps(asked, default=str), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.partition("RESULT")[2])


def test_pandas_lists_and_looks(shared: Shared, clients: Path, tmp_path: Path) -> None:
    profile = shared.profile("all", tmp_path)
    assert client(clients, what="list", profile=profile) == [["fx", "main", "log"], ["fx", "main", "rates"]]
    assert client(clients, what="version", profile=profile) == 3
    assert client(clients, what="metadata", profile=profile) == "offset"


@pytest.mark.parametrize("use_delta_format", [False, True])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_pandas_reads_versions(
    shared: Shared, clients: Path, tmp_path: Path, number: int, use_delta_format: bool
) -> None:
    profile = shared.profile("all", tmp_path)
    options = {"version": number, "use_delta_format": use_delta_format}
    rows = client(clients, what="rows", profile=profile, options=options)
    assert {row["cur"]: (row["rate"], row["n"]) for row in rows} == STATES[number]


@pytest.mark.parametrize("use_delta_format", [False, True])
def test_pandas_reads_changes(shared: Shared, clients: Path, tmp_path: Path, use_delta_format: bool) -> None:
    profile = shared.profile("all", tmp_path)
    options = {"starting_version": 1, "use_delta_format": use_delta_format}
    rows = client(clients, what="changes", profile=profile, options=options)
    found = [(row["_commit_version"], row["cur"], row["_change_type"]) for row in rows]
    assert sorted(found) == [
        (1, "EUR", "insert"), (1, "USD", "insert"),
        (2, "EUR", "update_postimage"), (2, "EUR", "update_preimage"), (2, "GBP", "insert"),
        (3, "USD", "update_postimage"), (3, "USD", "update_preimage"),
    ]  # fmt: skip


@pytest.mark.parametrize("use_delta_format", [False, True])
def test_pandas_reads_as_it_was_at_a_time(
    shared: Shared, clients: Path, tmp_path: Path, use_delta_format: bool
) -> None:
    profile = shared.profile("all", tmp_path)
    added = [line["add"] for line in shared.lines(f"{LOG}/query", body={"startingVersion": 1})[2:]]
    times = {action["version"]: str(Timestamp(action["timestamp"] * 1_000_000)) for action in added}
    options = {"timestamp": times[2], "use_delta_format": use_delta_format}
    rows = client(clients, what="rows", profile=profile, options=options)
    assert {row["cur"]: (row["rate"], row["n"]) for row in rows} == STATES[2]
    assert client(clients, what="version", profile=profile, options={"starting_timestamp": times[2]}) == 2
    options = {"starting_timestamp": times[2], "ending_timestamp": times[2], "use_delta_format": use_delta_format}
    rows = client(clients, what="changes", profile=profile, options=options)
    assert {(row["_commit_version"], row["_change_type"]) for row in rows} == {
        (2, "update_preimage"), (2, "update_postimage"), (2, "insert"),
    }  # fmt: skip
    options = {"starting_version": 2, "ending_version": 2, "use_delta_format": use_delta_format}
    assert client(clients, what="changes", profile=profile, options=options) == rows


@pytest.mark.parametrize("use_delta_format", [False, True])
@pytest.mark.parametrize("limit", [0, 1, 2, 100])
def test_pandas_reads_some_rows(
    shared: Shared, clients: Path, tmp_path: Path, limit: int, use_delta_format: bool
) -> None:
    options = {"limit": limit, "use_delta_format": use_delta_format}
    rows = client(clients, what="rows", profile=shared.profile("all", tmp_path), options=options)
    assert len(rows) == min(limit, 3)
    assert all(STATES[3][row["cur"]] == (row["rate"], row["n"]) for row in rows)


@pytest.mark.parametrize("use_delta_format", [False, True])
def test_pandas_sends_conditions(shared: Shared, clients: Path, tmp_path: Path, use_delta_format: bool) -> None:
    """The server leaves out files by them, and the client no rows."""
    children = [
        {"op": "column", "name": "n", "valueType": "long"},
        {"op": "literal", "value": "4", "valueType": "long"},
    ]
    hint = json.dumps({"op": "greaterThan", "children": children})
    options = {"jsonPredicateHints": hint, "use_delta_format": use_delta_format}
    rows = client(clients, what="rows", profile=shared.profile("all", tmp_path), options=options, table="log")
    assert sorted(row["n"] for row in rows) == [2, 5]  # what is taken back, and what it becomes


def test_pandas_goes_on_while_its_token_is_changed(shared: Shared, clients: Path, tmp_path: Path) -> None:
    shared.recipient("rotated")
    before = shared.profile("rotated", tmp_path)
    (tmp_path / "new").mkdir()
    shared.tokens["rotated"], token = shared.sharing.principals.new_token("rotated")
    shared.sharing.principals.end_older("rotated", token.id, Duration(3600))
    after = shared.profile("rotated", tmp_path / "new")
    assert before.read_bytes() != after.read_bytes()
    for profile in (before, after):
        assert len(client(clients, what="rows", profile=profile)) == 3


def test_pandas_sees_what_is_granted(shared: Shared, clients: Path, tmp_path: Path) -> None:
    rows = client(clients, what="rows", profile=shared.profile("eur", tmp_path))
    assert [(row["cur"], row["n"]) for row in rows] == [("EUR", 3)]
    rows = client(clients, what="rows", profile=shared.profile("columns", tmp_path), options={"use_delta_format": True})
    assert sorted(tuple(row.items()) for row in rows) == [
        (("cur", "EUR"), ("n", 3)), (("cur", "GBP"), ("n", 4)), (("cur", "USD"), ("n", 5)),
    ]  # fmt: skip


def test_pandas_is_told_of_a_token_that_has_ended(shared: Shared, clients: Path, tmp_path: Path) -> None:
    shared.recipient("gone")
    profile = shared.profile("gone", tmp_path)
    shared.sharing.principals.revoke("gone")
    done = subprocess.run(
        [clients, "-c", _PROGRAM], input=json.dumps({"what": "version", "profile": str(profile)}),
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert "401" in done.stderr
    assert "UNAUTHENTICATED" in done.stderr
