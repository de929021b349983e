"""What PROTOCOL.md says that a server must do, and what the reference server's own tests ask for, as tables of requests.

Power BI's connector asks as the table `POWER_BI` says: lists, metadata, and queries without a capabilities header, with
`limitHint` for its preview. Left out is what is about the reference server's configuration, credentials of clouds
(`dir` access), and pages of change feeds, which come whole here: `maxFiles` is a hint.
"""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import UUID

import pytest
from serving.sharing.conftest import Shared
from serving.sharing.test_delta_sharing import DELTA, LOG, RATES

JSON = "application/json"
NDJSON = "application/x-ndjson; charset=utf-8"
TABLE_CALLS: list[tuple[str, str, Any]] = [
    ("GET", "/version", None), ("GET", "/metadata", None), ("POST", "/query", {}), ("POST", "/proof", {}),
    ("GET", "/changes?startingVersion=0", None),
]  # fmt: skip
LISTS = ["shares", "shares/fx", "shares/fx/schemas", "shares/fx/schemas/main/tables", "shares/fx/all-tables"]
POWER_BI: list[tuple[str, Any]] = [
    ("shares?maxResults=100", None), ("shares/fx/schemas?maxResults=100", None),
    ("shares/fx/schemas/main/tables?maxResults=100", None), (f"{LOG}/metadata", None), (f"{LOG}/query", {}),
    (f"{LOG}/query", {"limitHint": 1000}), (f"{LOG}/query", {"predicateHints": [], "limitHint": 1_000_000}),
]  # fmt: skip


# --- Lists -----------------------------------------------------------------------------------------------------------

NO_FILES = {"protocol", "metaData", "endStreamAction"}


@pytest.mark.parametrize("path", LISTS)
def test_lists_and_shares(shared: Shared, path: str) -> None:
    for written in (path, path.replace("fx", "FX").replace("main", "MAIN")):
        answer = shared.ask(written)
        assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, JSON)
        items = answer.json["items"] if "items" in answer.json else [answer.json["share"]]
        assert items
        for item in items:
            assert 0 < len(item["name"]) <= 255
            for name in ("id", "shareId"):
                assert name not in item or UUID(item[name])


def test_ids_stay(shared: Shared) -> None:
    first, second = (shared.ask("shares/fx/all-tables").json["items"] for _ in range(2))
    assert first == second
    assert len({item["id"] for item in first}) == len(first)
    table = shared.lines(f"{RATES}/metadata")[1]["metaData"]["id"]
    assert table == next(item["id"] for item in first if item["name"] == "rates")
    assert {item["shareId"] for item in first} == {shared.ask("shares/fx").json["share"]["id"]}


@pytest.mark.parametrize(("path", "body"), POWER_BI)
def test_what_power_bi_asks(shared: Shared, path: str, body: Any) -> None:
    """It knows no delta format, no end of an answer, and no version but the newest one."""
    answer = shared.ask(path, body=body, user_agent="Microsoft.Data.Mashup", accept=JSON)
    assert answer.status == 200
    for line in answer.body.splitlines():
        tree = json.loads(line)
        assert "endStreamAction" not in tree
        assert "deltaProtocol" not in tree.get("protocol", {})


# --- Status codes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path", "body"), TABLE_CALLS)
@pytest.mark.parametrize(
    ("status", "code", "who", "table"),
    [
        (200, None, "all", "shares/FX/schemas/Main/tables/RATES"),
        (401, "UNAUTHENTICATED", None, RATES),
        (401, "UNAUTHENTICATED", "odf_of_nobody", RATES),
        (404, "RESOURCE_DOES_NOT_EXIST", "all", RATES.replace("rates", "none")),
        (404, "RESOURCE_DOES_NOT_EXIST", "all", RATES.replace("main", "none")),
        (404, "RESOURCE_DOES_NOT_EXIST", "all", RATES.replace("fx", "none")),
        (404, "RESOURCE_DOES_NOT_EXIST", "nothing", RATES),
    ],
)
def test_status_codes(
    shared: Shared, method: str, path: str, body: Any, status: int, code: str | None, who: str | None, table: str
) -> None:
    shared.forget_guesses()
    answer = shared.ask(table + path, who, body, method=method)
    assert answer.status == status
    if code is not None:
        assert answer.json["errorCode"] == code
        assert answer.headers["content-type"].startswith(JSON)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        # of the query
        ("query", {"version": 1, "timestamp": "2024-01-01T00:00:00Z"}), ("query", {"version": 1, "startingVersion": 1}),
        ("query", {"timestamp": "2024-01-01T00:00:00Z", "startingVersion": 1}), ("query", {"version": -1}),
        ("query", {"version": 1, "timestamp": "2024-01-01T00:00:00Z", "startingVersion": 1}),
        ("query", {"startingVersion": -1}), ("query", {"version": "x3"}), ("query", {"startingVersion": "x3"}),
        ("query", {"startingVersion": 1, "endingVersion": "x3"}), ("query", {"startingVersion": 3, "endingVersion": 2}),
        ("query", {"timestamp": "2000-01-01T00:00:00Z"}), ("query", {"predicateHints": {}}),
        ("query", {"maxFiles": 0}), ("query", {"maxFiles": 3_000_000_000}), ("query", {"refreshToken": "foo"}),
        ("query", {"refreshToken": "foo", "includeRefreshToken": True}), ("query", {"pageToken": "foo"}),
        ("query", {"startingVersion": 1, "refreshToken": "foo"}), ("query", {"version": 1, "refreshToken": "foo"}),
        ("query", {"version": 1, "includeRefreshToken": True}), ("query", {"pageToken": "a", "refreshToken": "b"}),
        # of the version and the metadata
        ("version?startingTimestamp=foo", None), ("version?startingTimestamp=9999-01-01T00:00:00Z", None),
        ("metadata?version=-1", None), ("metadata?version=4", None), ("metadata?timestamp=foo", None),
        ("metadata?timestamp=2000-01-01T00:00:00Z", None), ("metadata?version=1&timestamp=2024-01-01T00:00:00Z", None),
        # of the changes
        ("changes", None), ("changes?startingVersion=0&startingTimestamp=2024-01-01T00:00:00Z", None),
        ("changes?startingVersion=0&endingVersion=2&endingTimestamp=2024-01-01T00:00:00Z", None),
        ("changes?startingTimestamp=foo", None), ("changes?startingVersion=2&endingVersion=1", None),
        ("changes?startingVersion=4", None), ("changes?startingTimestamp=9999-01-01T00:00:00Z", None),
        ("changes?startingVersion=0&endingTimestamp=2000-01-01T00:00:00Z", None), ("changes?startingVersion=x", None),
    ],
)  # fmt: skip
def test_what_is_malformed(shared: Shared, path: str, body: Any) -> None:
    answer = shared.ask(f"{RATES}/{path}", body=body)
    assert (answer.status, answer.json["errorCode"]) == (400, "INVALID_PARAMETER_VALUE"), answer.body
    assert answer.json["message"]


@pytest.mark.parametrize("value", ["", " ", "sha256", "parquet,delta"])
@pytest.mark.parametrize("path", ["query", "changes?startingVersion=0"])
def test_a_scheme_of_ids_that_is_none(shared: Shared, path: str, value: str) -> None:
    body = {} if path == "query" else None
    assert shared.ask(f"{RATES}/{path}", body=body, fileidhash=value).status == 400


@pytest.mark.parametrize("value", ["parquet", "DELTA"])
@pytest.mark.parametrize("path", ["query", "changes?startingVersion=0"])
def test_a_scheme_of_ids_is_echoed_in_small_letters(shared: Shared, path: str, value: str) -> None:
    body = {} if path == "query" else None
    first, second = (shared.ask(f"{RATES}/{path}", body=body, fileidhash=value) for _ in range(2))
    assert first.headers["fileidhash"] == value.lower()
    ids = [re.findall(rb'"id":"([^"]+)"', answer.body) for answer in (first, second)]
    assert ids[0] == ids[1]


# --- Headers and lines -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [RATES, LOG])
def test_the_version_of_a_table(shared: Shared, table: str) -> None:
    new = shared.ask(f"{table}/version")
    old = shared.ask(table, method="HEAD")
    assert (new.status, new.body, new.headers["delta-table-version"]) == (200, b"", "3")
    assert (old.status, old.headers["delta-table-version"]) == (200, "3")
    before_all = shared.ask(f"{table}/version?startingTimestamp=2000-01-01T00:00:00Z")
    assert before_all.headers["delta-table-version"] == "0"


@pytest.mark.parametrize("form", ["parquet", "delta"])
@pytest.mark.parametrize(
    ("path", "body", "version"),
    [
        ("metadata", None, 3), ("metadata?version=1", None, 1), ("query", {}, 3), ("query", {"version": 2}, 2),
        ("query", {"startingVersion": 1}, 1), ("changes?startingVersion=2", None, 2),
        ("changes?startingVersion=0&endingVersion=1", None, 0),
    ],
)  # fmt: skip
def test_answers_of_lines(shared: Shared, form: str, path: str, body: Any, version: int) -> None:
    headers = DELTA if form == "delta" else {}
    answer = shared.ask(f"{RATES}/{path}", body=body, **headers)
    assert answer.headers["content-type"] == NDJSON
    assert answer.headers["delta-table-version"] == str(version)
    assert f"responseformat={form}" in answer.headers["delta-sharing-capabilities"]
    lines = [json.loads(line) for line in answer.body.splitlines()]
    assert all(len(line) == 1 for line in lines)
    assert [next(iter(line)) for line in lines[:2]] == ["protocol", "metaData"]
    table = lines[1]["metaData"]["deltaMetadata"] if form == "delta" else lines[1]["metaData"]
    assert {"id", "format", "schemaString", "partitionColumns"} <= set(table)
    assert (table["format"]["provider"], table["partitionColumns"]) == ("parquet", [])
    of_a_version = path.startswith("metadata?") or (body or {}).get("version") is not None
    if of_a_version:
        assert lines[1]["metaData"]["version"] == version
    for line in lines[2:]:
        ((kind, action),) = line.items()
        assert isinstance(action["id"], str)
        assert isinstance(action["expirationTimestamp"], int)
        if of_a_version or path != "query" or "startingVersion" in (body or {}):
            assert isinstance(action["version"], int)
            assert isinstance(action["timestamp"], int)
        if form == "parquet":
            assert kind in ("file", "add", "cdf", "remove")
            assert (isinstance(action["size"], int), action["partitionValues"]) == (True, {})
            assert isinstance(action.get("stats", "{}"), str)
            assert ("stats" in action) <= (kind in ("file", "add"))
            assert action["url"].startswith("http")
        else:
            assert kind == "file"
            ((name, inner),) = action["deltaSingleAction"].items()
            assert name in ("add", "remove", "cdc")
            assert inner["path"].startswith("http")


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        (None, "parquet"), ("responseformat=parquet", "parquet"), ("responseformat=delta", "delta"),
        ("responseFormat=DELTA;readerFeatures=deletionVectors", "delta"), ("responseformat=parquet,delta", "parquet"),
        ("responseformat=delta,parquet", "parquet"), ("something=else", "parquet"), ("", "parquet"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["metadata", "query", "changes?startingVersion=0"])
def test_the_format_is_one_that_was_asked_for(shared: Shared, path: str, asked: str | None, answered: str) -> None:
    body = {} if path == "query" else None
    headers = {} if asked is None else {"delta_sharing_capabilities": asked}
    answer = shared.ask(f"{RATES}/{path}", body=body, **headers)
    assert f"responseformat={answered}" in answer.headers["delta-sharing-capabilities"]
    assert (b"deltaProtocol" in answer.body) == (answered == "delta")


@pytest.mark.parametrize("path", ["metadata", "query", "changes?startingVersion=0"])
@pytest.mark.parametrize("wanted", ["true", "false"])
def test_the_end_is_told_to_whoever_asks(shared: Shared, path: str, wanted: str) -> None:
    body = {} if path == "query" else None
    answer = shared.ask(f"{RATES}/{path}", body=body, delta_sharing_capabilities=f"includeEndStreamAction={wanted}")
    is_told = "includeendstreamaction=true" in answer.headers["delta-sharing-capabilities"]
    assert is_told == (wanted == "true") == (b"endStreamAction" in answer.body.splitlines()[-1])


# --- Hints -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        {"predicateHints": ["n >"]}, {"predicateHints": ["nosuch = 1"]}, {"predicateHints": ["n = 1; drop table x"]},
        {"jsonPredicateHints": "{"}, {"jsonPredicateHints": "bad"}, {"jsonPredicateHints": '{"op":"like"}'},
        {"jsonPredicateHints": '{"op":"equal","children":[{"op":"column","name":"none","valueType":"int"},'
                               '{"op":"literal","value":"1","valueType":"int"}]}'},
        {"limitHint": 1_000_000}, {"predicateHints": []}, {"unknown": 1},
    ],
)  # fmt: skip
def test_hints_that_make_no_sense_leave_out_nothing(shared: Shared, body: dict[str, Any]) -> None:
    assert len(shared.lines(f"{LOG}/query", body=body)) == len(shared.lines(f"{LOG}/query", body={}))


def test_a_window_of_versions_may_end_later_than_the_table(shared: Shared) -> None:
    """The reference server refuses it; the protocol says that the end is a hint."""
    body = {"startingVersion": 1, "endingVersion": 99}
    assert len(shared.lines(f"{LOG}/query", body=body)) == 5


@pytest.mark.parametrize("most", [1, 2, 100])
@pytest.mark.parametrize("form", ["parquet", "delta"])
@pytest.mark.parametrize("table", [RATES, LOG])
def test_feeds_come_in_pages_too(shared: Shared, table: str, form: str, most: int) -> None:
    """The reference's server takes `maxFiles` and `pageToken` for both kinds of feeds."""
    can = {"delta_sharing_capabilities": f"responseformat={form};includeendstreamaction=true"}

    def ids(lines: list[Any]) -> list[str]:
        trees = [next(iter(line.values())) for line in lines]
        return [tree["id"] for tree, line in zip(trees, lines, strict=True) if not line.keys() & NO_FILES]

    for path, body in (("changes?startingVersion=0", None), ("query", {"startingVersion": 0})):
        whole = ids(shared.lines(f"{table}/{path}", body=body, **can))
        found, token, pages = [], None, 0
        while True:
            if body is None:
                more = f"&maxFiles={most}" + (f"&pageToken={token}" if token else "")
                lines = shared.lines(f"{table}/{path}{more}", **can)
            else:
                lines = shared.lines(f"{table}/{path}", body={**body, "maxFiles": most, "pageToken": token}, **can)
            part = ids(lines)
            assert len(part) <= most
            found, pages = found + part, pages + 1
            token = lines[-1]["endStreamAction"].get("nextPageToken")
            if token is None:
                break
            other = "changes?startingVersion=1" if body is None else "query"
            more = f"&pageToken={token}" if body is None else ""
            wrong = None if body is None else {"startingVersion": 1, "pageToken": token}
            assert shared.ask(f"{table}/{other}{more}", body=wrong).status == 400, "it is of another question"
        assert found == whole
        assert pages == -(-len(whole) // most)
