"""Who may read and write an archive over HTTP, and which archive is meant without a name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.archive.served import YEAR_2010, ArchiveClient, Served, hash_of, push, record_of
from support.servers.serving import Answer, ask, put

from odfpy.archive.local import init_archive
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility

ID = "6309e115c2914d0f8622973422626954"
READING = (
    "",
    "files/?what=foo&work_id=x",
    "files/",
    f"files/{ID}",
    f"files/{ID}/data",
    f"files/{ID}/metadata",
    "latest/foo/here",
    "latest/foo/here/data",
)
OBJECT = hash_of(b"x")


def writing(client: ArchiveClient) -> list[Answer]:
    return [
        client.post("missing", {"objects": [str(OBJECT)]}),
        ask(f"{client.base}/v0/archive/objects/{OBJECT}", method="HEAD", token=client.token),
        client.patch(OBJECT, b"x", 0),
        client.put(OBJECT, b"x"),
        client.put_all(b""),
        client.post_records([]),
    ]


def test_strangers_learn_nothing_of_a_private_archive(served: Served, tmp_path: Path) -> None:
    record = push(served.archive, tmp_path / "file")
    stranger, elsewhere = ArchiveClient(served.url), ArchiveClient(f"{served.server.url}/nothing")
    for path in (*READING, f"files/{record.id}/data"):
        here, there = stranger.get(path), elsewhere.get(path)
        assert here.status == there.status == 401, path
        assert here.body == there.body, path
    assert {answer.status for answer in writing(stranger)} == {401}
    root = ArchiveClient(served.server.url)
    assert {root.get(path).status for path in READING} == {401}


def test_the_token_of_another_workspace_is_good_for_nothing(served: Served, tmp_path: Path) -> None:
    other = Tokens(Workspace.init(tmp_path / "other").odf).new("other", Scope.ADMIN)
    for client in (ArchiveClient(served.url, other), ArchiveClient(served.url, "made-up")):
        assert {client.get(path).status for path in READING} == {401}
        assert {answer.status for answer in writing(client)} == {401}


def test_readers_may_not_write(served: Served) -> None:
    assert {answer.status for answer in writing(served.reader)} == {403}
    assert served.writer.head(OBJECT) == (0, "?0")


def test_everybody_may_read_a_public_archive_and_not_write_it(served: Served, tmp_path: Path) -> None:
    record = push(served.archive, tmp_path / "file", b"for all")
    set_visibility(served.archive.dataset.folder, Visibility.PUBLIC)
    stranger = ArchiveClient(served.url)
    assert stranger.get(f"files/{record.id}/data").body == b"for all"
    assert {answer.status for answer in writing(stranger)} == {401}


def test_a_token_that_is_revoked_ends_at_once(served: Served) -> None:
    assert served.reader.get("").status == 200
    Tokens(served.workspace.odf).revoke("reader")
    assert served.reader.get("").status == 401


def test_another_dataset_is_no_archive(served: Served) -> None:
    put(served.workspace, "com.example.rates", 1)
    reader = ArchiveClient(f"{served.server.url}/com.example.rates", served.reader.token)
    assert {reader.refusal(path) for path in READING} == {(404, "NoSuchArchive")}
    writer = ArchiveClient(f"{served.server.url}/com.example.rates", served.writer.token)
    assert {answer.status for answer in writing(writer)} == {404}
    assert ArchiveClient(f"{served.server.url}/none", served.writer.token).post_records([]).status == 404


def test_the_only_archive_is_meant_without_a_name(served: Served, tmp_path: Path) -> None:
    record = push(served.archive, tmp_path / "file", b"bytes")
    root = ArchiveClient(served.server.url, served.writer.token)
    (found,) = root.files(what="foo", start=YEAR_2010, end=YEAR_2010)["records"]
    assert found["url"] == f"{served.server.url}/v0/archive/files/{record.id}/data"
    assert ask(found["url"], token=root.token).body == b"bytes"
    assert root.put(OBJECT, b"x").status == 204
    assert root.push(record_of(b"x"))[0]["outcome"] == "pushed"
    assert ArchiveClient(served.server.url, served.reader.token).put(OBJECT, b"x").status == 403


def test_of_several_archives_a_setting_says_which_one_is_meant(served: Served, tmp_path: Path) -> None:
    push(served.archive, tmp_path / "file")
    init_archive(served.workspace, "images")
    root = ArchiveClient(served.server.url, served.reader.token)
    assert root.refusal("") == (404, "NoSuchArchive")
    served.workspace.config.set("archive.name", "images")
    assert root.get("").status == 200
    assert root.files(what="foo", start=YEAR_2010, end=YEAR_2010)["records"] == []
    served.workspace.config.set("archive.name", "logs")
    assert len(root.files(what="foo", start=YEAR_2010, end=YEAR_2010)["records"]) == 1
    assert ArchiveClient(served.server.url).get("").status == 401


def test_an_archive_that_may_not_be_read_does_not_count(served: Served, tmp_path: Path) -> None:
    images = init_archive(served.workspace, "images")
    set_visibility(images.dataset.folder, Visibility.PUBLIC)
    record = push(images, tmp_path / "file", b"an image")
    assert ArchiveClient(served.server.url).get(f"files/{record.id}/data").body == b"an image"


@pytest.mark.parametrize("base", ["", "/logs"])
def test_that_it_is_there_and_of_which_release(served: Served, base: str) -> None:
    def get(path: str) -> Any:
        return ask(f"{served.server.url}{base}{path}", token=served.reader.token)

    assert get("/health/").json["status"] == "ok"
    assert get("/v0/environment/").json["data"]["build"]["version"]
    assert get("/v0/archive/").json == {"storage_url": f"{served.server.url}{base}"}
    assert ask(f"{served.server.url}/health/").status == 200


def test_the_urls_are_those_by_which_clients_reach_the_server(tmp_path: Path) -> None:
    from support.servers.serving import serving

    workspace = Workspace.init(tmp_path / "workspace")
    archive = init_archive(workspace, "logs")
    token = Tokens(workspace.odf).new("reader", Scope.READ)
    for number in range(2):
        push(archive, tmp_path / "file", start=YEAR_2010 + number, path=f"/{number}")
    with serving(workspace, base_url="https://node.example.com/odf") as server:
        page = ArchiveClient(f"{server.url}/logs", token).files(what="foo", start=0, end="2011-01-01", limit=1)
    assert page["next"].startswith("https://node.example.com/odf/logs/v0/archive/files/?what=foo&")
    assert page["records"][0]["url"].startswith("https://node.example.com/odf/logs/v0/archive/files/")
