"""The bytes of archived files over HTTP: types, packing, ranges, and nothing that a browser would run."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.archive.served import Served, packed, push
from support.servers.serving import ask

from odfpy.archive.record import Status
from odfpy.data.timestamp import Timestamp

SHA1 = "e6294fa5eddbc9d38bd7a20f072ffd3a182fa1e7"
MD5 = "e6294fa5eddbc9d38bd7a20f072ffd3a"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.mark.parametrize(
    ("path", "content", "kind", "packing"),
    [
        ("/home/you/foo.txt", b"once upon a time", "text/plain", None),
        ("/home/you/foo.txt.gz", packed(b"no place like home"), "text/plain", "gzip"),
        ("/home/you/foo.json", b'{"this": "is json"}', "application/json", None),
        ("/var/log/syslog.1", b"boot\ncrash\n", "text/plain", None),
        ("/var/log/random.log", b"42\n", "text/plain", None),
        ("/var/log/random.log.1", b"93\n", "text/plain", None),
        ("/var/log/random.log.gz", packed(b"431\n"), "text/plain", "gzip"),
        (f"/var/log/foo/foo.log.gz-{SHA1}", packed(b"welcome"), "text/plain", "gzip"),
        (f"/var/log/bar/bar.log-{MD5}", b"welcome to bar land", "text/plain", None),
        (f"/var/log/bar/bar.json-{MD5}", b"{}", "application/json", None),
        ("/data/not-packed.gz", b"plain text", "text/plain", None),
        ("C:\\images\\a b.PNG", b"\x89PNG", "image/png", None),
        ("/empty.csv", b"", "text/csv", None),
    ],
)
def test_types_are_guessed_from_paths_and_gzip_is_marked(
    shared: Served, file: Path, path: str, content: bytes, kind: str, packing: str | None
) -> None:
    record = push(shared.archive, file, content, path=path)
    answer = shared.reader.get(f"files/{record.id}/data")
    assert answer.status == 200
    assert answer.body == content
    assert answer.headers["content-type"] == kind
    assert answer.headers.get("content-encoding") == packing
    assert answer.headers["content-length"] == str(len(content))
    assert answer.headers["content-disposition"].startswith("inline; ")


@pytest.mark.parametrize("path", ["/a/page.html", "/a/page.html.gz", "/a/drawing.svg", "/a/x.js", "/a/x.pdf"])
def test_what_a_browser_would_run_is_a_download(shared: Served, file: Path, path: str) -> None:
    record = push(shared.archive, file, b"<script>alert(1)</script>", path=path)
    headers = shared.reader.get(f"files/{record.id}/data").headers
    assert headers["content-disposition"].startswith("attachment; ")
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-security-policy"] == "default-src 'none'; sandbox"


@pytest.mark.parametrize(
    "name", ['a"b.txt', "a\r\nSet-Cookie: x=1\r\n\r\n.txt", "ä€.txt", "data:text/html,x", "x" * 3000]
)
def test_no_path_gets_into_the_headers(shared: Served, file: Path, name: str) -> None:
    record = push(shared.archive, file, b"content", path=f"/{name}")
    answer = shared.reader.get(f"files/{record.id}/data")
    assert answer.body == b"content"
    assert answer.headers["content-type"] == "text/plain"
    assert "set-cookie" not in answer.headers
    said = answer.headers["content-disposition"]
    assert said.isascii()
    assert not set('"\r\n,') & set(said)


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-3", 0, 4),
        ("bytes=5-", 5, 1000),
        ("bytes=-10", 990, 1000),
        ("bytes=-9999", 0, 1000),
        ("bytes=990-99999999999", 990, 1000),
        ("bytes=999-999", 999, 1000),
    ],
)
def test_a_range_of_a_file(shared: Served, file: Path, asked: str, start: int, end: int) -> None:
    content = bytes(range(250)) * 4
    record = push(shared.archive, file, content, path="/ranges")
    answer = shared.reader.get(f"files/{record.id}/data", Range=asked)
    assert answer.status == 206
    assert answer.body == content[start:end]
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/1000"


@pytest.mark.parametrize("asked", ["bytes=1000-", "bytes=99999999999999999-", "bytes=-0"])
def test_a_range_beyond_the_end(shared: Served, file: Path, asked: str) -> None:
    record = push(shared.archive, file, b"x" * 1000, path="/beyond")
    answer = shared.reader.get(f"files/{record.id}/data", Range=asked)
    assert (answer.status, answer.headers["content-range"]) == (416, "bytes */1000")


@pytest.mark.parametrize(
    "asked",
    [
        "bytes=5-1",
        "bytes=-",
        "lines=1-2",
        "bytes=1-2,3-4",
        "bytes=" + ",".join(["0-"] * 5000),
        "bytes=1" + "0" * 30 + "-",
    ],
)
def test_what_is_no_single_range_gives_the_whole_file_once(shared: Served, file: Path, asked: str) -> None:
    record = push(shared.archive, file, b"x" * 1000, path="/many")
    answer = shared.reader.get(f"files/{record.id}/data", Range=asked)
    assert (answer.status, len(answer.body)) == (200, 1000)


def test_who_has_a_file_is_not_sent_it_again(shared: Served, file: Path) -> None:
    record = push(shared.archive, file, b"content", path="/again")
    path = f"files/{record.id}/data"
    tag = shared.reader.get(path).headers["etag"]
    assert tag == f'"{record.object}"'
    assert shared.reader.get(path, If_None_Match=tag).status == 304
    assert shared.reader.get(path, If_None_Match='"other"').status == 200
    assert shared.reader.get(path, Range="bytes=1-", If_Range=tag).status == 206
    assert shared.reader.get(path, Range="bytes=1-", If_Range='"other"').status == 200


def test_head_says_what_get_would(shared: Served, file: Path) -> None:
    record = push(shared.archive, file, b"content", path="/head.json")
    url = f"{shared.url}/v0/archive/files/{record.id}/data"
    answer = ask(url, method="HEAD", token=shared.reader.token)
    assert (answer.status, answer.body) == (200, b"")
    assert (answer.headers["content-length"], answer.headers["content-type"]) == ("7", "application/json")


def test_metadata_is_what_datalake_has_of_it(shared: Served, file: Path) -> None:
    record = push(shared.archive, file, b"content", path="/meta", start=1426809920345, end=1426895999114, work_id="job")
    answer = shared.reader.get(f"files/{record.id}/metadata")
    assert answer.headers["content-type"] == "application/json"
    times = {"start_iso": "2015-03-20T00:05:20.345Z", "end_iso": "2015-03-20T23:59:59.114Z"}
    assert answer.json == {**record.metadata(), **times}
    listed = shared.reader.get(f"files/{record.id}").json
    assert listed["url"] == listed["http_url"] == f"{shared.url}/v0/archive/files/{record.id}/data"
    assert (listed["size"], listed["create_time"]) == (7, record.create_time)


@pytest.mark.parametrize(
    "name", ["12345", "..", "%2e%2e", "..%2F..%2Fetc%2Fpasswd", "%00", "%FF", "a%0d%0ab", "x" * 150, "%2F"]
)
@pytest.mark.parametrize("rest", ["", "/data", "/metadata"])
def test_an_id_that_is_none(shared: Served, name: str, rest: str) -> None:
    answer = shared.reader.get(f"files/{name}{rest}")
    assert answer.status == 404
    if name == "12345":
        assert answer.json["code"] == "NoSuchFile"


def test_withdrawn_and_removed_files_are_no_such_file_and_the_message_says_why(shared: Served, file: Path) -> None:
    withdrawn, expired = (push(shared.archive, file, name, path=f"/{name!r}") for name in (b"secret", b"old"))
    shared.archive.withdraw([withdrawn.id], who="alice", why="wrong file")
    now = Timestamp.now().millis
    shared.archive.change([expired.id], who="policy", why="a year is over", status=Status.EXPIRED, released=now)
    assert shared.reader.get(f"files/{expired.id}/data").body == b"old"
    shared.archive.dataset.layout.data.delete(expired.object)
    for record, reasons in ((withdrawn, ("withdrawn", "alice: wrong file")), (expired, ("removed", "a year is over"))):
        answer = shared.reader.get(f"files/{record.id}/data")
        assert (answer.status, answer.json["code"]) == (404, "NoSuchFile")
        assert all(reason in answer.json["message"] for reason in reasons)
        assert shared.reader.get(f"files/{record.id}/metadata").status == 200


def test_a_file_that_is_damaged_never_comes_whole(shared: Served, file: Path) -> None:
    content = b"x" * (3 << 20)
    record = push(shared.archive, file, content, path="/damaged")
    stored = shared.archive.dataset.layout.data.local_path(record.object)
    assert stored is not None
    stored.chmod(0o600)
    stored.write_bytes(content[:-1] + b"y")
    parts = urlsplit(shared.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), 30) as connection:
        head = f"GET {parts.path}/v0/archive/files/{record.id}/data HTTP/1.1\r\nHost: x\r\n"
        connection.sendall(f"{head}Authorization: Bearer {shared.reader.token}\r\n\r\n".encode())
        came = b"".join(iter(lambda: connection.recv(1 << 20), b""))
    assert came.startswith(b"HTTP/1.1 200 ")
    assert len(came.partition(b"\r\n\r\n")[2]) < len(content)
