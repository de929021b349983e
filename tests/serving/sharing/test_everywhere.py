"""Grants of sharing over REST, transfers and Flight SQL: a dataset is readable there if all of its changelog is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from serving.sharing.conftest import Shared
from support.servers.serving import ask

from odfpy.sharing.names import SharePath

LOG = SharePath("fx", "main", "log")
PATHS = ["datasets", "rates/refs/head", "rates/refs", "rates/metadata", "rates/tail"]


def url(shared: Shared) -> str:
    return shared.url.removesuffix("/delta-sharing")


def names(shared: Shared, token: str) -> list[str]:
    answer = ask(f"{url(shared)}/datasets", token=token)
    assert answer.status == 200, answer.body
    return [one["name"] for one in answer.json]


def rows(shared: Shared, token: str) -> Any:
    body = json.dumps({"query": "select count(*) as n from rates", "queryDialect": "SqlDataFusion"}).encode()
    return ask(f"{url(shared)}/query", method="POST", token=token, body=body, content_type="application/json")


def test_the_whole_changelog_is_the_dataset(shared: Shared, tmp_path: Path) -> None:
    token = shared.recipient("whole", path=LOG)
    assert names(shared, token) == ["rates"]
    assert rows(shared, token).json["output"]["data"] == [{"n": 7}]
    assert ask(f"{url(shared)}/rates/refs/head", token=token).status == 200
    assert ask(f"{url(shared)}/token", token=token).json["scope"] == "read"
    for method, path in (("POST", "rates/ingest"), ("PUT", "rates/visibility")):
        assert ask(f"{url(shared)}/{path}", method=method, token=token, body=b"x").status in (401, 403, 404, 405, 422)
    shared.sharing.grants.remove(shared.sharing.grants.all("whole")[0].id)
    assert names(shared, token) == []
    assert rows(shared, token).status == 400
    assert ask(f"{url(shared)}/rates/refs/head", token=token).status == 404


@pytest.mark.parametrize(
    ("name", "grant"),
    [
        ("part-rows", {"path": LOG, "rows": "cur = 'EUR'"}),
        ("part-columns", {"path": LOG, "columns": ["cur"]}),
        ("state-only", {"path": SharePath("fx", "main", "rates")}),
        ("none-at-all", {"has_grant": False}),
        ("two-parts", {"path": LOG, "columns": ["cur"], "rows": "n > 1"}),
    ],
)
def test_a_part_of_it_is_not(shared: Shared, name: str, grant: dict[str, Any]) -> None:
    token = shared.recipient(name, **grant)
    assert names(shared, token) == []
    assert rows(shared, token).status == 400
    for path in PATHS[1:]:
        assert ask(f"{url(shared)}/{path}", token=token).status == 404


def test_somebody_disabled_is_nobody(shared: Shared) -> None:
    token = shared.recipient("off", path=LOG)
    assert names(shared, token) == ["rates"]
    shared.sharing.principals.change("off", is_disabled=True)
    assert ask(f"{url(shared)}/datasets", token=token).status == 401
