"""Clients of others, unmodified, in an environment of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from serving.sharing.conftest import STATES, Shared
from serving.sharing.test_delta_sharing import LOG
from support.processes.pandas_client import PandasClient

from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp


def test_pandas_lists_and_looks(shared: Shared, pandas: PandasClient, tmp_path: Path) -> None:
    profile = shared.profile("all", tmp_path)
    assert pandas.ask("list", profile=profile) == [["fx", "main", "log"], ["fx", "main", "rates"]]
    assert pandas.ask("version", profile=profile) == 3
    assert pandas.ask("metadata", profile=profile) == "offset"


@pytest.mark.parametrize("use_delta_format", [False, True])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_pandas_reads_versions(
    shared: Shared, pandas: PandasClient, tmp_path: Path, number: int, use_delta_format: bool
) -> None:
    profile = shared.profile("all", tmp_path)
    options = {"version": number, "use_delta_format": use_delta_format}
    rows = pandas.ask("rows", profile=profile, options=options)
    assert {row["cur"]: (row["rate"], row["n"]) for row in rows} == STATES[number]


@pytest.mark.parametrize("use_delta_format", [False, True])
def test_pandas_reads_changes(shared: Shared, pandas: PandasClient, tmp_path: Path, use_delta_format: bool) -> None:
    profile = shared.profile("all", tmp_path)
    options = {"starting_version": 1, "use_delta_format": use_delta_format}
    rows = pandas.ask("changes", profile=profile, options=options)
    found = [(row["_commit_version"], row["cur"], row["_change_type"]) for row in rows]
    assert sorted(found) == [
        (1, "EUR", "insert"), (1, "USD", "insert"),
        (2, "EUR", "update_postimage"), (2, "EUR", "update_preimage"), (2, "GBP", "insert"),
        (3, "USD", "update_postimage"), (3, "USD", "update_preimage"),
    ]  # fmt: skip


@pytest.mark.parametrize("use_delta_format", [False, True])
def test_pandas_reads_as_it_was_at_a_time(
    shared: Shared, pandas: PandasClient, tmp_path: Path, use_delta_format: bool
) -> None:
    profile = shared.profile("all", tmp_path)
    added = [line["add"] for line in shared.lines(f"{LOG}/query", body={"startingVersion": 1})[2:]]
    times = {action["version"]: str(Timestamp(action["timestamp"] * 1_000_000)) for action in added}
    options = {"timestamp": times[2], "use_delta_format": use_delta_format}
    rows = pandas.ask("rows", profile=profile, options=options)
    assert {row["cur"]: (row["rate"], row["n"]) for row in rows} == STATES[2]
    assert pandas.ask("version", profile=profile, options={"starting_timestamp": times[2]}) == 2
    options = {"starting_timestamp": times[2], "ending_timestamp": times[2], "use_delta_format": use_delta_format}
    rows = pandas.ask("changes", profile=profile, options=options)
    assert {(row["_commit_version"], row["_change_type"]) for row in rows} == {
        (2, "update_preimage"), (2, "update_postimage"), (2, "insert"),
    }  # fmt: skip
    options = {"starting_version": 2, "ending_version": 2, "use_delta_format": use_delta_format}
    assert pandas.ask("changes", profile=profile, options=options) == rows


@pytest.mark.parametrize("use_delta_format", [False, True])
@pytest.mark.parametrize("limit", [0, 1, 2, 100])
def test_pandas_reads_some_rows(
    shared: Shared, pandas: PandasClient, tmp_path: Path, limit: int, use_delta_format: bool
) -> None:
    options = {"limit": limit, "use_delta_format": use_delta_format}
    rows = pandas.ask("rows", profile=shared.profile("all", tmp_path), options=options)
    assert len(rows) == min(limit, 3)
    assert all(STATES[3][row["cur"]] == (row["rate"], row["n"]) for row in rows)


@pytest.mark.parametrize("use_delta_format", [False, True])
def test_pandas_sends_conditions(shared: Shared, pandas: PandasClient, tmp_path: Path, use_delta_format: bool) -> None:
    """The server leaves out files by them, and the client no rows."""
    children = [
        {"op": "column", "name": "n", "valueType": "long"},
        {"op": "literal", "value": "4", "valueType": "long"},
    ]
    hint = json.dumps({"op": "greaterThan", "children": children})
    options = {"jsonPredicateHints": hint, "use_delta_format": use_delta_format}
    rows = pandas.ask("rows", profile=shared.profile("all", tmp_path), options=options, table="log")
    assert sorted(row["n"] for row in rows) == [2, 5]  # what is taken back, and what it becomes


def test_pandas_goes_on_while_its_token_is_changed(shared: Shared, pandas: PandasClient, tmp_path: Path) -> None:
    shared.recipient("rotated")
    before = shared.profile("rotated", tmp_path)
    (tmp_path / "new").mkdir()
    shared.tokens["rotated"], token = shared.sharing.principals.new_token("rotated")
    shared.sharing.principals.end_older("rotated", token.id, Duration(3600))
    after = shared.profile("rotated", tmp_path / "new")
    assert before.read_bytes() != after.read_bytes()
    for profile in (before, after):
        assert len(pandas.ask("rows", profile=profile)) == 3


def test_pandas_sees_what_is_granted(shared: Shared, pandas: PandasClient, tmp_path: Path) -> None:
    rows = pandas.ask("rows", profile=shared.profile("eur", tmp_path))
    assert [(row["cur"], row["n"]) for row in rows] == [("EUR", 3)]
    rows = pandas.ask("rows", profile=shared.profile("columns", tmp_path), options={"use_delta_format": True})
    assert sorted(tuple(row.items()) for row in rows) == [
        (("cur", "EUR"), ("n", 3)), (("cur", "GBP"), ("n", 4)), (("cur", "USD"), ("n", 5)),
    ]  # fmt: skip


def test_pandas_is_told_of_a_token_that_has_ended(shared: Shared, pandas: PandasClient, tmp_path: Path) -> None:
    shared.recipient("gone")
    profile = shared.profile("gone", tmp_path)
    shared.sharing.principals.revoke("gone")
    error = pandas.failure("version", profile=profile)
    assert "401" in error
    assert "UNAUTHENTICATED" in error
