"""The Delta Sharing protocol against a real server: every endpoint, for everybody."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from serving.sharing.conftest import STATES, Shared
from support.servers.serving import wait_until

from odfpy.coordinator.record_log import RecordLog
from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.sharing.model import SourceKind, TableSource
from odfpy.sharing.names import SharePath

RATES = "shares/fx/schemas/main/tables/rates"
LOG = "shares/fx/schemas/main/tables/log"
DELTA = {"delta_sharing_capabilities": "responseformat=delta;readerfeatures=deletionvectors"}


@pytest.fixture(autouse=True)
def _no_guesses(shared: Shared) -> None:
    """All tests come from one address, and some show wrong tokens."""
    shared.forget_guesses()


def table_of(shared: Shared, lines: list[dict[str, Any]], who: str = "all") -> pa.Table:
    """The rows of the files of an answer, fetched as a client does it."""
    schema = json.loads(lines[1]["metaData"]["schemaString"])
    names = [field["name"] for field in schema["fields"]]
    parts = []
    for line in lines[2:]:
        (action,) = line.values()
        answer = shared.ask(action["url"], None)
        assert answer.status == 200
        assert len(answer.body) == action["size"]
        parts.append(pq.read_table(io.BytesIO(answer.body)).select(names))
    return pa.concat_tables(parts) if parts else pa.table({name: [] for name in names})


def state_of(table: pa.Table) -> dict[str, Any]:
    return {row["cur"]: (row["rate"], row["n"]) for row in table.to_pylist()}


# --- Lists -----------------------------------------------------------------------------------------------------------


def test_lists_are_one_line_of_json(shared: Shared) -> None:
    answer = shared.ask("shares")
    assert answer.body.count(b"\n") == 0
    assert [one["name"] for one in answer.json["items"]] == ["fx"]
    assert set(shared.ask("shares/FX").json["share"]) == {"name", "id"}
    assert shared.ask("shares/fx/schemas").json == {"items": [{"name": "main", "share": "fx"}]}
    for path in ("shares/fx/schemas/MAIN/tables", "shares/Fx/all-tables"):
        items = shared.ask(path).json["items"]
        assert [(one["name"], one["schema"], one["share"]) for one in items] == [
            ("log", "main", "fx"),
            ("rates", "main", "fx"),
        ]


@pytest.mark.parametrize("path", ["shares/fx/all-tables", "shares/fx/schemas/main/tables"])
@pytest.mark.parametrize("size", [0, 1, 2, 500])
def test_pages(shared: Shared, path: str, size: int) -> None:
    first = shared.ask(f"{path}?maxResults={size}").json
    found, token = first["items"], first.get("nextPageToken")
    assert len(found) == min(size, 2)
    while token:
        page = shared.ask(f"{path}?maxResults={max(size, 1)}&pageToken={token}").json
        found, token = found + page["items"], page.get("nextPageToken")
    assert [one["name"] for one in found] == ["log", "rates"]


def test_a_page_token_is_good_for_its_list_only(shared: Shared) -> None:
    token = shared.ask("shares/fx/all-tables?maxResults=1").json["nextPageToken"]
    for path in ("shares", "shares/fx/schemas", "shares/fx/schemas/main/tables"):
        answer = shared.ask(f"{path}?pageToken={token}")
        assert (answer.status, answer.json["errorCode"]) == (400, "INVALID_PARAMETER_VALUE")
    for wrong in (token[:-2], token + "A", "x", quote("ž" * 300)):
        assert shared.ask(f"shares/fx/all-tables?pageToken={wrong}").status == 400


@pytest.mark.parametrize("size", ["-1", "501", "x", "99999999999999999999"])
def test_page_sizes_that_are_none(shared: Shared, size: str) -> None:
    answer = shared.ask(f"shares?maxResults={size}")
    assert (answer.status, answer.json["errorCode"]) == (400, "INVALID_PARAMETER_VALUE")


# --- Files -----------------------------------------------------------------------------------------------------------


def test_a_version_is_the_state_after_a_data_block(shared: Shared) -> None:
    for number, state in enumerate(STATES):
        lines = shared.lines(f"{RATES}/query", body={"version": number})
        assert state_of(table_of(shared, lines)) == state
    assert shared.ask(f"{RATES}/version").headers["delta-table-version"] == "3"
    assert state_of(table_of(shared, shared.lines(f"{RATES}/query", body=b""))) == STATES[3]


def test_a_time_is_a_version(shared: Shared) -> None:
    actions = [line["add"] for line in shared.lines(f"{LOG}/query", body={"startingVersion": 1})[2:]]
    for action in actions:
        time = str(Timestamp(action["timestamp"] * 1_000_000))
        answer = shared.ask(f"{LOG}/version?startingTimestamp={time}")
        assert answer.headers["delta-table-version"] == str(action["version"])
        asked = shared.ask(f"{LOG}/query", body={"timestamp": time})
        assert asked.headers["delta-table-version"] == str(action["version"])
    assert shared.ask(f"{LOG}/version?startingTimestamp=2020-01-01T00:00:00Z").headers["delta-table-version"] == "0"


def test_only_what_a_version_changes_is_made_again(shared: Shared) -> None:
    by_version = [
        {line["file"]["id"] for line in shared.lines(f"{RATES}/query", body={"version": number})[2:]}
        for number in range(4)
    ]
    assert [len(ids) for ids in by_version] == [0, 1, 2, 2]
    assert len(by_version[2] & by_version[3]) == 1
    feed = shared.lines(f"{RATES}/query", body={"startingVersion": 3})[2:]
    changed = {(kind, action["id"]) for line in feed for kind, action in line.items()}
    assert changed == {("remove", one) for one in by_version[2] - by_version[3]} | {
        ("add", one) for one in by_version[3] - by_version[2]
    }


def test_changes_say_what_has_become_of_each_row(shared: Shared) -> None:
    found = []
    for line in shared.lines(f"{RATES}/changes?startingVersion=0")[2:]:
        rows = pq.read_table(io.BytesIO(shared.ask(line["cdf"]["url"], None).body)).to_pylist()
        found += [(line["cdf"]["version"], row["cur"], row["n"], row["_change_type"]) for row in rows]
    assert found == [
        (1, "EUR", 1, "insert"), (1, "USD", 2, "insert"),
        (2, "EUR", 1, "update_preimage"), (2, "EUR", 3, "update_postimage"), (2, "GBP", 4, "insert"),
        (3, "USD", 2, "update_preimage"), (3, "USD", 5, "update_postimage"),
    ]  # fmt: skip
    log = shared.lines(f"{LOG}/changes?startingVersion=2&endingVersion=2")
    assert [next(iter(line)) for line in log] == ["protocol", "metaData", "add"]


def test_a_correction_of_a_hidden_column_is_no_change(shared: Shared) -> None:
    shared.recipient("name", columns=["cur"])
    found = []
    for line in shared.lines(f"{RATES}/changes?startingVersion=0", "name")[2:]:
        rows = pq.read_table(io.BytesIO(shared.ask(line["cdf"]["url"], None).body)).to_pylist()
        found += [(line["cdf"]["version"], row["cur"], row["_change_type"]) for row in rows]
    assert found == [(1, "EUR", "insert"), (1, "USD", "insert"), (2, "GBP", "insert")]


def test_hints_and_limits_leave_files_out(shared: Shared) -> None:
    def count(**body: Any) -> int:
        return len(shared.lines(f"{LOG}/query", body=body)) - 2

    column = {"op": "column", "name": "n", "valueType": "long"}
    over = {"op": "greaterThan", "children": [column, {"op": "literal", "value": "4", "valueType": "long"}]}
    assert count() == 3
    assert count(predicateHints=["n > 4"]) == 1
    assert count(predicateHints=["n > 4", "cur = 'EUR'"]) == 0
    assert count(jsonPredicateHints=json.dumps(over)) == 1
    assert count(predicateHints=["no idea"], jsonPredicateHints="{}") == 3
    assert count(limitHint=0) == 0
    assert count(limitHint=1) == 1
    assert count(limitHint=3) == 2
    assert count(limitHint=1, predicateHints=[]) == 1
    assert count(limitHint=1, predicateHints=["n > 0"]) == 3  # the rows that the hint leaves are not known
    assert count(limitHint=1, predicateHints=["cur LIKE 'G%'"]) == 3  # nor those of one that is not understood
    assert count(limitHint=1, jsonPredicateHints=json.dumps({"op": "in", "children": []})) == 3


def test_files_come_in_pages(shared: Shared) -> None:
    body: dict[str, Any] = {"maxFiles": 1, "version": 3}
    found = []
    while True:
        lines = shared.lines(f"{LOG}/query", body=body)
        found += [line["file"]["id"] for line in lines if "file" in line]
        end = lines[-1].get("endStreamAction")
        if end is None:
            break
        other = shared.ask(f"{LOG}/query", body={**body, "pageToken": end["nextPageToken"], "limitHint": 1})
        assert other.status == 400  # a token is good for its question
        assert shared.ask(f"{RATES}/query", body={**body, "pageToken": end["nextPageToken"]}).status == 400
        assert shared.ask(f"{LOG}/query", "columns", {**body, "pageToken": end["nextPageToken"]}).status == 400
        body["pageToken"] = end["nextPageToken"]
    assert len(found) == len(set(found)) == 3


def test_the_audit_log_counts_all_files_of_an_answer(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(RecordLog, "record", lambda _, access: seen.append(access))
    sent = [line for line in shared.lines(f"{LOG}/query", body={}, user_agent="counted") if "file" in line]
    wait_until(lambda: any(one["client"] == "counted" for one in seen))  # which comes when the answer is out
    assert [one["files"] for one in seen if one["client"] == "counted"] == [len(sent)] == [3]


@pytest.mark.parametrize(
    ("asked", "token", "path"),
    [
        ("shares/fx/schemas/main/tables/nosuch/version", "all", "fx.main.nosuch"),
        ("shares/nosuch/schemas/main/tables", "all", "nosuch.main"),
        (f"{RATES}/metadata?version=1&timestamp=x", "all", "fx.main.rates"),
        (f"{RATES}/version", None, "fx.main.rates"),
        (f"shares/{'x' * 2000}/schemas", "all", f"{'x' * 999}…"),
        ("shares", None, None),
    ],
)
def test_the_audit_log_has_what_was_asked_for_and_refused(
    asked: str, token: str | None, path: str | None, shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(RecordLog, "record", lambda _, access: seen.append(access))
    answer = shared.ask(asked, token, user_agent="refused")
    assert answer.status >= 400
    wait_until(lambda: any(one["client"] == "refused" for one in seen))
    told = [(one["path"], one["granted"], one["status"]) for one in seen if one["client"] == "refused"]
    assert told == [(path, False, answer.status)]


def test_urls_are_refreshed_for_the_same_version(shared: Shared) -> None:
    lines = shared.lines(f"{RATES}/query", body={"includeRefreshToken": True})
    token = lines[-1]["endStreamAction"]["refreshToken"]
    again = shared.lines(f"{RATES}/query", body={"refreshToken": token})
    assert [line["file"]["id"] for line in again[2:]] == [line["file"]["id"] for line in lines[2:-1]]
    assert shared.ask(f"{RATES}/query", body={"refreshToken": token, "version": 1}).status == 400
    assert shared.ask(f"{RATES}/query", body={"refreshToken": "x"}).status == 400


def test_nobody_is_told_of_the_end_unasked(shared: Shared) -> None:
    assert "endStreamAction" not in shared.lines(f"{RATES}/query", body={})[-1]
    more = {"delta_sharing_capabilities": "includeEndStreamAction=true"}
    answer = shared.ask(f"{RATES}/query", body={}, **more)
    assert "includeendstreamaction=true" in answer.headers["delta-sharing-capabilities"]
    assert set(json.loads(answer.body.splitlines()[-1])["endStreamAction"]) == {"minUrlExpirationTimestamp"}


def test_both_formats_say_the_same(shared: Shared) -> None:
    plain = shared.lines(f"{RATES}/query", body={})
    wrapped = shared.lines(f"{RATES}/query", body={}, delta_sharing_capabilities="responseformat=delta")
    assert wrapped[0]["protocol"]["deltaProtocol"]["minReaderVersion"] == 1
    assert wrapped[1]["metaData"]["deltaMetadata"]["schemaString"] == plain[1]["metaData"]["schemaString"]
    for one, other in zip(plain[2:], wrapped[2:], strict=True):
        add = other["file"]["deltaSingleAction"]["add"]
        assert (one["file"]["id"], one["file"]["size"]) == (other["file"]["id"], add["size"])
        assert json.loads(one["file"]["stats"]) == json.loads(add["stats"])
        assert re.search(r"\?X-Amz-Signature=[\w-]+$", add["path"])
    both = shared.ask(f"{RATES}/metadata", delta_sharing_capabilities="responseformat=DELTA,parquet")
    assert both.headers["delta-sharing-capabilities"] == "responseformat=parquet"
    assert shared.ask(f"{RATES}/metadata", delta_sharing_capabilities="responseformat=xml").status == 400


def test_the_scheme_of_ids_is_echoed(shared: Shared) -> None:
    assert shared.ask(f"{RATES}/query", body={}, fileidhash="Delta").headers["fileidhash"] == "delta"
    assert shared.ask(f"{RATES}/query", body={}, fileidhash="md5").status == 400


def test_statistics_are_those_of_the_rows(shared: Shared) -> None:
    for line in shared.lines(f"{RATES}/query", body={})[2:]:
        stats = json.loads(line["file"]["stats"])
        rows = pq.read_table(io.BytesIO(shared.ask(line["file"]["url"], None).body)).to_pylist()
        assert stats["numRecords"] == len(rows)
        assert stats["nullCount"]["rate"] == sum(row["rate"] is None for row in rows)
        for name in ("n", "cur"):
            assert (stats["minValues"][name], stats["maxValues"][name]) == (
                min(r[name] for r in rows),
                max(r[name] for r in rows),
            )
        assert "rate" not in stats["minValues"]


# --- Urls ------------------------------------------------------------------------------------------------------------


def test_a_file_has_ranges(shared: Shared) -> None:
    action = shared.lines(f"{LOG}/query", body={})[2]["file"]
    whole = shared.ask(action["url"], None).body
    part = shared.ask(action["url"], None, range="bytes=4-11")
    assert (part.status, part.body) == (206, whole[4:12])
    assert part.headers["content-range"] == f"bytes 4-11/{len(whole)}"
    assert shared.ask(action["url"], None, method="HEAD").headers["content-length"] == str(len(whole))
    assert shared.ask(action["url"], None, range=f"bytes={len(whole)}-").status == 416
    assert shared.ask(action["url"], None, range="bytes=-8").body == whole[-8:]
    tag = shared.ask(action["url"], None, method="HEAD").headers["etag"]
    for known, status in ((tag, 206), ('"another"', 200)):
        assert shared.ask(action["url"], None, range="bytes=4-11", if_range=known).status == status
    for several in ("bytes=0-1,4-5", "bytes=-", "rows=1-2"):  # what it does not know, it answers with all
        answer = shared.ask(action["url"], None, range=several)
        assert (answer.status, answer.body) == (200, whole)


def test_a_large_file_comes_whole_and_in_ranges(shared: Shared, tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    data = np.random.default_rng(1).integers(0, 2**62, 500_000)
    pq.write_table(pa.table({"n": data}), tmp_path / "large/a.parquet")
    path = SharePath("fx", "main", "large")
    shared.sharing.shares.add_table(path, TableSource(SourceKind.PARQUET, str(tmp_path / "large")))
    try:
        (line,) = shared.lines("shares/fx/schemas/main/tables/large/query", body={})[2:]
        bytes_of = (tmp_path / "large/a.parquet").read_bytes()
        assert shared.ask(line["file"]["url"], None).body == bytes_of
        assert shared.ask(line["file"]["url"], None, range="bytes=1000-3000000").body == bytes_of[1000:3_000_001]
    finally:
        shared.sharing.shares.remove(path)


def test_a_url_is_bound_to_its_file(shared: Shared) -> None:
    first, second, _ = (line["file"]["url"] for line in shared.lines(f"{LOG}/query", body={})[2:])
    mixed = first.split("?")[0] + "?" + second.split("?")[1]
    for url in (mixed, first[:-1], first + "A", first.split("?")[0]):
        assert shared.ask(url, None).status in (400, 403)
    assert not re.search(r"rates|workspace|/data/", first)


def test_a_url_ends_with_what_it_was_given_for(shared: Shared) -> None:
    grants = shared.sharing.grants
    for name, end in {
        "grant": lambda: grants.remove(grants.all("grant")[0].id),
        "other": lambda: grants.add("other", SharePath("fx"), columns=["n"]),
        "token": lambda: shared.sharing.principals.revoke("token"),
        "disabled": lambda: shared.sharing.principals.change("disabled", is_disabled=True),
        "removed": lambda: shared.sharing.principals.remove("removed"),
    }.items():
        shared.recipient(name, columns=["cur"])
        (url, *_) = (line["file"]["url"] for line in shared.lines(f"{RATES}/query", name, {})[2:])
        assert shared.ask(url, None).status == 200
        end()
        assert shared.ask(url, None).status == 403, name


def test_a_url_ends_with_the_table_or_its_source(shared: Shared) -> None:
    shares = shared.sharing.shares
    log, rates = (shares.table(SharePath("fx", "main", name)).source for name in ("log", "rates"))
    path = SharePath("fx", "main", "moved")

    def replaced() -> None:
        shares.remove(path)
        shares.add_table(path, rates)

    for end in (replaced, lambda: shares.change_table(path, rates, "")):
        shares.add_table(path, log)
        try:
            (url, *_) = (
                line["file"]["url"] for line in shared.lines("shares/fx/schemas/main/tables/moved/query", body={})[2:]
            )
            shares.change_table(path, log, "another comment")
            assert shared.ask(url, None).status == 200
            end()
            assert shared.ask(url, None).status == 403
        finally:
            shares.remove(path)


# --- Who sees what ---------------------------------------------------------------------------------------------------


def test_some_rows(shared: Shared) -> None:
    lines = shared.lines(f"{RATES}/query", "eur", {})
    assert state_of(table_of(shared, lines, "eur")) == {"EUR": (1.75, 3)}
    assert not {"offset", "op"} & set(table_of(shared, lines, "eur").column_names)  # gaps tell of others
    text = re.sub(r'"url": "[^"]*"', "", json.dumps(lines))  # in the random part of which any three letters may stand
    assert "USD" not in text
    assert "GBP" not in text
    for version in range(3):
        found = state_of(table_of(shared, shared.lines(f"{RATES}/query", "eur", {"version": version}), "eur"))
        assert found == {cur: value for cur, value in STATES[version].items() if cur == "EUR"}
    for more in (
        {"predicateHints": ["cur = 'USD'"]},
        {"limitHint": 100},
        {"predicateHints": ["cur <> 'EUR' OR 1 = 1"]},
    ):
        assert set(state_of(table_of(shared, shared.lines(f"{RATES}/query", "eur", more), "eur"))) <= {"EUR"}
    assert "x-odf-block-hash" not in shared.ask(f"{RATES}/query", "eur", {}).headers
    assert shared.ask(f"{RATES}/query", "all", {}).headers["x-odf-block-hash"].startswith("f1620")


@pytest.mark.parametrize("table", [RATES, LOG])
def test_versions_are_those_that_changed_a_row_that_shows(shared: Shared, table: str) -> None:
    if "usd" not in shared.tokens:
        shared.recipient("usd", rows="cur = 'USD'")
    numbers = {"all": 3, "eur": 2, "usd": 2}
    for who, last in numbers.items():
        assert shared.ask(f"{table}/version", who).headers["delta-table-version"] == str(last)
        assert shared.ask(f"{table}/query", who, {"version": last + 1}).status == 400
    times = {
        who: [
            (one["add"]["version"], one["add"]["timestamp"])
            for one in shared.lines(f"{LOG}/changes?startingVersion=1", who)[2:]
        ]
        for who in numbers
    }
    assert [number for number, _ in times["usd"]] == [1, 2]
    assert times["usd"] == [times["all"][0], (2, times["all"][2][1])]
    between = str(Timestamp(times["all"][1][1] * 1_000_000))
    answer = shared.ask(f"{table}/query", "usd", {"timestamp": between})
    assert answer.headers["delta-table-version"] == "1"
    assert state_of(table_of(shared, shared.lines(f"{RATES}/query", "usd", {"version": 2}), "usd")) == {
        "USD": (None, 5)
    }
    changes = shared.lines(f"{RATES}/changes?startingVersion=1", "usd")[2:]
    assert [one["cdf"]["version"] for one in changes] == [1, 2]


def test_some_columns(shared: Shared) -> None:
    lines = shared.lines(f"{RATES}/query", "columns", {})
    for line in lines[2:]:
        served = pq.read_table(io.BytesIO(shared.ask(line["file"]["url"], None).body))
        assert served.column_names == ["cur", "n"]
        assert set(json.loads(line["file"]["stats"])["minValues"]) == {"cur", "n"}
    assert "rate" not in json.dumps(lines).replace("rates", "")
    changes = shared.lines(f"{RATES}/changes?startingVersion=1", "columns")
    served = pq.read_table(io.BytesIO(shared.ask(changes[2]["cdf"]["url"], None).body))
    assert served.column_names == ["cur", "n", "_change_type"]


ENDPOINTS = [
    ("shares/{share}", None), ("shares/{share}/schemas", None), ("shares/{share}/all-tables", None),
    ("shares/{share}/schemas/main/tables", None), ("shares/{share}/schemas/main/tables/rates/version", None),
    ("shares/{share}/schemas/main/tables/rates/metadata", None), ("shares/{share}/schemas/main/tables/rates/query", {}),
    ("shares/{share}/schemas/main/tables/rates/changes?startingVersion=0", None),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body"), ENDPOINTS)
def test_what_is_hidden_is_as_what_is_not_there(shared: Shared, path: str, body: Any) -> None:
    for who in ("all", "eur", "nothing"):
        there, not_there = (shared.ask(path.format(share=share), who, body) for share in ("hidden", "nosuch"))
        assert (there.status, there.body) == (not_there.status, not_there.body)
        assert (there.status, there.json["errorCode"]) == (404, "RESOURCE_DOES_NOT_EXIST")
        assert "hidden" not in str(there.headers)


@pytest.mark.parametrize(("path", "body"), ENDPOINTS)
@pytest.mark.parametrize("token", [None, "odf_nothing", "x", "odf_" + "a" * 43])
def test_nobody_gets_in_without_a_token(shared: Shared, path: str, body: Any, token: str | None) -> None:
    answer = shared.ask(path.format(share="fx"), token, body)
    assert (answer.status, answer.json["errorCode"]) == (401, "UNAUTHENTICATED")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_somebody_without_a_grant_sees_nothing(shared: Shared) -> None:
    assert shared.ask("shares", "nothing").json == {"items": []}


def test_access_tokens_of_the_workspace_read_all_shares(shared: Shared) -> None:
    token = Tokens(shared.workspace.storage.odf).new("ci", Scope.READ)
    assert [one["name"] for one in shared.ask("shares", token).json["items"]] == ["fx", "hidden"]


# --- Bad questions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{RATES}/query", {"version": -1}), (f"{RATES}/query", {"version": 4}), (f"{RATES}/query", {"version": "x"}),
        (f"{RATES}/query", {"version": 2**70}), (f"{RATES}/query", {"version": 1, "timestamp": "2024-01-01T00:00:00Z"}),
        (f"{RATES}/query", {"timestamp": "yesterday"}), (f"{RATES}/query", {"timestamp": "1999-01-01T00:00:00Z"}),
        (f"{RATES}/query", {"limitHint": -1}), (f"{RATES}/query", {"maxFiles": 0}), (f"{RATES}/query", b"[]"),
        (f"{RATES}/query", b"{"), (f"{RATES}/query", b"\xff"), (f"{RATES}/query", {"predicateHints": "n > 1"}),
        (f"{RATES}/query", {"startingVersion": 2, "endingVersion": 1}), (f"{RATES}/query", {"endingVersion": 1}),
        (f"{RATES}/query", {"version": 1, "includeRefreshToken": True}),
        (f"{RATES}/query", {"pageToken": "x", "includeRefreshToken": True}),
        (f"{RATES}/query", {"pageToken": "x", "refreshToken": "x"}),
        (f"{RATES}/query", {"startingVersion": 9}), (f"{RATES}/query", {"startingVersion": 1, "version": 1}),
        (f"{RATES}/changes", None), (f"{RATES}/changes?startingVersion=1&startingTimestamp=2024-01-01T00:00:00Z", None),
        (f"{RATES}/changes?startingVersion=3&endingVersion=1", None), (f"{RATES}/changes?startingVersion=x", None),
        (f"{RATES}/metadata?version=1&timestamp=2024-01-01T00:00:00Z", None), (f"{RATES}/metadata?version=77", None),
        (f"{RATES}/version?startingTimestamp=2999-01-01T00:00:00Z", None), (f"{RATES}/version?startingTimestamp=x", None),
    ],
)  # fmt: skip
def test_a_bad_question_is_a_400(shared: Shared, path: str, body: Any) -> None:
    answer = shared.ask(path, body=body)
    assert (answer.status, set(answer.json)) == (400, {"errorCode", "message"}), answer.body
    assert "/" not in answer.json["message"]


@pytest.mark.parametrize(
    "path",
    [
        "nosuch",
        "shares/fx/x",
        "shares//schemas",
        "shares/..%2f..%2fetc",
        "files/x",
        "shares/%00",
        "shares/a%0Ab",
        "shares/" + "a" * 300,
    ],
)
def test_a_path_that_is_none(shared: Shared, path: str) -> None:
    answer = shared.ask(path)
    assert answer.status in (400, 404)
    assert set(answer.json) == {"errorCode", "message"}


def test_a_method_that_is_none(shared: Shared) -> None:
    answer = shared.ask("shares", method="DELETE")
    assert (answer.status, set(answer.json)) == (405, {"errorCode", "message"})


def test_a_dataset_that_is_gone_is_no_error_of_the_server(shared: Shared) -> None:
    gone = TableSource(SourceKind.DATASET, "did:odf:fed0" + "1" * 64)
    shared.sharing.shares.add_table(SharePath("fx", "gone", "rates"), gone)
    try:
        answer = shared.ask("shares/fx/schemas/gone/tables/rates/query", body={})
        assert (answer.status, answer.json["errorCode"]) == (404, "RESOURCE_DOES_NOT_EXIST")
    finally:
        shared.sharing.shares.remove(SharePath("fx", "gone"))


@pytest.mark.parametrize(
    ("problem", "status"),
    [
        (OSError("Couldn't deserialize thrift"), 404),  # as the reader of Parquet says it
        (FileNotFoundError(errno.ENOENT, "gone"), 404),
        (OSError(errno.ENOSPC, "No space left on device"), 500),  # which clients are right to try again
    ],
)
def test_a_damaged_file_is_the_publishers_and_a_full_disk_is_ours(
    shared: Shared, problem: OSError, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from odfpy.sharing.files.maker import FileMaker

    def fails(*_: Any, **__: Any) -> None:
        raise problem

    monkeypatch.setattr(FileMaker, "served", fails)
    answer = shared.ask(f"{LOG}/query", body={})
    assert answer.status == status
    assert set(answer.json) == {"errorCode", "message"}


def test_files_that_were_made_are_kept_within_a_limit_and_removed_by_gc(shared: Shared) -> None:
    folder = shared.workspace.storage.cache / "shared-files"
    lines = shared.lines(f"{RATES}/query", "eur", {})
    made = set(folder.glob("??/*.parquet"))
    assert made
    again = shared.lines(f"{RATES}/query", "eur", {})
    assert [line["file"]["id"] for line in again[2:]] == [line["file"]["id"] for line in lines[2:]]
    assert set(folder.glob("??/*.parquet")) == made
    (recent,) = (report for report in shared.workspace.maintenance.gc([]) if report.name is None)
    assert not {item.path for item in recent.found} & made
    for path in made:
        os.utime(path, (0, 0))
    old = list(shared.workspace.maintenance.gc([]))
    assert made <= {item.path for report in old for item in report.found}
    assert not set(folder.glob("??/*.parquet"))
    url = lines[2]["file"]["url"]
    assert shared.ask(url, None).status == 403  # a client asks for the table again
    assert state_of(table_of(shared, shared.lines(f"{RATES}/query", "eur", {}), "eur")) == {"EUR": (1.75, 3)}


def test_many_ask_for_a_file_and_it_is_made_once(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    from odfpy.sharing.files.maker import FileMaker

    made: list[str] = []
    make = FileMaker._make

    def counted(path: Any, *args: Any) -> int:
        made.append(str(path))
        return make(path, *args)

    monkeypatch.setattr(FileMaker, "_make", staticmethod(counted))
    shared.recipient("many", rows="cur = 'GBP' OR cur = 'EUR'")
    found: list[set[str]] = []
    threads = [
        threading.Thread(
            target=lambda: found.append(
                set(state_of(table_of(shared, shared.lines(f"{LOG}/query", "many", {}), "many")))
            )
        )
        for _ in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{"EUR", "GBP"}] * 12
    assert len(made) == len(set(made)) == 2


# --- Links and guesses -----------------------------------------------------------------------------------------------


def test_a_link_gives_a_profile_once(shared: Shared) -> None:
    shared.recipient("linked")
    link = f"activate/{shared.sharing.principals.new_activation('linked', Duration(60), Duration(600))}"
    page = shared.ask(link, None)
    assert (page.status, shared.ask("activate/nothing", None).body) == (200, page.body)
    assert b"<script" not in page.body
    assert "default-src 'none'" in page.headers["content-security-policy"]
    answer = shared.ask(link, None, method="POST")
    assert answer.json["endpoint"] == f"{shared.url}/"
    assert answer.json["expirationTime"]
    assert answer.headers["content-disposition"].startswith("attachment")
    assert [one["name"] for one in shared.ask("shares", answer.json["bearerToken"]).json["items"]] == ["fx"]
    assert shared.ask(link, None, method="POST").status == 404
    assert shared.ask("activate/nothing", None, method="POST").status == 404


def test_whoever_guesses_has_to_wait(shared: Shared) -> None:
    assert shared.ask("shares", "all").status == 200
    statuses = [shared.ask("shares", f"odf_guess{number}").status for number in range(25)]
    assert statuses == [401] * 20 + [429] * 5
    answer = shared.ask("shares", "odf_another")
    assert (answer.status, answer.json["errorCode"]) == (429, "REQUEST_LIMIT_EXCEEDED")
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert shared.ask("shares", "all").status == 200  # it was right from here before
    assert shared.ask("shares", "eur").status in (200, 429)
