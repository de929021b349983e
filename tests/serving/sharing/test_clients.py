"""Clients of others, unmodified, in an environment of their own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from serving.sharing.conftest import STATES, Shared

_PROGRAM = """
import json, sys
import delta_sharing
asked = json.loads(sys.stdin.read())
url = asked["profile"] + "#" + asked.get("share", "fx") + ".main." + asked.get("table", "rates")
if asked["what"] == "list":
    found = [[t.share, t.schema, t.name] for t in delta_sharing.SharingClient(asked["profile"]).list_all_tables()]
elif asked["what"] == "version":
    found = delta_sharing.get_table_version(url)
elif asked["what"] == "metadata":
    found = json.loads(delta_sharing.get_table_metadata(url).schema_string)["fields"][0]["name"]
else:
    load = delta_sharing.load_as_pandas if asked["what"] == "rows" else delta_sharing.load_table_changes_as_pandas
    found = json.loads(load(url, **asked.get("options", {})).to_json(orient="records"))
print("RESULT" + json.dumps(found))
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
