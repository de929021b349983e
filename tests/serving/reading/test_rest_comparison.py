"""What has changed between two moments of a dataset, over REST."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import feed, root, workspace_with
from support.servers.serving import Answer, ask, serving

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.events import AddData
from odfpy.chain.references import ReferenceKind
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.server import DatasetServer

KEYED, PLAIN, HIDDEN = "com.keyed", "com.plain", "com.hidden"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    manifests = [root(KEYED), root(PLAIN, "{kind: Append}"), root(HIDDEN)]
    found = workspace_with(tmp_path_factory.mktemp("workspace"), *manifests)
    feed(found, KEYED, *(f"{number} b" for number in range(9)))
    found.branches.create(KEYED, ReferenceKind.TAG, "v1")
    feed(found, KEYED, *(f"{number} {'c' if number == 3 else 'b'}" for number in range(1, 11)), day=2)
    feed(found, PLAIN, "1 a", "1 a", "2 b")
    for name in (KEYED, PLAIN):
        set_visibility(found.storage.get(name).folder, Visibility.PUBLIC)
    return found


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace, max_rows=50, max_answer=100_000) as server:
        yield server


def asked(server: DatasetServer, path: str, token: str | None = None, **headers: str) -> Answer:
    return ask(f"{server.url}/{path}", token=token, **headers)


def compared(server: DatasetServer, path: str) -> dict[str, Any]:
    answer = asked(server, path)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


def test_rows_come_go_and_change_by_the_primary_key(server: DatasetServer, workspace: Workspace) -> None:
    found = compared(server, f"{KEYED}/compare?old=v1")
    blocks = {one.block.sequence_number: str(one.hash) for one in workspace.datasets.log(KEYED)}
    head = max(blocks)
    assert found["old"] == {"name": "v1", "asAt": blocks[head - 1]}
    assert found["new"] == {"name": "head", "asAt": blocks[head]}
    assert found["key"] == ["id"]
    assert found["counts"] == {"added": 2, "removed": 1, "changed": 1}
    assert [(one["change"], one["key"]["id"]) for one in found["rows"]] == [
        ("removed", 0), ("changed", 3), ("added", 9), ("added", 10),
    ]  # fmt: skip
    changed = found["rows"][1]
    assert (changed["old"]["name"], changed["new"]["name"]) == ("b", "c")
    assert found["columnChanges"] == []
    same = compared(server, f"{KEYED}/compare?old=v1&new={head}&key=id")
    assert same["counts"] == found["counts"]


def test_pages_are_of_the_same_blocks_and_each_counts_everything(server: DatasetServer) -> None:
    path, seen = f"{KEYED}/compare?old=v1&limit=3", []
    while path:
        answer = asked(server, path)
        assert answer.json["counts"] == {"added": 2, "removed": 1, "changed": 1}
        assert answer.json["total"] == 4
        seen += [one["key"]["id"] for one in answer.json["rows"]]
        link = re.match(r'<(.*)>; rel="next"', answer.headers.get("link", ""))
        path = f"{KEYED}/{link[1]}" if link else ""
    assert seen == [0, 3, 9, 10]
    assert compared(server, f"{KEYED}/compare?old=v1&limit=0")["rows"] == []


def test_rows_without_a_key_are_counted(server: DatasetServer) -> None:
    found = compared(server, f"{PLAIN}/compare?old=2")
    assert found["key"] == []
    assert found["counts"] == {"added": 3, "removed": 0, "changed": 0}
    assert [(one["count"], one["new"]["id"]) for one in found["rows"]] == [(2, 1), (1, 2)]
    back = compared(server, f"{PLAIN}/compare?old=head&new=2")
    assert back["counts"] == {"added": 0, "removed": 3, "changed": 0}


def test_columns_that_only_one_state_has_are_told(tmp_path: Path) -> None:
    manifest = root(PLAIN, "{kind: Append}")
    workspace = workspace_with(tmp_path, manifest)
    feed(workspace, PLAIN, "1 a")
    note = "\n            - {name: note, type: {kind: Option, inner: String}}"
    more = manifest.replace("inner: String}}", f"inner: String}}}}{note}")
    workspace.add(list(load_snapshots(more, "manifest")), replace=True)
    feed(workspace, PLAIN, "2 b", day=2)
    first = next(one for one in reversed(list(workspace.datasets.log(PLAIN))) if isinstance(one.block.event, AddData))
    set_visibility(workspace.storage.get(PLAIN).folder, Visibility.PUBLIC)
    with serving(workspace) as server:
        found = compared(server, f"{PLAIN}/compare?old={first.hash}")
        assert found["columnChanges"] == [{"column": "note", "old": None, "new": "string"}]
        [row] = found["rows"]
        assert row["new"]["id"] == 2
        back = compared(server, f"{PLAIN}/compare?old=head&new={first.hash}")
        assert back["columnChanges"] == [{"column": "note", "old": "string", "new": None}]


def test_nothing_differs_from_itself(server: DatasetServer) -> None:
    found = compared(server, f"{KEYED}/compare?old=head")
    assert (found["total"], found["rows"]) == (0, [])


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("old=2001-01-01", 404, "did not exist yet"),
        ("old=zzz", 404, "no block, tag or branch 'zzz'"),
        ("old=f1620" + "0" * 64, 404, "has no block"),
        ("old=1-2-3", 400, "Not a time"),
        ("old=v1&key=x", 400, "no column 'x'"),
        ("new=v1", 422, "old"),
        ("old=v1&limit=-1", 422, "limit"),
    ],
)
def test_nonsense(server: DatasetServer, query: str, status: int, words: str) -> None:
    answer = asked(server, f"{KEYED}/compare?{query}")
    assert (answer.status, words in answer.json["message"]) == (status, True), answer.body


def test_a_page_has_no_more_rows_than_the_server_gives(workspace: Workspace) -> None:
    with serving(workspace, max_rows=3) as server:
        answer = asked(server, f"{KEYED}/compare?old=v1")
        assert len(answer.json["rows"]) == 3
        assert "skip=3" in answer.headers["link"]


def test_who_may_compare(server: DatasetServer, workspace: Workspace) -> None:
    assert asked(server, f"{HIDDEN}/compare?old=0").status == 401
    reader = Tokens(workspace.odf).new("reader", Scope.READ)
    assert asked(server, f"{HIDDEN}/compare?old=0", reader).json["message"].startswith(f"{HIDDEN} has no data yet")


def test_blocks_that_no_reference_leads_to_are_not_compared(server: DatasetServer, workspace: Workspace) -> None:
    reader = Tokens(workspace.odf).new("resetting", Scope.READ)
    feed(workspace, HIDDEN, "1 secret")
    feed(workspace, HIDDEN, "1 known", day=2)
    dropped = str(next(iter(workspace.datasets.log(HIDDEN))).hash)
    workspace.maintenance.reset(HIDDEN, "2")
    answer = asked(server, f"{HIDDEN}/compare?old=0&new={dropped}", reader)
    assert answer.status == 404, answer.body


def test_a_page_that_is_too_large_is_refused(server: DatasetServer, workspace: Workspace) -> None:
    reader = Tokens(workspace.odf).new("large", Scope.READ)
    feed(workspace, HIDDEN, f"1 {'x' * 150_000}", "2 y", day=3)
    assert asked(server, f"{HIDDEN}/compare?old=0", reader).status == 400
    assert asked(server, f"{HIDDEN}/compare?old=0&skip=1", reader).status == 200


def test_what_is_known_is_not_sent_again(server: DatasetServer) -> None:
    first = asked(server, f"{KEYED}/compare?old=v1")
    assert asked(server, f"{KEYED}/compare?old=v1", if_none_match=first.headers["etag"]).status == 304
    assert asked(server, f"{KEYED}/compare?old=v1&skip=1", if_none_match=first.headers["etag"]).status == 200
