"""The rows that a row was computed from, over REST: the same as on the command line, and nothing of what is hidden."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import FOLDER, derivative, feed, root, workspace_with
from support.servers.serving import Answer, ask, serving

from odfpy.coordinator.workspace import Workspace
from odfpy.provenance.report import tree
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.server import DatasetServer

SECOND = "select op, event_time, id, name || '!' as name from source"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("workspace")
    manifests = [
        root("com.b", "{kind: Append}"),
        derivative("com.derived", "com.b"),
        derivative("com.second", "com.derived", SECOND),
        FOLDER,
    ]
    found = workspace_with(folder, *manifests)
    feed(found, "com.b", *(f"{number} b" for number in range(9)))
    (folder / "in").mkdir()
    (folder / "in" / "one.csv").write_text("id\n1\n2\n")
    assert [one.error for one in found.pull(all=True)] == [None] * 4
    return found


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace, max_rows=8) as server:
        yield server


@pytest.fixture(scope="module")
def reader(workspace: Workspace) -> str:
    return Tokens(workspace.odf).new("reader", Scope.READ)


@pytest.fixture
def public(workspace: Workspace) -> Iterator[None]:
    """Anybody may read what is derived, and not what it is derived from."""
    folders = [workspace.storage.get(name).folder for name in ("com.derived", "com.second")]
    for folder in folders:
        set_visibility(folder, Visibility.PUBLIC)
    yield
    for folder in folders:
        set_visibility(folder, Visibility.PRIVATE)


def asked(server: DatasetServer, path: str, token: str | None = None, **headers: str) -> Answer:
    return ask(f"{server.url}/{path}", token=token, **headers)


def provenance(server: DatasetServer, path: str, token: str | None = None) -> dict[str, Any]:
    answer = asked(server, path, token)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", {}),
        ("&depth=1", {"depth": 1}),
        ("&depth=0", {"depth": 0}),
        ("&column=name", {"column": "name"}),
        ("&check=false", {"check": False}),
    ],
)
def test_it_is_that_of_the_command_line(
    server: DatasetServer, workspace: Workspace, reader: str, query: str, options: Any
) -> None:
    expected = tree(workspace.provenance("com.second", 3, **options))
    assert provenance(server, f"com.second/provenance?offset=3{query}", reader) == json.loads(json.dumps(expected))


def test_it_goes_down_to_the_file_and_says_what_the_replay_gives(
    server: DatasetServer, workspace: Workspace, reader: str
) -> None:
    found = provenance(server, "com.second/provenance?offset=3", reader)
    assert [one["name"] for one in found["datasets"]] == ["com.second", "com.derived", "com.b"]
    assert found["check"] == "checked"
    assert [one["offset"] for one in found["datasets"][2]["rows"]] == [5]
    source = str(workspace.storage.get("com.b").handle.id)
    assert found["datasets"][1]["rows"][0]["madeOf"] == {source: [5]}
    [row] = provenance(server, "com.example.folder/provenance?offset=1", reader)["datasets"][0]["rows"]
    assert row["origin"]["file"] == "one.csv"
    assert row["origin"]["source"] == "in/*.csv"


def test_of_what_one_may_not_read_the_id_is_told_and_nothing_else(
    server: DatasetServer, workspace: Workspace, public: None
) -> None:
    source = str(workspace.storage.get("com.b").handle.id)
    answer = asked(server, "com.second/provenance?offset=3")
    assert answer.status == 200
    found = answer.json
    assert [one["name"] for one in found["datasets"]] == ["com.second", "com.derived"]
    assert found["check"] == "checked"
    assert found["datasets"][1]["hidden"] == [source]
    assert found["datasets"][1]["rows"][0]["madeOf"] == {}
    assert found["datasets"][1]["columns"] == []
    assert b"com.b" not in answer.body.replace(b"com.b ", b"")
    assert asked(server, "com.b/provenance?offset=3").status == 401


def test_errors_of_inputs_that_one_may_not_read_are_not_told(
    server: DatasetServer, workspace: Workspace, public: None, reader: str
) -> None:
    data = workspace.storage.get("com.b").folder / "data"
    data.rename(data.with_name("away"))
    try:
        answer = asked(server, "com.derived/provenance?offset=3")
        assert answer.status == 400
        assert answer.json["message"] == (
            "The provenance of rows of com.derived is not available\nYou may not read all of its inputs."
        )
    finally:
        data.with_name("away").rename(data)
    assert asked(server, "com.derived/provenance?offset=3").status == 200


def test_a_file_that_is_gone_is_the_servers_fault_and_its_place_is_not_told(
    server: DatasetServer, workspace: Workspace, reader: str
) -> None:
    data = workspace.storage.get("com.derived").folder / "data"
    data.rename(data.with_name("away"))
    try:
        answer = asked(server, "com.second/provenance?offset=3", reader)
        assert answer.status == 500
        assert str(workspace.root) not in answer.body.decode()
    finally:
        data.with_name("away").rename(data)


def test_nonsense(server: DatasetServer, reader: str) -> None:
    for query, status, words in (
        ("offset=99", 404, "no row of offset 99"),
        ("offset=3&column=x", 404, "no column 'x'"),
        ("offset=-1", 422, "offset"),
        ("offset=x", 422, "offset"),
        ("", 422, "offset"),
        ("offset=3&depth=-1", 422, "depth"),
    ):
        answer = asked(server, f"com.second/provenance?{query}", reader)
        assert (answer.status, words in answer.json["message"]) == (status, True), (query, answer.body)
    assert asked(server, "com.second/provenance?offset=3").status == 401
    assert asked(server, "missing/provenance?offset=3", reader).status == 404


def test_an_answer_that_is_known_is_not_sent_again(server: DatasetServer, reader: str) -> None:
    first = asked(server, "com.derived/provenance?offset=3", reader)
    assert asked(server, "com.derived/provenance?offset=3", reader, if_none_match=first.headers["etag"]).status == 304


def test_more_rows_or_bytes_than_an_answer_may_have_are_refused(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("com.b", "{kind: Append}"), derivative("com.derived", "com.b"))
    feed(workspace, "com.b", f"5 {'x' * 1_000_000}")
    assert [one.error for one in workspace.pull(["com.derived"])] == [None]
    token = Tokens(workspace.odf).new("reader", Scope.READ)
    with serving(workspace, max_rows=1) as server:
        answer = asked(server, "com.derived/provenance?offset=0", token)
        assert (answer.status, answer.json["message"].partition("\n")[0]) == (
            400, "The row was computed from more than 1 rows",
        )  # fmt: skip
        assert asked(server, "com.derived/provenance?offset=0&depth=0", token).status == 200
    with serving(workspace, max_answer=1_500_000) as server:
        answer = asked(server, "com.derived/provenance?offset=0", token)
        assert answer.status == 400
        assert "take more than" in answer.json["message"]
        assert asked(server, "com.derived/provenance?offset=0&depth=0", token).status == 200
