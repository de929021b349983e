"""A dataset that Spark computes: its query, origins and verification over REST."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.engine.spark_here import in_place
from support.servers.serving import ask, serving, wait_until

from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.server import DatasetServer

pytestmark = pytest.mark.spark

SOURCE, DERIVED = "com.example.source", "com.example.derived"
DAILY = "SELECT window.start AS event_time, name, count(*) AS n FROM source GROUP BY window(event_time, '1 day'), name"


@pytest.fixture(scope="module")
def workspace(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """The rows of a day are counted by Spark, in this process."""
    derived = derivative(DERIVED, SOURCE, DAILY, engine="spark")
    with pytest.MonkeyPatch.context() as patch:
        in_place(patch, spark)
        made = workspace_with(tmp_path_factory.mktemp("spark") / "workspace", root(SOURCE, "{kind: Append}"), derived)
        feed(made, SOURCE, "1 a", "2 a", "3 b")
        feed(made, SOURCE, "4 c", day=5)
        assert [one.error for one in made.pull([DERIVED])] == [None]
        yield made


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace) as server:
        yield server


@pytest.fixture(scope="module")
def admin(workspace: Workspace) -> str:
    return Tokens(workspace.odf).new("admin", Scope.ADMIN)


def test_its_query_is_shown_with_class_and_state(server: DatasetServer, admin: str) -> None:
    found = ask(f"{server.url}/{DERIVED}/analysis", token=admin).json
    assert found["engine"] == "spark"
    [step] = found["steps"]
    assert "window" in step["queryClass"].lower()
    assert step["state"]


def test_a_row_is_followed_to_the_rows_that_were_counted(server: DatasetServer, admin: str) -> None:
    found = ask(f"{server.url}/{DERIVED}/provenance?offset=0", token=admin).json
    derived, source = found["datasets"]
    [row] = derived["rows"]
    assert (row["values"]["name"], row["values"]["n"]) == ("a", 2)
    assert [one["values"]["id"] for one in source["rows"]] == [1, 2]
    assert found["check"] == "checked"


def test_it_is_verified_by_a_replay(server: DatasetServer, admin: str) -> None:
    url = f"{server.url}/{DERIVED}/verification"
    assert ask(url, method="POST", token=admin, body=b"{}", content_type="application/json").status == 202
    wait_until(lambda: ask(url, token=admin).json["underWay"] is None)
    found = ask(url, token=admin).json
    assert found["stopped"] is None
    assert (found["report"]["ok"], found["report"]["transformsReplayed"]) == (True, 1)
