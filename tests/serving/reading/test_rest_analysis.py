"""What the engine says of a query, over REST."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.servers.serving import ask, serving

from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.server import DatasetServer

SOURCE, DERIVED = "com.example.source", "com.example.derived"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("analysis") / "workspace"
    found = workspace_with(folder, root(SOURCE, "{kind: Append}"), derivative(DERIVED, SOURCE))
    feed(found, SOURCE, "2 a")
    return found


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace) as server:
        yield server


@pytest.fixture(scope="module")
def reader(workspace: Workspace) -> str:
    return Tokens(workspace.odf).new("reader", Scope.READ)


def test_classes_state_and_watermark(server: DatasetServer, reader: str) -> None:
    answer = ask(f"{server.url}/{DERIVED}/analysis", token=reader)
    assert answer.status == 200, answer.body
    found = answer.json
    assert found["engine"] == "datafusion"
    [step] = found["steps"]
    assert step["alias"] is None
    assert step["queryClass"]
    assert step["state"]
    assert "upper(name)" in step["query"]
    assert {"offset", "op", "name"} <= set(found["outputColumns"])
    again = ask(f"{server.url}/{DERIVED}/analysis", token=reader, if_none_match=answer.headers["etag"])
    assert again.status == 304


def test_a_root_has_no_query(server: DatasetServer, reader: str) -> None:
    answer = ask(f"{server.url}/{SOURCE}/analysis", token=reader)
    assert answer.status == 400
    assert answer.json["message"] == "A root dataset has no query"


def test_inputs_must_be_readable_too(server: DatasetServer, workspace: Workspace) -> None:
    assert ask(f"{server.url}/{DERIVED}/analysis").status == 401
    set_visibility(workspace.storage.get(DERIVED).folder, Visibility.PUBLIC)
    refused = ask(f"{server.url}/{DERIVED}/analysis")
    assert refused.status == 400
    assert SOURCE not in refused.json["message"]
    set_visibility(workspace.storage.get(SOURCE).folder, Visibility.PUBLIC)
    assert ask(f"{server.url}/{DERIVED}/analysis").status == 200
    for name in (SOURCE, DERIVED):
        set_visibility(workspace.storage.get(name).folder, Visibility.PRIVATE)
