"""The list of datasets and their lineage: who sees what, in which order, and that changes are noticed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.servers.serving import ask, serving

from odfpy.coordinator.storage.last_failure import remember
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import OdfError
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.rest.catalog import Catalog
from odfpy.serving.server import DatasetServer


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    manifests = [root(name, "{kind: Append}") for name in ("com.b", "com.a", "com.c")]
    found = workspace_with(tmp_path / "workspace", *manifests, derivative("com.derived", "com.b"))
    feed(found, "com.a", *(f"{number} a" for number in range(3)))
    feed(found, "com.b", *(f"{number} b" for number in range(9)))
    assert [one.error for one in found.pull(["com.derived"])] == [None]
    return found


@pytest.fixture
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace) as server:
        yield server


@pytest.fixture
def reader(workspace: Workspace) -> str:
    return Tokens(workspace.odf).new("reader", Scope.READ)


def listed(server: DatasetServer, token: str | None = None, query: str = "") -> list[Any]:
    answer = ask(f"{server.url}/datasets{query}", token=token)
    assert answer.status == 200, answer.body
    found: list[Any] = answer.json
    return found


def names(found: list[Any]) -> list[str]:
    return [one["name"] for one in found]


def test_order_kind_and_total(server: DatasetServer, reader: str) -> None:
    assert names(listed(server, reader)) == ["com.a", "com.b", "com.c", "com.derived"]
    assert names(listed(server, reader, "?sort=-numRecords")) == ["com.b", "com.derived", "com.a", "com.c"]
    assert names(listed(server, reader, "?sort=numRecords&limit=1&offset=1")) == ["com.a"]
    assert names(listed(server, reader, "?sort=updatedAt"))[0] == "com.c"
    assert names(listed(server, reader, "?kind=Derivative")) == ["com.derived"]
    assert ask(f"{server.url}/datasets?limit=1", token=reader).headers["x-total-count"] == "4"
    assert ask(f"{server.url}/datasets?search=DERIV", token=reader).headers["x-total-count"] == "1"
    assert ask(f"{server.url}/datasets?sort=age", token=reader).status == 422


def test_some_are_asked_for_by_their_ids(server: DatasetServer, workspace: Workspace, reader: str) -> None:
    first, last = (str(workspace.storage.get(name).handle.id) for name in ("com.a", "com.derived"))
    assert names(listed(server, reader, f"?id={last}&id={first}&id=none")) == ["com.a", "com.derived"]
    assert names(listed(server, reader, f"?id={last}&id={first}&search=deri")) == ["com.derived"]
    assert names(listed(server, reader, "?search=IVED%20com")) == ["com.derived"], "all words, in any order"
    assert listed(server, None, f"?id={first}") == []
    assert ask(f"{server.url}/datasets?{'id=x&' * 101}", token=reader).status == 422


def test_strangers_see_and_count_public_datasets_only(server: DatasetServer, workspace: Workspace) -> None:
    assert listed(server) == []
    set_visibility(workspace.storage.get("com.b").folder, Visibility.PUBLIC)
    assert names(listed(server)) == ["com.b"]
    assert ask(f"{server.url}/datasets").headers["x-total-count"] == "1"
    set_visibility(workspace.storage.get("com.b").folder, Visibility.PRIVATE)
    assert listed(server) == []


def test_what_changes_is_noticed(server: DatasetServer, workspace: Workspace, reader: str) -> None:
    [before] = listed(server, reader, "?search=com.a")
    assert before["numRecords"] == 3
    assert before["verification"] is None
    assert before["failure"] is None
    assert before["signedBy"], before
    [report] = workspace.verify(["com.a"])
    assert report.ok
    [verified] = listed(server, reader, "?search=com.a")
    assert verified["verification"] | {"time": ""} == {
        "time": "", "head": before["head"], "ok": True, "isCurrent": True, "isReplayed": True,
    }  # fmt: skip
    feed(workspace, "com.a", "7 new", day=2)
    [grown] = listed(server, reader, "?search=com.a")
    assert grown["numRecords"] == 4
    assert not grown["verification"]["isCurrent"]
    assert grown["dataSize"] > before["dataSize"]
    assert grown["watermark"] > before["watermark"]
    workspace.datasets.rename("com.a", "com.z")
    assert names(listed(server, reader)) == ["com.b", "com.c", "com.derived", "com.z"]
    workspace.datasets.delete(["com.c"])
    assert names(listed(server, reader)) == ["com.b", "com.derived", "com.z"]


def test_why_a_pull_failed_is_for_those_who_may_read_the_workspace(
    server: DatasetServer, workspace: Workspace, reader: str
) -> None:
    writer = Tokens(workspace.odf).new("writer", Scope.WRITE)
    dataset = workspace.storage.get("com.a")
    set_visibility(dataset.folder, Visibility.PUBLIC)
    remember(dataset, OdfError("Cannot read /secret/place"))
    for token, message in ((writer, "Cannot read /secret/place"), (reader, "Cannot read /secret/place"), (None, "")):
        [found] = listed(server, token, "?search=com.a")
        assert found["failure"]["message"] == message
        assert found["failure"]["code"]
        assert ask(f"{server.url}/com.a", token=token).json["failure"]["message"] == message
    remember(dataset, None)
    assert listed(server)[0]["failure"] is None


def test_a_damaged_dataset_hides_no_others(server: DatasetServer, workspace: Workspace, reader: str) -> None:
    folder = workspace.storage.get("com.b").folder
    (folder / "info" / "alias").write_text("no name ///")
    (folder / "info" / "x").write_text("")  # whatever writes there replaces files, which the folder's time tells
    assert names(listed(server, reader)) == ["com.a", "com.c", "com.derived"]
    (workspace.storage.get("com.a").folder / "info" / "verification.yaml").write_text("{")
    (workspace.storage.get("com.a").folder / "info" / "x").write_text("")  # a damaged record is not a new one
    assert "com.a" in names(listed(server, reader))


def graph(server: DatasetServer, path: str, token: str | None = None) -> tuple[dict[str, Any], list[Any]]:
    answer = ask(f"{server.url}/{path}", token=token)
    assert answer.status == 200, answer.body
    return {one["id"]: one for one in answer.json["nodes"]}, answer.json["edges"]


def test_the_lineage_has_watermarks_and_what_holds_them_back(
    server: DatasetServer, workspace: Workspace, reader: str
) -> None:
    source, derived = (str(workspace.storage.get(name).handle.id) for name in ("com.b", "com.derived"))
    nodes, edges = graph(server, "lineage", reader)
    assert {one["name"] for one in nodes.values()} == {"com.a", "com.b", "com.c", "com.derived"}
    [edge] = edges
    assert edge["input"] == source
    assert edge["output"] == derived
    assert edge["holdsBack"]
    assert nodes[derived]["heldBackBy"] == [source]
    assert nodes[source]["heldBackBy"] == []
    assert edge["takenIn"] == nodes[source]["watermark"] == nodes[derived]["watermark"]
    feed(workspace, "com.b", "77 later", day=9)
    nodes, [edge] = graph(server, "lineage", reader)
    assert edge["takenIn"] < nodes[source]["watermark"]


def test_the_lineage_of_one_goes_both_ways(server: DatasetServer, workspace: Workspace, reader: str) -> None:
    for path in ("com.b/lineage", "com.derived/lineage"):
        nodes, edges = graph(server, path, reader)
        assert {one["name"] for one in nodes.values()} == {"com.b", "com.derived"}
        assert len(edges) == 1
    nodes, edges = graph(server, "com.b/lineage?downstream=false", reader)
    assert len(nodes) == 1
    assert not edges


def test_hidden_datasets_are_in_no_lineage_but_by_the_ids_in_public_chains(
    server: DatasetServer, workspace: Workspace
) -> None:
    source, derived = (workspace.storage.get(name) for name in ("com.b", "com.derived"))
    set_visibility(derived.folder, Visibility.PUBLIC)
    nodes, edges = graph(server, "lineage")
    hidden = nodes[str(source.handle.id)]
    assert hidden == {"id": str(source.handle.id)} | {key: hidden[key] for key in hidden if key != "id"}
    assert not any(value for key, value in hidden.items() if key != "id")
    assert edges == [
        {"input": str(source.handle.id), "output": str(derived.handle.id), "takenIn": None, "holdsBack": False}
    ]
    assert nodes[str(derived.handle.id)]["heldBackBy"] == []
    set_visibility(source.folder, Visibility.PUBLIC)
    set_visibility(derived.folder, Visibility.PRIVATE)
    nodes, edges = graph(server, "com.b/lineage")
    assert set(nodes) == {str(source.handle.id)}
    assert edges == []


def test_a_lineage_that_is_known_is_not_sent_again(server: DatasetServer, reader: str) -> None:
    first = ask(f"{server.url}/lineage", token=reader)
    assert ask(f"{server.url}/lineage", token=reader, if_none_match=first.headers["etag"]).status == 304


def test_what_was_read_ahead_is_listed_with_all_others(workspace: Workspace) -> None:
    stop, catalog = Event(), Catalog([workspace.storage])
    stop.set()
    catalog.warm_up(stop)
    assert len(catalog.entries()) == 4
    stop.clear()
    catalog = Catalog([workspace.storage])
    catalog.warm_up(stop)
    workspace.datasets.delete(["com.c"])
    assert [one.name for one in catalog.entries()] == ["com.a", "com.b", "com.derived"]
    catalog.warm_up(stop)
    assert [one.name for one in catalog.entries()] == ["com.a", "com.b", "com.derived"]
