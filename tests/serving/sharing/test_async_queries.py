"""Asynchronous queries against a real server: an id at once, the answer later."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving.sharing.conftest import Shared, ingested
from support.servers.serving import Answer

from odfpy.serving.sharing.bodies import QueryBody
from odfpy.serving.sharing.capabilities import Capabilities
from odfpy.serving.sharing.errors import SharingError
from odfpy.serving.sharing.queries import GivenQuery, PendingQueries
from odfpy.sharing.errors import CannotShare
from odfpy.sharing.files.maker import FileMaker

RATES = "shares/fx/schemas/main/tables/rates"
LOG = "shares/fx/schemas/main/tables/log"
ASYNC = {"delta_sharing_capabilities": "responseformat=delta;asyncquery=true"}


def submitted(shared: Shared, body: Any, who: str = "all", table: str = LOG) -> str:
    """Give a query; returns its id."""
    answer = shared.ask(f"{table}/query", who, body, **ASYNC)
    assert answer.status == 200
    assert answer.headers["delta-sharing-capabilities"] == "asyncquery=true"
    assert "delta-table-version" not in answer.headers
    (line,) = map(json.loads, answer.body.splitlines())
    assert line["queryStatus"]["status"] == "pending"
    return str(line["queryStatus"]["queryId"])


def came_back(shared: Shared, query: str, body: Any = None, who: str = "all", table: str = LOG) -> Answer:
    """Come back for a query until it is not pending any more."""
    while True:
        answer = shared.ask(f"{table}/queries/{query}", who, body or {})
        assert answer.status == 200
        status = json.loads(answer.body.splitlines()[0]).get("queryStatus", {})
        if status.get("status") != "pending":
            return answer
        time.sleep(0.01)


@pytest.mark.parametrize(
    "body", [{}, {"version": 2}, {"startingVersion": 1}, {"startingVersion": 1, "endingVersion": 2}]
)
def test_the_answer_is_that_of_a_query_that_waits(shared: Shared, body: Any) -> None:
    now = shared.ask(f"{LOG}/query", body=body, delta_sharing_capabilities="responseformat=delta")
    later = came_back(shared, submitted(shared, body))
    assert later.headers["delta-table-version"] == now.headers["delta-table-version"]
    assert "responseformat=delta" in later.headers["delta-sharing-capabilities"]  # as it was asked for first
    lines, expected = ([json.loads(line) for line in answer.body.splitlines()] for answer in (later, now))
    assert lines[:2] == expected[:2]
    ids = [line["file"]["id"] for line in lines[2:]]
    assert ids == [line["file"]["id"] for line in expected[2:]]
    assert ids


def test_the_same_key_is_the_same_query(shared: Shared) -> None:
    first = submitted(shared, {"idempotencyKey": "k"})
    assert submitted(shared, {"idempotencyKey": "k"}) == first
    assert submitted(shared, {"idempotencyKey": "k2"}) != first
    assert submitted(shared, {"idempotencyKey": "k", "version": 1}) != first
    assert submitted(shared, {"idempotencyKey": "k"}, "columns") != first
    assert submitted(shared, {}) != submitted(shared, {})


def test_a_query_is_for_whoever_gave_it(shared: Shared) -> None:
    query = submitted(shared, {})
    assert shared.ask(f"{LOG}/queries/{query}", "columns", {}).status == 404
    assert shared.ask(f"{RATES}/queries/{query}", body={}).status == 404
    assert shared.ask(f"{LOG}/queries/{query}", "nothing", {}).status == 404
    assert shared.ask(f"{LOG}/queries/unknown", body={}).status == 404
    assert shared.ask(f"{LOG}/queries/{query}", None, {}).status == 401
    came_back(shared, query)
    assert shared.ask(f"{LOG}/queries/{query}", body={"pageToken": "x"}).status == 400


def test_a_query_that_is_wrong_is_refused_at_once(shared: Shared) -> None:
    assert shared.ask(f"{LOG}/query", body={"version": 99}, **ASYNC).status == 400


def test_a_query_is_pending_until_its_files_are_made(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    may_go, made = threading.Event(), FileMaker._make

    def waits(*args: Any) -> int:
        assert may_go.wait(60)
        return made(*args)

    monkeypatch.setattr(FileMaker, "_make", staticmethod(waits))
    shared.recipient("waits", rows="n <> 2")
    query = submitted(shared, {}, "waits", RATES)
    line = json.loads(shared.ask(f"{RATES}/queries/{query}", "waits", {}).body)
    assert line == {"queryStatus": {"queryId": query, "status": "pending"}}
    may_go.set()
    answer = came_back(shared, query, who="waits", table=RATES)
    assert len(answer.body.splitlines()) > 2


def test_a_query_that_fails_says_so(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: Any) -> None:
        raise CannotShare("The file of a secret name is gone")

    monkeypatch.setattr(FileMaker, "_make", staticmethod(fails))
    shared.recipient("fails", rows="n <> 3")
    query = submitted(shared, {}, "fails", RATES)
    line = json.loads(came_back(shared, query, who="fails", table=RATES).body)
    assert line["queryStatus"]["status"] == "failed"
    assert "secret" not in line["queryStatus"]["errorMessage"]


def test_an_answer_has_pages_and_keeps_its_version(shared: Shared, tmp_path: Path) -> None:
    query, feed = submitted(shared, {"maxFiles": 1}), submitted(shared, {"startingVersion": 2})
    ingested(shared.workspace, tmp_path, [("SEK", 9.5, 8)])
    found, token = [], None
    while True:
        answer = came_back(shared, query, {"pageToken": token} if token else {})
        assert answer.headers["delta-table-version"] == "3"
        lines = [json.loads(line) for line in answer.body.splitlines()]
        found += [line["file"]["id"] for line in lines if "file" in line]
        token = lines[-1].get("endStreamAction", {}).get("nextPageToken")
        if token is None:
            break
    assert len(found) == len(set(found)) == 3
    assert len(came_back(shared, feed).body.splitlines()) == 2 + 2
    assert len(shared.lines(f"{LOG}/query", body={})) == 2 + 4  # who asks now sees the new version


def test_queries_end_and_are_limited() -> None:
    may_go, clock = threading.Event(), [1000.0]
    queries = PendingQueries(lambda: clock[0])

    def given(whose: str) -> GivenQuery:
        return GivenQuery(whose, "", QueryBody(), Capabilities(), 1)

    def lines() -> Iterator[object]:
        may_go.wait(60)
        yield {}

    kept = [queries.submit(given("one"), lines) for _ in range(50)]
    with pytest.raises(SharingError) as refused:
        queries.submit(given("one"), lines)
    assert refused.value.status == 429
    queries.submit(given("two"), lines)
    may_go.set()
    for query in kept:
        query.work.result(60)
    assert queries.submit(given("one"), lines).id
    assert queries.find(kept[0].id, "one") is kept[0]
    clock[0] += 4000
    with pytest.raises(SharingError) as over:
        queries.find(kept[0].id, "one")
    assert over.value.status == 404
    queries.stop()
