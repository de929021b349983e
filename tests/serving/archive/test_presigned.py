"""A partial copy on a server: clients are sent to the bucket that has the bytes."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

import pytest
from support.archive.served import YEAR_2010, ArchiveClient, push
from support.servers.buckets import s3_buckets
from support.servers.serving import serving

from odfpy.archive.errors import FileRemoved
from odfpy.archive.local import LocalArchive, init_archive
from odfpy.archive.record import Status
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.visibility import Visibility, set_visibility


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.mark.usefixtures("keys")
def test_a_client_is_sent_to_the_bucket_and_gets_the_bytes(tmp_path: Path) -> None:
    home = Workspace.init(tmp_path / "home")
    archive = init_archive(home, "logs")
    record = push(archive, tmp_path / "file", b"once upon a time")
    with s3_buckets() as host:
        place = f"s3+http://{host}/data/logs"
        assert [result.error for result in home.push(["logs"], to=place)] == [None]
        front = Workspace.init(tmp_path / "front")
        assert [result.error for result in front.pull([place], as_name="logs", files="none")] == [None]
        copy = LocalArchive(front, front.storage.get("logs"))
        assert record.object not in copy.dataset.layout.data
        url = copy.presigned(record, 60)
        assert url is not None
        with urlopen(url) as answer:
            assert answer.read() == b"once upon a time"
        assert archive.presigned(record, 60) is None  # it is here
        set_visibility(front.storage.get("logs").folder, Visibility.PUBLIC)
        with serving(front) as server:
            client = ArchiveClient(f"{server.url}/logs")
            assert client.files(what="foo", start=YEAR_2010, end=YEAR_2010)["records"][0]["metadata"]["id"] == record.id
            with urlopen(f"{server.url}/logs/v0/archive/files/{record.id}/data") as answer:
                assert answer.url.startswith(f"http://{host}/")
                assert answer.read() == b"once upon a time"


@pytest.mark.usefixtures("keys")
def test_nobody_is_sent_to_a_bucket_for_what_has_expired_and_is_gone(tmp_path: Path) -> None:
    home = Workspace.init(tmp_path / "home")
    archive = init_archive(home, "logs")
    record = push(archive, tmp_path / "file")
    with s3_buckets() as host:
        assert [result.error for result in home.push(["logs"], to=f"s3+http://{host}/data/logs")] == [None]
        (expired,) = archive.change([record.id], who="me", why="its time", status=Status.EXPIRED, released=1)
        archive.dataset.layout.data.delete(record.object)
        assert archive.presigned(expired, 60) is None
        with pytest.raises(FileRemoved, match="expired"):
            archive.open(expired)
        set_visibility(archive.dataset.folder, Visibility.PUBLIC)
        with serving(home) as server:
            refused = ArchiveClient(f"{server.url}/logs").refusal(f"files/{record.id}/data")
    assert refused == (404, "NoSuchFile")


def test_a_server_without_the_bytes_says_so_where_no_bucket_has_them(tmp_path: Path) -> None:
    home = Workspace.init(tmp_path / "home")
    record = push(init_archive(home, "logs"), tmp_path / "file")
    place = (tmp_path / "place").as_uri()
    assert [result.error for result in home.push(["logs"], to=f"{place}/logs")] == [None]
    front = Workspace.init(tmp_path / "front")
    assert [result.error for result in front.pull([f"{place}/logs"], as_name="logs", files="none")] == [None]
    set_visibility(front.storage.get("logs").folder, Visibility.PUBLIC)
    with serving(front) as server:
        refused = ArchiveClient(f"{server.url}/logs").refusal(f"files/{record.id}/data")
    assert refused == (404, "NoSuchFile")
