"""The index of a repository: what pushes write, what static servers then say, and what nobody has to believe."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.servers.azure import azure_containers
from support.servers.static_server import static_server

from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import KeyPair
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import AlreadyExists, DatasetNotFound, OdfError, UsageError
from odfpy.repository.locations.index import INDEX_FILE, IndexEntry, enter, has_index
from odfpy.repository.locations.listing import NotListable, holds_datasets, list_datasets


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A root, a derivative of it that gives it another name, and the root renamed since."""
    workspace = workspace_with(tmp_path / "home", root(), derivative(), root("other"))
    feed(workspace, "root", "1 a", "2 b")
    feed(workspace, "other", "1 a")
    assert [result.error for result in workspace.pull(["derived"])] == [None]
    workspace.datasets.rename("root", "com.example.renamed")
    return workspace


def index_of(folder: Path) -> dict[str, str]:
    tree = json.loads((folder / INDEX_FILE).read_bytes())
    assert (tree["kind"], tree["version"]) == ("RepositoryIndex", 1)
    return {one["name"]: one["id"] for one in tree["datasets"]}


def push(workspace: Workspace, *names: str, to: str) -> None:
    assert [result.error for result in workspace.push(names, to=to)] == [None] * len(names)


def test_a_static_server_has_the_inputs_of_a_copy(workspace: Workspace, tmp_path: Path) -> None:
    push(workspace, "derived", "com.example.renamed", to=f"{tmp_path}/public/")
    copies = Workspace.init(tmp_path / "copies")
    with static_server(tmp_path / "public") as site:
        results = list(copies.pull([f"{site.url}/derived"], recursive=True))
        assert [str(one.alias) for one in list_datasets(site.url)] == ["com.example.renamed", "derived"]
        assert [str(one.alias) for one in list_datasets(site.url, "RENAMED")] == ["com.example.renamed"]
    assert [(result.error, result.num_blocks > 0) for result in results] == [(None, True)] * 2
    assert all(report.ok for report in copies.verify(all=True, integrity_only=True))
    names = {str(one.handle): str(one.handle.id) for one in copies.datasets.all()}
    assert names == index_of(tmp_path / "public")


def test_without_an_index_a_static_server_does_not_say_what_it_has(workspace: Workspace, tmp_path: Path) -> None:
    push(workspace, "derived", "com.example.renamed", to=f"{tmp_path}/public/")
    index = tmp_path / "public" / INDEX_FILE
    for text in (None, "<html>", "[]", '{"kind": "RepositoryIndex", "version": 2, "datasets": []}'):
        index.unlink() if text is None else index.write_text(text)
        with static_server(tmp_path / "public") as site, pytest.raises(NotListable):
            list_datasets(site.url)


def test_an_index_that_lies_gives_no_wrong_dataset(workspace: Workspace, tmp_path: Path) -> None:
    push(workspace, "derived", "com.example.renamed", "other", to=f"{tmp_path}/public/")
    index = tmp_path / "public" / INDEX_FILE
    tree = json.loads(index.read_bytes())
    renamed, derived, _ = tree["datasets"]
    for number, (expected, datasets) in enumerate(
        (
            (AlreadyExists, [{**derived, "id": renamed["id"]}]),
            (OdfError, [{**renamed, "name": "other"}, derived]),
            (DatasetNotFound, [{**renamed, "name": "com.example.gone"}, derived]),
            (DatasetNotFound, [{**renamed, "name": "../derived"}, {"id": 1}, "nothing", {**renamed, "head": "f16"}]),
        )
    ):
        index.write_text(json.dumps({**tree, "datasets": datasets}))
        copies = Workspace.init(tmp_path / f"copies{number}")
        with static_server(tmp_path / "public") as site:
            first, second = copies.pull([f"{site.url}/derived"], recursive=True)
        assert first.error is None
        assert isinstance(second.error, expected)
        assert [str(one.handle) for one in copies.datasets.all()] == ["derived"]


def test_where_an_index_is_written(workspace: Workspace, tmp_path: Path) -> None:
    push(workspace, "derived", to=f"{tmp_path}/beside/derived")
    assert not (tmp_path / "beside" / INDEX_FILE).exists(), "the folder may be anybody's"
    workspace.remotes.repositories.add("mirror", str(tmp_path / "mirror"))
    push(workspace, "derived", to="mirror")
    assert set(index_of(tmp_path / "mirror")) == {"derived"}
    push(workspace, "com.example.renamed", to=f"{tmp_path}/mirror/com.example.renamed")
    assert set(index_of(tmp_path / "mirror")) == {"derived", "com.example.renamed"}, "one that is there is kept"
    shutil.rmtree(tmp_path / "mirror" / "derived")
    before = (tmp_path / "mirror" / INDEX_FILE).read_bytes()
    push(workspace, "com.example.renamed", to="mirror")
    assert set(index_of(tmp_path / "mirror")) == {"com.example.renamed"}, "what has gone goes"
    written = (tmp_path / "mirror" / INDEX_FILE).read_bytes()
    push(workspace, "com.example.renamed", to="mirror")
    assert written == (tmp_path / "mirror" / INDEX_FILE).read_bytes() != before


def test_a_push_succeeds_without_its_index(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "public" / INDEX_FILE).mkdir(parents=True)
    (result,) = workspace.push(["derived"], to=f"{tmp_path}/public/")
    assert result.error is None
    assert any("the index of the repository was not written" in note for note in result.notes)


@pytest.fixture(params=["folder", "bucket"])
def repository(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty repository."""
    if request.param == "folder":
        yield (tmp_path / "a b").as_uri()
    else:
        with azure_containers("data") as settings:
            monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", settings)
            yield "az://data/some/folder"


def test_writers_at_once_lose_nothing(repository: str, tmp_path: Path) -> None:
    entries = [
        IndexEntry(KeyPair.generate().dataset_id, DatasetAlias.parse(f"com.example.d{number}"), Multihash.of(b"x"))
        for number in range(8)
    ]
    for entry in entries:
        head = tmp_path / "a b" / str(entry.name) / "refs" / "head"
        head.parent.mkdir(parents=True)
        head.write_text(str(entry.head))
    assert not has_index(repository)
    threads = [threading.Thread(target=enter, args=(repository, entry)) for entry in entries]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert has_index(repository)
    if repository.startswith("file:"):
        assert set(index_of(tmp_path / "a b")) == {str(entry.name) for entry in entries}
    else:
        from odfpy.repository.bucket.location import open_bucket, parse_bucket_url

        bucket, key = open_bucket(parse_bucket_url(repository)), f"some/folder/{INDEX_FILE}"
        tree = json.loads(bucket.ask(key, bucket.client.content, key, 1 << 20).data)
        assert {one["name"] for one in tree["datasets"]} == {str(entry.name) for entry in entries}


def test_a_push_without_a_slash_does_not_go_into_a_repository(workspace: Workspace, repository: str) -> None:
    (empty,) = workspace.push(["other"], to=f"{repository}/other")
    assert (empty.error, holds_datasets(repository), has_index(repository)) == (None, True, False)
    for has_its_index in (False, True):
        (refused,) = workspace.push(["derived"], to=repository)
        assert isinstance(refused.error, UsageError)
        assert f"--to {repository}/derived, " in (refused.error.hint or "")
        assert not holds_datasets(f"{repository}/other"), "its own folders are none"
        if not has_its_index:
            (into,) = workspace.push(["other"], to=f"{repository}/")
            assert (into.error, has_index(repository)) == (None, True)
    (into,) = workspace.push(["derived"], to=f"{repository}/derived")
    assert into.error is None
