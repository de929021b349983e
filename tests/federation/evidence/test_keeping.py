"""Answers that are kept as datasets: with everything that somebody needs who verifies them later, without relays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.federation.served import ServedWeb, served_web

from odfpy.coordinator.workspace import Workspace
from odfpy.federation.authority import Issued
from odfpy.federation.relay.requesters import Authorities
from odfpy.federation.evidence.verifying import verify

NA = "1,10.5,N\n2,20.5,R\n3,7.25,N\n"
GLOBAL = "10,1500,N\n11,900,R\n12,,N\n"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWeb]:
    with served_web(tmp_path_factory.mktemp("web")) as made:
        made.relay("na", "price", NA)
        made.relay("global", "percent", GLOBAL)
        made.link("na", "global", "{v} / 100")
        yield made


@pytest.fixture(scope="module")
def ann(web: ServedWeb) -> Issued:
    issued = web.user("ann")
    for relay in ("na", "global"):
        web.grant(relay, issued, "ann")
    return issued


@pytest.mark.parametrize("query", [
  "SELECT id, price FROM item",
  "SELECT flag, count(*) AS n, sum(price) AS s FROM item GROUP BY flag",
  "SELECT a.id, b.price FROM item AS a JOIN item AS b ON a.id = b.id WHERE a.price > 8",
  "SELECT id FROM item WHERE id > 100",
  "SELECT 1 + 1 AS two",
  "SELECT CAST(NULL AS INT) AS x, TIMESTAMP '2020-01-01 00:00:00.123456789' AS t, flag FROM item",
])
def test_it(web, ann, tmp_path, query):
    workspace = Workspace.init(tmp_path / "w")
    found = web.asks(ann, "na").sql_into(query, workspace, "answer")
    print(found)
    print([str(d.handle) for d in workspace.datasets.all()])
    assert found.holds
    assert verify(workspace, "answer", Authorities(web.issued.facts.pem.encode())).holds
